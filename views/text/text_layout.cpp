// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/text/text_layout.h"

#include "views/common/format.h"
#include "views/text/token_text.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QTextLayout>

#include <algorithm>
#include <cmath>

namespace ponderscope {

namespace {

/// A word that no line can hold anyway is cut here, so that shaping stays short whatever the text is.
constexpr std::uint32_t longest_word_tokens = 24;
constexpr std::size_t longest_word_bytes = 96;
/// Beyond this many distinct words the glyphs of a sequence are no longer worth their memory: a text of
/// random bytes.
constexpr std::size_t most_shapes = 200'000;

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

TextLayout::TextLayout() = default;
TextLayout::~TextLayout() = default;

void TextLayout::setFont(const QFont& font) {
    font_ = font;
    const QFontMetricsF metrics(font);
    // Wider than a space, because boxes reach beyond their words.
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
    // Another run over the same text lies where this one lies, too.
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
    const auto breaksAt = [&](std::uint32_t t) {
        // Cheap first: most words begin with a space.
        const std::string_view bytes = idsOnly ? std::string_view() : token_bytes(tokens, text, t);
        if (idsOnly || bytes.empty() || bytes.front() == ' ') {
            return true;
        }
        const auto lead = static_cast<unsigned char>(bytes.front());
        if (lead > 0x20 && lead < 0x7f) {
            return false;
        }
        return token_text(bytes, tokens.id[t], false).breakBefore;
    };
    int sinceClock = 0;
    while (placed_ < count) {
        const auto first = static_cast<std::uint32_t>(placed_);
        std::uint32_t end = first + 1;
        std::size_t bytes = token_bytes(tokens, text, first).size();
        bool closed = false;
        {
            const std::string_view lead = token_bytes(tokens, text, first);
            closed = idsOnly || lead.find_first_not_of(" \t") == std::string_view::npos ||
                     lead.find('\n') != std::string_view::npos ||
                     (lead.front() != ' ' &&
                      !(static_cast<unsigned char>(lead.front()) > 0x20 &&
                        static_cast<unsigned char>(lead.front()) < 0x7f) &&
                      token_text(lead, tokens.id[first], false).special);
        }
        while (!closed && end < count && end - first < longest_word_tokens && !breaksAt(end)) {
            const std::string_view next = token_bytes(tokens, text, end);
            bytes += next.size();
            if (bytes > longest_word_bytes) {
                break;
            }
            ++end;
            closed = next.find('\n') != std::string_view::npos;
        }
        words_.push_back({first, shape(first, end)});
        placed_ = end;
        placeWord(static_cast<std::uint32_t>(words_.size() - 1));
        if (++sinceClock == 32) {
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
    std::string key;
    for (std::uint32_t t = first; t < end; ++t) {
        const std::string_view bytes = token_bytes(tokens, data_->text, t);
        if (bytes.empty()) {
            key += std::to_string(tokens.id[t]);
            key += idsOnly ? '\xfd' : '\xfe'; // bytes that no UTF-8 text has
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
    std::vector<int> edges{0};
    for (std::uint32_t t = first; t < end; ++t) {
        const std::string_view bytes = token_bytes(tokens, data_->text, t);
        QString label;
        if (bytes.empty() && !idsOnly && labels_) {
            label = labels_(tokens.id[t]);
            missesLabels_ = missesLabels_ || label.isEmpty();
        }
        const TokenText shown = token_text(bytes, tokens.id[t], idsOnly, label);
        if (t == first) {
            made.spaceBefore = shown.spaceBefore;
            made.special = shown.special;
        }
        made.breakAfter = made.breakAfter || shown.breakAfter;
        all += shown.text;
        edges.push_back(static_cast<int>(all.size()));
    }
    made.direction = directionOf(all);
    made.number = std::any_of(all.begin(), all.end(), [](QChar c) { return c.isDigit(); });
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
    std::vector<Extent> extents;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        const auto from = static_cast<float>(line.cursorToX(edges[i]));
        const auto to = static_cast<float>(line.cursorToX(edges[i + 1]));
        extents.push_back({std::clamp(std::min(from, to), 0.0f, made.width),
                           std::clamp(std::max(from, to), 0.0f, made.width)});
    }
    // Tokens that meet inside one cluster (a base and its mark, a cut ligature) share its width, so that each
    // can be seen and hit.
    for (std::size_t i = 0; i < extents.size(); ++i) {
        if (extents[i].right - extents[i].left >= 1) {
            continue;
        }
        std::size_t from = i;
        std::size_t to = i + 1;
        while (to < extents.size() && extents[to].right - extents[to].left < 1) {
            ++to;
        }
        if (to < extents.size()) {
            ++to;
        } else if (from > 0) {
            --from;
        }
        float left = made.width;
        float right = 0;
        for (std::size_t j = from; j < to; ++j) {
            left = std::min(left, extents[j].left);
            right = std::max(right, extents[j].right);
        }
        right = std::max(right, left + 2);
        const float part = (right - left) / static_cast<float>(to - from);
        for (std::size_t j = from; j < to; ++j) {
            extents[j] = {left + part * static_cast<float>(j - from),
                          left + part * static_cast<float>(j - from + 1)};
        }
        i = to - 1;
    }
    extents_.insert(extents_.end(), extents.begin(), extents.end());
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
            // Wider than a line: it breaks between its tokens, which may lie from right to left.
            Extent part = extents_[shape.extents];
            for (std::uint32_t i = 1; i < shape.tokens; ++i) {
                const Extent& extent = extents_[shape.extents + i];
                const Extent grown{std::min(part.left, extent.left), std::max(part.right, extent.right)};
                if (grown.right - grown.left > width_) {
                    lines_.push_back({word, first + i, rightToLeft});
                    part = extent;
                } else {
                    part = grown;
                }
            }
            pen_ = part.right - part.left;
        }
    }
    lineOpen_ = !shape.breakAfter;
    if (undecided_ && shape.direction != Direction::none) {
        // A paragraph reads as its first word with a direction does (UAX 9, P2, P3).
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

qint64 TextLayout::endToken(qint64 line) const {
    return firstToken(line + 1);
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
        Extent part{0, shape.width};
        if (from > 0 || to < shape.tokens) {
            part = extents_[shape.extents + from];
            for (std::uint32_t i = from + 1; i < to; ++i) {
                part.left = std::min(part.left, extents_[shape.extents + i].left);
                part.right = std::max(part.right, extents_[shape.extents + i].right);
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
        // A number goes on in the direction of the words before it (W7).
        ways.push_back(shape.direction == Direction::none && shape.number ? before : shape.direction);
        before = shape.direction == Direction::none ? before : shape.direction;
    }
    before = base;
    for (std::size_t i = 0; i < ways.size(); ++i) {
        if (ways[i] == Direction::none) {
            // Between two of one direction it belongs to them (N1), else to the paragraph (N2).
            std::size_t next = i;
            while (next < ways.size() && ways[next] == Direction::none) {
                ++next;
            }
            ways[i] = before == (next < ways.size() ? ways[next] : base) ? before : base;
        }
        before = ways[i];
    }
    // What is placed, with levels: even ones read from left to right.
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
    // From the highest level to the lowest odd one, every run of that level or above is turned round (L2).
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
    // Room is beside a box where the next one, seen from left to right, is a gap away.
    std::vector<PlacedToken*> seen;
    seen.reserve(all.size());
    for (PlacedToken& placed : all) {
        seen.push_back(&placed);
    }
    const auto leftmost = [](const PlacedToken* a, const PlacedToken* b) { return a->left < b->left; };
    if (!std::is_sorted(seen.begin(), seen.end(), leftmost)) {
        std::sort(seen.begin(), seen.end(), leftmost);
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
    qreal distance = nearest ? 1e9 : 5; // boxes reach a little beyond their glyphs
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
