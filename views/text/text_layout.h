// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"

#include <QFont>
#include <QGlyphRun>
#include <QList>
#include <QRectF>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

class QPainter;

namespace ponderscope {

/// The positions of the tokens of a sequence when its text is wrapped to a width. No widget; GUI thread only.
///
/// Words (tokens without white space between them) are shaped as a whole, so that ligatures, kerning, joining
/// scripts and characters that several tokens share come out as in running text, and once each: the same word
/// elsewhere reuses the glyphs. Placing a million tokens is thus a million look-ups, done in slices by
/// prepare(); re-wrapping after a resize is additions only. Coordinates: x from the left edge of the text,
/// lines from 0; how tall a line is is the view's business.
class TextLayout {
public:
    struct PlacedToken {
        qint64 token = 0;
        qreal left = 0; ///< of the box around the glyphs, without the gap before the word
        qreal right = 0;
        bool roomBefore = false; ///< at its left is a gap or the line's end, into which its box may extend
        bool roomAfter = false;  ///< at its right
    };

    TextLayout();
    ~TextLayout();

    /// Forgets every glyph.
    void setFont(const QFont& font);
    /// Names of tokens that have no text of their own, by id; empty when it is not known yet.
    void setLabels(std::function<QString(int)> labels) { labels_ = std::move(labels); }
    /// A name was not known when its token was placed.
    [[nodiscard]] bool missesLabels() const { return missesLabels_; }
    /// Null empties the layout. Data that continues the placed text (a growing recording, another run on the
    /// same text) keeps the layout.
    void setSequence(std::shared_ptr<const SequenceData> data);
    [[nodiscard]] const std::shared_ptr<const SequenceData>& sequence() const { return data_; }
    /// Wraps the placed tokens again. \p width in pixels, at least 40 is used.
    void setWidth(qreal width);
    [[nodiscard]] qreal width() const { return width_; }

    /// Places more tokens for about \p budget; true when all are placed.
    bool prepare(std::chrono::microseconds budget);
    [[nodiscard]] bool complete() const { return !data_ || placed_ == data_->tokens.size(); }
    [[nodiscard]] qint64 placedTokens() const { return static_cast<qint64>(placed_); }

    [[nodiscard]] qint64 lineCount() const {
        return static_cast<qint64>(lines_.size());
    } ///< of the placed tokens
    /// The number of lines, with an estimate for tokens that are not placed yet.
    [[nodiscard]] qint64 expectedLineCount() const;
    [[nodiscard]] qint64 lineOf(qint64 token) const; ///< -1 when it is not placed
    [[nodiscard]] qint64 firstToken(qint64 line) const;
    [[nodiscard]] qint64 endToken(qint64 line) const;

    /// The tokens of a line in the order of the text, not of the screen (words may read from right to left).
    [[nodiscard]] std::vector<PlacedToken> tokens(qint64 line) const;
    /// Token at x of a line; the nearest one when \p nearest, else -1 beside the boxes.
    [[nodiscard]] qint64 tokenAt(qint64 line, qreal x, bool nearest) const;
    /// Draws the glyphs of a line with their baseline at \p baseline.
    void draw(QPainter& painter, qint64 line, qreal x, qreal baseline, const QColor& text,
              const QColor& special) const;

    [[nodiscard]] qreal gap() const { return gap_; } ///< between words
    [[nodiscard]] std::size_t shapedWords() const { return shapes_.size(); }

private:
    struct Extent {
        float left = 0;
        float right = 0;
        bool inside = false; ///< begins inside of a visible character
        /// The union of both extents; `inside` is this extent's.
        [[nodiscard]] Extent with(const Extent& other) const {
            return {std::min(left, other.left), std::max(right, other.right), inside};
        }
    };
    /// Which way a word reads. Numbers and punctuation alone have no way of their own.
    enum class Direction : std::uint8_t { none, leftToRight, rightToLeft };
    struct Shape {
        QList<QGlyphRun> glyphs;
        float ascent = 0;
        float width = 0;
        std::uint32_t extents = 0; ///< first of its tokens' extents
        std::uint32_t tokens = 0;
        bool spaceBefore = false;
        bool special = false;
        bool breakAfter = false;
        Direction direction = Direction::none;
        bool number = false; ///< of Direction::none: goes on in the direction before it
    };
    struct Word {
        std::uint32_t firstToken = 0;
        std::uint32_t shape = 0;
    };
    struct Line {
        std::uint32_t word = 0;
        std::uint32_t token = 0;  ///< of the sequence; inside the word only if that is wider than a line
        bool rightToLeft = false; ///< direction of its paragraph
    };
    /// A word, or its part on one line.
    struct Piece {
        std::size_t word = 0;
        std::uint32_t from = 0; ///< tokens within the word
        std::uint32_t to = 0;
        Extent extent;
        qreal origin = 0; ///< x of the word's own origin
    };
    /// The pieces of a line in the order of the text, each in its place.
    [[nodiscard]] std::vector<Piece> pieces(qint64 line) const;
    /// The direction of the first letter of \p word that has one.
    [[nodiscard]] static Direction directionOf(const QString& word);
    /// Places the pieces of a line that holds words from right to left: Unicode's bidirectional algorithm
    /// (UAX 9, rules N1, N2, L2) with words and the gaps between them for characters. Inside a word the
    /// shaper has done it.
    void placeBothWays(std::vector<Piece>& pieces, bool rightToLeft) const;
    std::uint32_t shape(std::uint32_t first, std::uint32_t end);
    void placeWord(std::uint32_t word);
    void wrapAll();
    [[nodiscard]] qreal gap(const Shape& shape) const { return shape.spaceBefore ? gap_ : 0; }

    QFont font_;
    qreal gap_ = 12;
    qreal width_ = 600;
    std::shared_ptr<const SequenceData> data_;
    std::size_t placed_ = 0;
    std::vector<Word> words_;
    std::vector<Line> lines_;
    qreal pen_ = 0;                 ///< right end of the last line
    bool lineOpen_ = false;         ///< the next word may join the last line
    std::size_t undecidedFrom_ = 0; ///< first line of a paragraph that has no word with a direction yet
    bool undecided_ = false;
    std::vector<Shape> shapes_;
    std::vector<Extent> extents_;
    std::unordered_map<std::string, std::uint32_t> known_;
    std::function<QString(int)> labels_;
    bool missesLabels_ = false;
};

} // namespace ponderscope
