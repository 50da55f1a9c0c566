// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QImage>
#include <QPainterPath>
#include <QRectF>
#include <QString>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

struct hb_face_t;
struct hb_font_t;

namespace ponderscope::figure {

/// A font cut down to some glyphs.
struct FontSubset {
    QByteArray font; ///< TrueType, or the CFF table alone; without hints: figures are drawn at any scale
    std::map<std::uint32_t, std::uint32_t> codes; ///< the CID of each old glyph in a PDF (ISO 32000-1, 9.7.4)
};

/// A font face, read by HarfBuzz: metrics in em from the font's own tables, so that they depend neither on
/// the screen nor on hinting. Used on one thread.
class FontFace {
public:
    /// Face \p index of a file. EnvironmentError when it is damaged or cannot be embedded: without outlines,
    /// variable, or not allowed by its licence (OS/2 fsType).
    /// \p pictures: one of coloured pictures instead of outlines (CBDT, sbix), as emoji are.
    FontFace(const std::string& path, unsigned index, QString family, bool pictures = false);

    [[nodiscard]] hb_font_t* font() const { return font_.get(); } ///< its units: units_per_em() an em
    [[nodiscard]] int units_per_em() const;
    [[nodiscard]] const QString& family() const { return family_; }
    [[nodiscard]] const QByteArray& name() const { return name_; } ///< a PostScript name
    [[nodiscard]] bool is_cff() const { return cff_; }             ///< PostScript outlines, else TrueType
    [[nodiscard]] double ascender() const { return ascender_; }
    [[nodiscard]] double descender() const { return descender_; } ///< negative
    [[nodiscard]] double cap_height() const { return cap_height_; }
    [[nodiscard]] double x_height() const { return x_height_; }
    [[nodiscard]] std::uint32_t glyph_of(char32_t character) const; ///< before shaping; 0: it has none
    [[nodiscard]] bool has(char32_t character) const { return glyph_of(character) != 0; }
    [[nodiscard]] bool is_pictures() const { return pictures_; } ///< outlines and subsets are of no use then
    /// The picture of a glyph, with its alpha; null: the font has none for this glyph, or a damaged one.
    [[nodiscard]] const QImage& picture(std::uint32_t glyph) const;
    [[nodiscard]] QRectF picture_box(std::uint32_t glyph) const; ///< em, y downwards, from the baseline
    [[nodiscard]] double advance(std::uint32_t glyph) const;
    /// y downwards, origin on the baseline.
    [[nodiscard]] const QPainterPath& outline(std::uint32_t glyph) const;

    /// For a PDF, which has shaped its text: glyphs and their widths, no characters. The same glyphs give the
    /// same bytes.
    [[nodiscard]] FontSubset subset(const std::set<std::uint32_t>& glyphs) const;
    /// For programs that shape on their own, as browsers do: a whole font file of these characters.
    [[nodiscard]] QByteArray subset(const std::set<char32_t>& characters) const;

private:
    struct Release {
        void operator()(hb_font_t* font) const;
    };
    [[noreturn]] void unusable(const char* why) const;
    [[noreturn]] void damaged() const;
    QString family_;
    QByteArray name_;
    std::unique_ptr<hb_font_t, Release> font_;
    bool cff_ = false;
    bool pictures_ = false;
    double ascender_ = 0;
    double descender_ = 0;
    double cap_height_ = 0;
    double x_height_ = 0;
    mutable std::unordered_map<std::uint32_t, QPainterPath> outlines_;
    mutable std::unordered_map<std::uint32_t, QImage> images_;
};

} // namespace ponderscope::figure
