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
    double x = 0;             ///< em, origin relative to the text's left end
    double y = 0;             ///< em, above the baseline
};

/// A grapheme cluster: for example a letter with its marks, a ligature or a syllable.
struct ShapedCluster {
    const FontFace* face = nullptr;
    std::size_t glyphs = 0; ///< the glyphs [glyphs, glyphs_end) of ShapedText::glyphs
    std::size_t glyphs_end = 0;
    qsizetype from = 0; ///< index of the first UTF-16 unit in the text
    qsizetype to = 0;
    double left = 0; ///< em
    double right = 0;
    bool right_to_left = false;
};

struct ShapedText {
    std::vector<ShapedGlyph> glyphs;
    std::vector<ShapedCluster> clusters; ///< from left to right, like the glyphs
    double width = 0;                    ///< em
    bool right_to_left = false;          ///< direction of the first word with a direction

    /// Left and right end, in em, of the text between two positions (UTF-16; fractions are parts of a
    /// character). A cluster is divided evenly.
    [[nodiscard]] std::pair<double, double> extent(double from, double to) const;
};

/// Returns the face for the characters of a grapheme. The callable decides between regular and bold. \p
/// before: the face of the previous grapheme, null at the beginning.
using FaceOf =
    std::function<const FontFace*(const QString& grapheme, const char* language, const FontFace* before)>;

/// Shapes a text that has no line breaks. Applies Unicode's bidirectional algorithm (UAX 9, by FriBidi), one
/// face for each grapheme, and OpenType's rules (by HarfBuzz) without optional ligatures.
ShapedText shape_text(const QString& text, const FaceOf& face_of);

/// Embedding levels (UAX 9) of a paragraph, one for each UTF-16 unit, and the paragraph's direction. The
/// first letter with a direction gives the paragraph's direction.
struct BidiLevels {
    std::vector<std::int8_t> levels;
    bool right_to_left = false;
};
BidiLevels bidi_levels(const QString& paragraph);

/// The order from left to right of items with these levels (UAX 9, rule L2).
std::vector<std::size_t> visual_order(const std::vector<std::int8_t>& levels);

/// Whether a gap between tokens may separate the text at \p at. False inside a grapheme, in scripts that join
/// or stack letters, and in scripts from right to left. Also false before closing marks of ideographs,
/// because such a mark never begins a line.
bool may_part(const QString& text, qsizetype at);

} // namespace ponderscope::figure
