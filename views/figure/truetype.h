// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace ponderscope::figure {

/// The tables of a TrueType font that subsetting needs, as they stand in the font (OpenType
/// specification 1.9, big-endian).
struct TrueTypeTables {
    QByteArray head, hhea, maxp, hmtx, loca, glyf, os2;
};

/// A font cut down to some glyphs, numbered anew from 0 (.notdef) in the order of their old numbers.
struct FontSubset {
    QByteArray font;                   ///< a TrueType file without hints; has a cmap, so browsers take it too
    std::vector<std::uint32_t> glyphs; ///< old number of each new one
    std::map<std::uint32_t, std::uint32_t> renumbered; ///< old -> new
};

/// Reads glyph data of one TrueType font. Everything is bounds-checked: a broken font is an EnvironmentError.
class TrueType {
public:
    explicit TrueType(TrueTypeTables tables);

    [[nodiscard]] int units_per_em() const { return units_per_em_; }
    [[nodiscard]] int glyph_count() const { return glyph_count_; }
    [[nodiscard]] int advance(std::uint32_t glyph) const; ///< font units
    [[nodiscard]] int ascender() const;
    [[nodiscard]] int descender() const; ///< negative
    [[nodiscard]] int cap_height() const;
    [[nodiscard]] int x_height() const;
    [[nodiscard]] std::vector<int> bounding_box() const; ///< xMin, yMin, xMax, yMax

    /// \p characters maps code points to glyphs and becomes the cmap. Parts of composite glyphs are taken
    /// along. Hinting programs are left out: figures are drawn at any scale. The same input gives the same
    /// bytes.
    [[nodiscard]] FontSubset subset(const std::map<char32_t, std::uint32_t>& characters) const;

private:
    [[nodiscard]] QByteArray glyph(std::uint32_t number) const;
    [[nodiscard]] int left_side_bearing(std::uint32_t glyph) const;
    TrueTypeTables tables_;
    int units_per_em_ = 0;
    int glyph_count_ = 0;
    int long_metrics_ = 0;
    bool long_offsets_ = false;
};

} // namespace ponderscope::figure
