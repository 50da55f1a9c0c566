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
        lines_.push_back({word, first});
        pen_ = shape.width;
        if (shape.width > width_) {
            // Wider than a line: it breaks between its tokens, which may lie from right to left.
            Extent part = extents_[shape.extents];
            for (std::uint32_t i = 1; i < shape.tokens; ++i) {
                const Extent& extent = extents_[shape.extents + i];
                const Extent grown{std::min(part.left, extent.left), std::max(part.right, extent.right)};
                if (grown.right - grown.left > width_) {
                    lines_.push_back({word, first + i});
                    part = extent;
                } else {
                    part = grown;
                }
            }
            pen_ = part.right - part.left;
        }
    }
    lineOpen_ = !shape.breakAfter;
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

template <typename Visit>
void TextLayout::walk(qint64 line, Visit visit) const {
    if (line < 0 || line >= lineCount()) {
        return;
    }
    const Line& start = lines_[static_cast<std::size_t>(line)];
    const auto end = static_cast<std::uint32_t>(endToken(line));
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
        visit(word, shape, pen - part.left, from, to, part);
        pen += part.right - part.left;
    }
}

std::vector<TextLayout::PlacedToken> TextLayout::tokens(qint64 line) const {
    std::vector<PlacedToken> all;
    walk(line, [&](const Word& word, const Shape& shape, qreal origin, std::uint32_t from, std::uint32_t to,
                   const Extent&) {
        if (shape.spaceBefore && !all.empty()) {
            all.back().roomAfter = true;
        }
        for (std::uint32_t i = from; i < to; ++i) {
            const Extent& extent = extents_[shape.extents + i];
            all.push_back({static_cast<qint64>(word.firstToken) + i, origin + extent.left,
                           std::min<qreal>(origin + extent.right, std::max(width_, origin + extent.left + 2)),
                           i == 0 && shape.spaceBefore, false});
        }
    });
    if (!all.empty()) {
        all.front().roomBefore = true;
        all.back().roomAfter = true;
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
    walk(line, [&](const Word&, const Shape& shape, qreal origin, std::uint32_t from, std::uint32_t to,
                   const Extent& piece) {
        painter.setPen(shape.special ? special : text);
        const QPointF at(x + origin, baseline - static_cast<qreal>(shape.ascent));
        const bool part = from > 0 || to < shape.tokens;
        const bool wide = static_cast<qreal>(shape.width) > width_;
        if (part || wide) {
            const qreal left = origin + piece.left;
            const qreal right = std::min<qreal>(origin + piece.right, width_);
            painter.save();
            painter.setClipRect(QRectF(x + left, baseline - 1000, right - left, 2000), Qt::IntersectClip);
        }
        for (const QGlyphRun& run : shape.glyphs) {
            painter.drawGlyphRun(at, run);
        }
        if (part || wide) {
            painter.restore();
        }
    });
}

} // namespace ponderscope
