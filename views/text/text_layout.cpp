// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/text_layout.h"

#include "core/base/utf8.h"
#include "views/common/format.h"
#include "views/text/token_text.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QTextBoundaryFinder>
#include <QTextLayout>

#include <cmath>

namespace ponderscope {

namespace {

/// Longer words are split, which limits the time for shaping. They would not fit in a line anyway.
constexpr std::size_t longest_word_bytes = 96;
/// Largest number of distinct words with stored glyphs, to limit memory (for random bytes).
constexpr std::size_t most_shapes = 200'000;

/// Whether \p at is inside a visible character that begins at \p first or later: a flag, a family emoji.
bool joins(std::string_view text, std::size_t first, std::size_t at) {
    const QString before = QString::fromUtf8(text.data() + first, static_cast<qsizetype>(at - first));
    const QString both =
        before + QString::fromUtf8(text.data() + at,
                                   static_cast<qsizetype>(std::min<std::size_t>(text.size() - at, 8)));
    QTextBoundaryFinder finder(QTextBoundaryFinder::Grapheme, both);
    finder.setPosition(before.size());
    return !finder.isAtBoundary();
}

/// The end of a token in a word: at `from`, or inside a character at `part` of the way from `from` to `to`.
struct Edge {
    int from = 0;
    int to = 0;
    double part = 0;
    [[nodiscard]] double at() const { return from + part * (to - from); }
};

/// The left and right ends of the tokens between \p edges in a laid-out word. A visible character of several
/// tokens is divided by their shares of its bytes.
std::vector<std::pair<double, double>> extents_of(const QTextLayout& layout, const QTextLine& line,
                                                  const std::vector<Edge>& edges, double width) {
    std::vector<std::pair<double, double>> extents(edges.size() - 1, {width, 0});
    const int size = static_cast<int>(layout.text().size());
    std::size_t token = 0;
    for (int from = 0, to = 0; from < size; from = to) {
        to = std::max(layout.nextCursorPosition(from), from + 1);
        const double start = line.cursorToX(from);
        double end = line.cursorToX(from, QTextLine::Trailing);
        // Within a ligature the next character begins before the glyph ends.
        if (const double next = line.cursorToX(to); to < size && (next - start) * (next - end) < 0) {
            end = next;
        }
        const auto x = [&](double at) { return start + (end - start) * (at - from) / (to - from); };
        while (token + 1 < extents.size() && edges[token + 1].at() <= from) {
            ++token;
        }
        for (std::size_t i = token; i < extents.size() && edges[i].at() < to; ++i) {
            const auto [left, right] = std::minmax(
                {x(std::max<double>(edges[i].at(), from)), x(std::min<double>(edges[i + 1].at(), to))});
            extents[i] = {std::min(extents[i].first, left), std::max(extents[i].second, right)};
        }
    }
    double last = 0;
    for (auto& [left, right] : extents) { // at least one pixel, to see and click
        left = std::clamp(left > right ? last : left, 0.0, width - 1);
        right = std::clamp(right, left + 1, width);
        last = right;
    }
    return extents;
}

} // namespace

TextLayout::Direction TextLayout::directionOf(const QString& word) {
    for (const char32_t c : word.toUcs4()) {
        switch (QChar::direction(c)) {
        case QChar::DirL:
            return Direction::leftToRight;
        case QChar::DirR:
        case QChar::DirAL:
            return Direction::rightToLeft;
        default:
            break;
        }
    }
    return Direction::none;
}

void TextLayout::setFont(const QFont& font) {
    font_ = font;
    const QFontMetricsF metrics(font);
    // Wider than a space, because boxes extend beyond their words.
    gap_ = std::ceil(metrics.horizontalAdvance(QLatin1Char(' '))) + 7;
    known_.clear();
    shapes_.clear();
    extents_.clear();
    words_.clear();
    lines_.clear();
    placed_ = 0;
    lineOpen_ = false;
    missesLabels_ = false;
}

void TextLayout::setSequence(std::shared_ptr<const SequenceData> data) {
    // Another run over the same text and tokens keeps the layout.
    const bool continues =
        data && data_ && data->tokens.size() >= placed_ && data->text == data_->text &&
        std::equal(data_->tokens.id.begin(), data_->tokens.id.begin() + static_cast<std::ptrdiff_t>(placed_),
                   data->tokens.id.begin()) &&
        std::equal(data_->tokens.end.begin(),
                   data_->tokens.end.begin() + static_cast<std::ptrdiff_t>(placed_),
                   data->tokens.end.begin());
    data_ = std::move(data);
    if (continues) {
        return;
    }
    words_.clear();
    lines_.clear();
    placed_ = 0;
    lineOpen_ = false;
    if (shapes_.size() > most_shapes) {
        setFont(QFont(font_));
    }
}

void TextLayout::setWidth(qreal width) {
    width = std::max<qreal>(width, 40);
    if (width == width_) {
        return;
    }
    width_ = width;
    wrapAll();
}

bool TextLayout::prepare(std::chrono::microseconds budget) {
    if (complete()) {
        return true;
    }
    const auto until = std::chrono::steady_clock::now() + budget;
    const TokenColumns& tokens = data_->tokens;
    const std::string_view text = data_->text;
    const bool idsOnly = text.empty();
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(tokens.size(), 0xfffffff0u));
    const auto breaksAt = [&](std::uint32_t first, std::uint32_t t) {
        // The common case first: most words begin with a space.
        const std::string_view bytes = idsOnly ? std::string_view() : token_bytes(tokens, text, t);
        if (idsOnly || bytes.empty() || bytes.front() == ' ') {
            return true;
        }
        const auto lead = static_cast<unsigned char>(bytes.front());
        if (lead > 0x20 && lead < 0x7f) {
            return false;
        }
        const CharacterSpan span = characters_of(tokens, text, t, true);
        const TokenText shown = token_text(span.bytes, tokens.id[t], false);
        return span.before == 0 && shown.breakBefore &&
               (shown.special || shown.ideograph || !joins(text, tokens.begin[first], tokens.begin[t]));
    };
    int sinceClock = 0;
    while (placed_ < count) {
        const auto first = static_cast<std::uint32_t>(placed_);
        std::uint32_t end = first + 1;
        const std::string_view lead = token_bytes(tokens, text, first);
        std::size_t bytes = lead.size();
        bool closed =
            idsOnly || lead.find_first_not_of(" \t") == std::string_view::npos ||
            lead.find('\n') != std::string_view::npos ||
            ((lead.front() < ' ' || lead.front() > '~') &&
             token_text(characters_of(tokens, text, first, false).bytes, tokens.id[first], false).special);
        while (!closed && end < count && !breaksAt(first, end)) {
            const std::string_view next = token_bytes(tokens, text, end);
            bytes += next.size();
            if (bytes > longest_word_bytes && characters_of(tokens, text, end, true).before == 0) {
                break;
            }
            ++end;
            closed = next.find('\n') != std::string_view::npos;
        }
        const std::size_t shaped = shapes_.size();
        words_.push_back({first, shape(first, end)});
        placed_ = end;
        placeWord(static_cast<std::uint32_t>(words_.size() - 1));
        sinceClock += shapes_.size() > shaped ? 16 : 1; // shaping takes most of the time
        if (sinceClock >= 32) {
            sinceClock = 0;
            if (std::chrono::steady_clock::now() >= until) {
                break;
            }
        }
    }
    return complete();
}

std::uint32_t TextLayout::shape(std::uint32_t first, std::uint32_t end) {
    const TokenColumns& tokens = data_->tokens;
    const bool idsOnly = data_->text.empty();
    const auto label_of = [&](std::uint32_t t) {
        return idsOnly || !labels_ ? QString() : labels_(tokens.id[t]);
    };
    std::string key;
    for (std::uint32_t t = first; t < end; ++t) {
        const std::string_view bytes = token_bytes(tokens, data_->text, t);
        if (bytes.empty()) {
            key += std::to_string(tokens.id[t]);
            key += idsOnly ? '\xfd' : '\xfe'; // bytes that never occur in UTF-8
            key += label_of(t).toStdString(); // the label of an id depends on the tokenizer
        } else {
            key += bytes;
        }
        key += '\xff';
    }
    const auto place = known_.find(key);
    if (place != known_.end()) {
        return place->second;
    }

    Shape made;
    made.tokens = end - first;
    made.extents = static_cast<std::uint32_t>(extents_.size());
    QString all;
    std::vector<Edge> edges(1);
    std::size_t characterAt = 0; ///< first byte of the character that contains the last edge
    for (std::uint32_t t = first; t < end; ++t) {
        const bool hasText = !token_bytes(tokens, data_->text, t).empty();
        QString label;
        if (!hasText && !idsOnly && labels_) {
            label = label_of(t);
            missesLabels_ = missesLabels_ || label.isEmpty();
        }
        const CharacterSpan span = characters_of(tokens, data_->text, t, t > first);
        if (hasText && span.bytes.empty()) { // inside one character
            Edge edge = edges.back();
            const std::size_t whole = utf8_at(data_->text, characterAt).bytes;
            edge.part = static_cast<double>(tokens.end[t] - characterAt) / static_cast<double>(whole);
            edges.push_back(edge);
            continue;
        }
        const TokenText shown = token_text(span.bytes, tokens.id[t], idsOnly, label);
        if (t == first) {
            made.spaceBefore = shown.spaceBefore;
            made.special = shown.special;
        } else if (shown.spaceBefore) {
            all += QChar(0x00a0); // a space inside a word is not a gap
        }
        made.breakAfter = made.breakAfter || shown.breakAfter;
        all += shown.text;
        const int size = static_cast<int>(all.size());
        edges.push_back({size, size, 0});
        if (span.after > 0) {
            characterAt = utf8_boundary_before(data_->text, tokens.end[t]);
            const std::string_view last(data_->text.data() + characterAt,
                                        tokens.end[t] + span.after - characterAt);
            edges.back() = {size - static_cast<int>(visible_text(last).size()), size,
                            static_cast<double>(tokens.end[t] - characterAt) /
                                static_cast<double>(last.size())};
        }
    }
    made.direction = directionOf(all);
    made.number = std::ranges::any_of(all, [](QChar c) { return c.isDigit(); });
    QTextLayout layout(all, font_);
    QTextOption option;
    option.setWrapMode(QTextOption::NoWrap);
    option.setUseDesignMetrics(true);
    layout.setTextOption(option);
    layout.setCacheEnabled(true);
    layout.beginLayout();
    QTextLine line = layout.createLine();
    line.setPosition({0, 0});
    layout.endLayout();
    made.glyphs = layout.glyphRuns();
    made.ascent = static_cast<float>(line.ascent());
    made.width = static_cast<float>(std::max<qreal>(line.naturalTextWidth(), 2));
    const auto extents = extents_of(layout, line, edges, static_cast<double>(made.width));
    for (std::size_t i = 0; i < extents.size(); ++i) {
        const double at = edges[i].at();
        const bool inside = at != std::floor(at) || !layout.isValidCursorPosition(static_cast<int>(at));
        extents_.push_back(
            {static_cast<float>(extents[i].first), static_cast<float>(extents[i].second), inside});
    }
    shapes_.push_back(std::move(made));
    const auto index = static_cast<std::uint32_t>(shapes_.size() - 1);
    known_.emplace(std::move(key), index);
    return index;
}

void TextLayout::placeWord(std::uint32_t word) {
    const Shape& shape = shapes_[words_[word].shape];
    const std::uint32_t first = words_[word].firstToken;
    if (lineOpen_ && pen_ + gap(shape) + shape.width <= width_) {
        pen_ += gap(shape) + shape.width;
    } else {
        const bool begins = lines_.empty() || shapes_[words_[word - 1].shape].breakAfter;
        if (begins) {
            undecided_ = true;
            undecidedFrom_ = lines_.size();
        }
        const bool rightToLeft = !begins && lines_.back().rightToLeft;
        lines_.push_back({word, first, rightToLeft});
        pen_ = shape.width;
        if (shape.width > width_) {
            // Split a word that is wider than a line between its tokens, which may go from right to left, but
            // not inside a visible character, unless this character is wider than a line.
            const Extent* extents = &extents_[shape.extents];
            const auto fits = [this](const Extent& one) { return one.right - one.left <= width_; };
            Extent part = extents[0];
            for (std::uint32_t i = 0, end = 0; i < shape.tokens; i = end) {
                Extent unit = extents[i];
                for (end = i + 1; end < shape.tokens && extents[end].inside && fits(unit.with(extents[end]));
                     ++end) {
                    unit = unit.with(extents[end]);
                }
                if (i > 0 && !fits(part.with(unit))) {
                    lines_.push_back({word, first + i, rightToLeft});
                    part = unit;
                } else {
                    part = part.with(unit);
                }
            }
            pen_ = part.right - part.left;
        }
    }
    lineOpen_ = !shape.breakAfter;
    if (undecided_ && shape.direction != Direction::none) {
        // A paragraph has the direction of its first word with a direction (UAX 9, P2, P3).
        undecided_ = false;
        for (std::size_t line = undecidedFrom_; line < lines_.size(); ++line) {
            lines_[line].rightToLeft = shape.direction == Direction::rightToLeft;
        }
    }
}

void TextLayout::wrapAll() {
    lines_.clear();
    lineOpen_ = false;
    for (std::size_t word = 0; word < words_.size(); ++word) {
        placeWord(static_cast<std::uint32_t>(word));
    }
}

qint64 TextLayout::expectedLineCount() const {
    if (complete() || placed_ == 0) {
        return lineCount();
    }
    const double share = static_cast<double>(data_->tokens.size()) / static_cast<double>(placed_);
    return std::max<qint64>(lineCount(), std::llround(static_cast<double>(lines_.size()) * share));
}

qint64 TextLayout::lineOf(qint64 token) const {
    if (token < 0 || token >= placedTokens()) {
        return -1;
    }
    const auto after = std::upper_bound(lines_.begin(), lines_.end(), token, [](qint64 t, const Line& line) {
        return t < static_cast<qint64>(line.token);
    });
    return after - lines_.begin() - 1;
}

qint64 TextLayout::firstToken(qint64 line) const {
    return line < 0 || line >= lineCount() ? placedTokens() : lines_[static_cast<std::size_t>(line)].token;
}

std::vector<TextLayout::Piece> TextLayout::pieces(qint64 line) const {
    std::vector<Piece> all;
    if (line < 0 || line >= lineCount()) {
        return all;
    }
    const Line& start = lines_[static_cast<std::size_t>(line)];
    const auto end = static_cast<std::uint32_t>(endToken(line));
    bool bothWays = start.rightToLeft;
    qreal pen = 0;
    for (std::size_t w = start.word; w < words_.size() && words_[w].firstToken < end; ++w) {
        const Word& word = words_[w];
        const Shape& shape = shapes_[word.shape];
        const std::uint32_t from = std::max(start.token, word.firstToken) - word.firstToken;
        const std::uint32_t to = std::min(end - word.firstToken, shape.tokens);
        Extent part{0, shape.width, false};
        if (from > 0 || to < shape.tokens) {
            part = extents_[shape.extents + from];
            for (std::uint32_t i = from + 1; i < to; ++i) {
                part = part.with(extents_[shape.extents + i]);
            }
        }
        if (w != start.word) {
            pen += gap(shape);
        }
        all.push_back({w, from, to, part, pen - part.left});
        pen += part.right - part.left;
        bothWays = bothWays || shape.direction == Direction::rightToLeft;
    }
    if (bothWays) {
        placeBothWays(all, start.rightToLeft);
    }
    return all;
}

void TextLayout::placeBothWays(std::vector<Piece>& pieces, bool rightToLeft) const {
    const Direction base = rightToLeft ? Direction::rightToLeft : Direction::leftToRight;
    const auto shapeOf = [this](const Piece& piece) -> const Shape& {
        return shapes_[words_[piece.word].shape];
    };
    std::vector<Direction> ways;
    Direction before = base;
    for (const Piece& piece : pieces) {
        const Shape& shape = shapeOf(piece);
        // A number has the direction of the previous word (W7).
        ways.push_back(shape.direction == Direction::none && shape.number ? before : shape.direction);
        before = shape.direction == Direction::none ? before : shape.direction;
    }
    before = base;
    for (std::size_t i = 0; i < ways.size(); ++i) {
        if (ways[i] == Direction::none) {
            // A neutral word takes its neighbours' common direction (N1), else the paragraph's (N2).
            std::size_t next = i;
            while (next < ways.size() && ways[next] == Direction::none) {
                ++next;
            }
            ways[i] = before == (next < ways.size() ? ways[next] : base) ? before : base;
        }
        before = ways[i];
    }
    // The things to place, with their levels: even levels read from left to right.
    struct Thing {
        Piece* piece; ///< null: a gap
        qreal width;
        int level;
    };
    std::vector<Thing> things;
    const auto levelOf = [&](Direction way) {
        return way == base ? (rightToLeft ? 1 : 0) : rightToLeft ? 2 : 1;
    };
    qreal whole = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (const qreal space = i == 0 ? 0 : gap(shapeOf(pieces[i])); space > 0) {
            things.push_back({nullptr, space, levelOf(ways[i - 1] == ways[i] ? ways[i] : base)});
        }
        const Piece& piece = pieces[i];
        things.push_back({&pieces[i], piece.extent.right - piece.extent.left, levelOf(ways[i])});
    }
    for (const Thing& thing : things) {
        whole += thing.width;
    }
    // From the highest level to the lowest odd level, reverse every run of this level or above (L2).
    for (int level = 2; level >= 1; --level) {
        for (auto first = things.begin(); first != things.end();) {
            if (first->level < level) {
                ++first;
                continue;
            }
            const auto last = std::find_if(first, things.end(),
                                           [level](const Thing& thing) { return thing.level < level; });
            std::reverse(first, last);
            first = last;
        }
    }
    qreal pen = rightToLeft ? std::max<qreal>(0, width_ - whole) : 0;
    for (const Thing& thing : things) {
        if (thing.piece != nullptr) {
            thing.piece->origin = pen - thing.piece->extent.left;
        }
        pen += thing.width;
    }
}

std::vector<TextLayout::PlacedToken> TextLayout::tokens(qint64 line) const {
    std::vector<PlacedToken> all;
    for (const Piece& piece : pieces(line)) {
        const Word& word = words_[piece.word];
        const Shape& shape = shapes_[word.shape];
        for (std::uint32_t i = piece.from; i < piece.to; ++i) {
            const Extent& extent = extents_[shape.extents + i];
            const qreal left = piece.origin + extent.left;
            all.push_back({static_cast<qint64>(word.firstToken) + i, left,
                           std::min<qreal>(piece.origin + extent.right, std::max(width_, left + 2)), false,
                           false});
        }
    }
    // A box may extend to a side if the next box on this side, as seen on the screen, is a gap away.
    std::vector<PlacedToken*> seen;
    seen.reserve(all.size());
    for (PlacedToken& placed : all) {
        seen.push_back(&placed);
    }
    const auto leftmost = [](const PlacedToken* a, const PlacedToken* b) { return a->left < b->left; };
    if (!std::ranges::is_sorted(seen, leftmost)) {
        std::ranges::sort(seen, leftmost);
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
        const bool apart = i == 0 || seen[i]->left - seen[i - 1]->right > gap_ / 2;
        seen[i]->roomBefore = apart;
        if (i > 0) {
            seen[i - 1]->roomAfter = apart;
        }
    }
    if (!seen.empty()) {
        seen.back()->roomAfter = true;
    }
    return all;
}

qint64 TextLayout::tokenAt(qint64 line, qreal x, bool nearest) const {
    qint64 best = -1;
    qreal distance = nearest ? 1e9 : 5; // boxes extend a little beyond their glyphs
    for (const PlacedToken& placed : tokens(line)) {
        const qreal away = x < placed.left ? placed.left - x : x > placed.right ? x - placed.right : 0;
        if (away < distance) {
            distance = away;
            best = placed.token;
        }
    }
    return best;
}

void TextLayout::draw(QPainter& painter, qint64 line, qreal x, qreal baseline, const QColor& text,
                      const QColor& special) const {
    for (const Piece& piece : pieces(line)) {
        const Shape& shape = shapes_[words_[piece.word].shape];
        painter.setPen(shape.special ? special : text);
        const QPointF at(x + piece.origin, baseline - static_cast<qreal>(shape.ascent));
        const bool part = piece.from > 0 || piece.to < shape.tokens;
        const bool wide = static_cast<qreal>(shape.width) > width_;
        if (part || wide) {
            const qreal left = piece.origin + piece.extent.left;
            const qreal right = std::min<qreal>(piece.origin + piece.extent.right, width_);
            painter.save();
            painter.setClipRect(QRectF(x + left, baseline - 1000, right - left, 2000), Qt::IntersectClip);
        }
        for (const QGlyphRun& run : shape.glyphs) {
            painter.drawGlyphRun(at, run);
        }
        if (part || wide) {
            painter.restore();
        }
    }
}

} // namespace ponderscope
