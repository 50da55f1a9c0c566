// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QPainterPath>
#include <QString>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

struct hb_font_t;

namespace ponderscope::figure {

/// A font reduced to some glyphs.
struct FontSubset {
    QByteArray font;                              ///< TrueType, or the CFF table alone; without hints
    std::map<std::uint32_t, std::uint32_t> codes; ///< the CID of each glyph (ISO 32000-1, 9.7.4)
};

/// A font face, read by HarfBuzz. Metrics are in em, from the font's tables, without hinting. For one thread.
class FontFace {
public:
    /// Face \p index of a file. EnvironmentError: the face is damaged or cannot be embedded (no outlines, a
    /// variable font, or the licence in OS/2 fsType forbids it).
    FontFace(const std::string& path, unsigned index, QString family);

    [[nodiscard]] hb_font_t* font() const { return font_.get(); } ///< one em is units_per_em() units
    [[nodiscard]] int units_per_em() const;
    [[nodiscard]] const QString& family() const { return family_; }
    [[nodiscard]] const QByteArray& name() const { return name_; } ///< PostScript name
    [[nodiscard]] bool is_cff() const { return cff_; }             ///< PostScript outlines; false: TrueType
    [[nodiscard]] double ascender() const { return ascender_; }
    [[nodiscard]] double descender() const { return descender_; } ///< negative
    [[nodiscard]] double cap_height() const { return cap_height_; }
    [[nodiscard]] double x_height() const { return x_height_; }
    [[nodiscard]] std::uint32_t glyph_of(char32_t character) const; ///< before shaping; 0: no glyph
    [[nodiscard]] bool has(char32_t character) const { return glyph_of(character) != 0; }
    [[nodiscard]] double advance(std::uint32_t glyph) const;
    /// y downwards, origin on the baseline.
    [[nodiscard]] const QPainterPath& outline(std::uint32_t glyph) const;

    /// For a PDF, whose text is already shaped: glyphs and widths. The same glyphs give the same bytes.
    [[nodiscard]] FontSubset subset(const std::set<std::uint32_t>& glyphs) const;
    /// For programs that shape text themselves, such as browsers: a complete font file with these characters.
    [[nodiscard]] QByteArray subset(const std::set<char32_t>& characters) const;

private:
    [[noreturn]] void unusable(const char* why) const;
    [[noreturn]] void damaged() const;
    QString family_;
    QByteArray name_;
    std::shared_ptr<hb_font_t> font_;
    bool cff_ = false;
    double ascender_ = 0;
    double descender_ = 0;
    double cap_height_ = 0;
    double x_height_ = 0;
    mutable std::unordered_map<std::uint32_t, QPainterPath> outlines_;
};

} // namespace ponderscope::figure
