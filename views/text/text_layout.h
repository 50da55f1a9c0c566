// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"

#include <QFont>
#include <QGlyphRun>
#include <QList>

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

/// The positions of a sequence's tokens when its text is wrapped to a width. No widget; GUI thread only.
///
/// Shapes a word (tokens without white space between them) as a whole. So ligatures, kerning, joining scripts
/// and characters of several tokens look as in running text. Each distinct word is shaped once. prepare()
/// places tokens in slices. Coordinates: x from the left edge of the text, lines from 0.
class TextLayout {
public:
    struct PlacedToken {
        qint64 token = 0;
        qreal left = 0; ///< left edge of the box around the glyphs, without the gap before the word
        qreal right = 0;
        bool roomBefore = false; ///< the box may extend to the left (into a gap or the line's edge)
        bool roomAfter = false;  ///< the box may extend to the right (into a gap or the line's edge)
    };

    /// Sets the font and drops all glyphs.
    void setFont(const QFont& font);
    /// \p labels returns the name of a token without text, by its id; empty while unknown.
    void setLabels(std::function<QString(int)> labels) { labels_ = std::move(labels); }
    /// Whether a name was unknown when its token was placed.
    [[nodiscard]] bool missesLabels() const { return missesLabels_; }
    /// Null: empties the layout. Placed tokens stay if \p data continues their text.
    void setSequence(std::shared_ptr<const SequenceData> data);
    [[nodiscard]] const std::shared_ptr<const SequenceData>& sequence() const { return data_; }
    /// Wraps the placed tokens again. \p width in pixels, at least 40.
    void setWidth(qreal width);
    [[nodiscard]] qreal width() const { return width_; }

    /// Places more tokens for about \p budget. True: all tokens are placed.
    bool prepare(std::chrono::microseconds budget);
    [[nodiscard]] bool complete() const { return !data_ || placed_ == data_->tokens.size(); }
    [[nodiscard]] qint64 placedTokens() const { return static_cast<qint64>(placed_); }

    [[nodiscard]] qint64 lineCount() const {
        return static_cast<qint64>(lines_.size());
    } ///< of the placed tokens
    /// The number of lines, including an estimate for tokens that are not placed yet.
    [[nodiscard]] qint64 expectedLineCount() const;
    [[nodiscard]] qint64 lineOf(qint64 token) const; ///< -1: not placed
    [[nodiscard]] qint64 firstToken(qint64 line) const;
    [[nodiscard]] qint64 endToken(qint64 line) const { return firstToken(line + 1); }

    /// The tokens of a line in the order of the text, not of the screen (right-to-left words).
    [[nodiscard]] std::vector<PlacedToken> tokens(qint64 line) const;
    /// The token at or nearest to \p x in a line. Without \p nearest: -1 if it is 5 or more pixels away.
    [[nodiscard]] qint64 tokenAt(qint64 line, qreal x, bool nearest) const;
    /// Draws the glyphs of a line with the baseline at \p baseline.
    void draw(QPainter& painter, qint64 line, qreal x, qreal baseline, const QColor& text,
              const QColor& special) const;

    [[nodiscard]] qreal gap() const { return gap_; } ///< gap between words
    [[nodiscard]] std::size_t shapedWords() const { return shapes_.size(); }

private:
    struct Extent {
        float left = 0;
        float right = 0;
        bool inside = false; ///< begins inside a visible character
        /// The union of both extents; keeps this extent's `inside`.
        [[nodiscard]] Extent with(const Extent& other) const {
            return {std::min(left, other.left), std::max(right, other.right), inside};
        }
    };
    /// The direction of a word. Numbers and punctuation alone have none.
    enum class Direction : std::uint8_t { none, leftToRight, rightToLeft };
    struct Shape {
        QList<QGlyphRun> glyphs;
        float ascent = 0;
        float width = 0;
        std::uint32_t extents = 0; ///< index in extents_ of the first token's extent
        std::uint32_t tokens = 0;
        bool spaceBefore = false;
        bool special = false;
        bool breakAfter = false;
        Direction direction = Direction::none;
        bool number = false; ///< the word has Direction::none and keeps the previous direction
    };
    struct Word {
        std::uint32_t firstToken = 0;
        std::uint32_t shape = 0;
    };
    struct Line {
        std::uint32_t word = 0;
        std::uint32_t token = 0;  ///< first token of the line; inside a word if the word is wider than a line
        bool rightToLeft = false; ///< direction of its paragraph
    };
    /// A word, or the part of a word on one line.
    struct Piece {
        std::size_t word = 0;
        std::uint32_t from = 0; ///< range of tokens within the word
        std::uint32_t to = 0;
        Extent extent;
        qreal origin = 0; ///< x of the word's origin
    };
    /// The pieces of a line in the order of the text, with their positions.
    [[nodiscard]] std::vector<Piece> pieces(qint64 line) const;
    /// The direction of the first letter in \p word that has a direction.
    [[nodiscard]] static Direction directionOf(const QString& word);
    /// Places the pieces of a line with right-to-left words. Applies Unicode's bidirectional algorithm (UAX
    /// 9, rules N1, N2, L2) to words and gaps instead of characters.
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
    bool lineOpen_ = false;         ///< the next word may continue the last line
    std::size_t undecidedFrom_ = 0; ///< first line of a paragraph whose direction is still unknown
    bool undecided_ = false;
    std::vector<Shape> shapes_;
    std::vector<Extent> extents_;
    std::unordered_map<std::string, std::uint32_t> known_;
    std::function<QString(int)> labels_;
    bool missesLabels_ = false;
};

} // namespace ponderscope
