// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/writer/font_face.h"

#include <QString>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace ponderscope::figure {

struct ShapedGlyph {
    std::uint32_t number = 0; ///< 0: no font has the character
    double x = 0;             ///< em, of its origin, from the text's left end
    double y = 0;             ///< em, above the baseline
};

/// A grapheme cluster: a letter with its marks, a ligature, a syllable.
struct ShapedCluster {
    const FontFace* face = nullptr;
    std::size_t glyphs = 0; ///< the first, and behind the last, of ShapedText::glyphs
    std::size_t glyphs_end = 0;
    qsizetype from = 0; ///< of the text, UTF-16
    qsizetype to = 0;
    double left = 0; ///< em
    double right = 0;
    bool right_to_left = false;
};

/// A line of text as it is drawn.
struct ShapedText {
    std::vector<ShapedGlyph> glyphs;
    std::vector<ShapedCluster> clusters; ///< from left to right, as the glyphs
    double width = 0;                    ///< em
    bool right_to_left = false;          ///< the way its first word with a direction reads

    /// Left and right end, in em, of the text between two places (UTF-16, parts of a character count); a
    /// cluster is divided evenly.
    [[nodiscard]] std::pair<double, double> extent(double from, double to) const;
};

/// Which face draws the characters of a grapheme; bold or not is the caller's to know. \p before: that of the
/// grapheme before it, null at the beginning.
using FaceOf =
    std::function<const FontFace*(const QString& grapheme, const char* language, const FontFace* before)>;

/// Kerned, joined and reordered as its scripts want it: Unicode's bidirectional algorithm (UAX 9, by
/// FriBidi), a face a grapheme, and OpenType's rules (by HarfBuzz), without the optional ligatures. No line
/// breaks.
ShapedText shape_text(const QString& text, const FaceOf& face_of);

/// Embedding levels (UAX 9) of a paragraph, one a UTF-16 unit, and whether it reads from right to left: as
/// its first letter with a direction does.
struct BidiLevels {
    std::vector<std::int8_t> levels;
    bool right_to_left = false;
};
BidiLevels bidi_levels(const QString& paragraph);

/// The order from left to right of things with these levels (UAX 9, rule L2).
std::vector<std::size_t> visual_order(const std::vector<std::int8_t>& levels);

/// The scripts at both sides of \p at separate their letters, so that a gap is allowed. False inside a
/// grapheme, in scripts that join or stack letters or read from right to left, and before closing marks of
/// ideographs: no line begins with it.
bool may_part(const QString& text, qsizetype at);

} // namespace ponderscope::figure
