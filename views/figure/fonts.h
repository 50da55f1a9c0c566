// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/display_list.h"
#include "views/figure/truetype.h"

#include <QPainterPath>
#include <QRawFont>
#include <QString>

#include <memory>
#include <unordered_map>
#include <vector>

namespace ponderscope::figure {

struct Glyph {
    std::uint32_t number = 0; ///< 0: the face has no such character
    char32_t character = 0;
    double advance = 0; ///< em
};

/// One face of DejaVu Sans: metrics from the font's own tables, so that they do not depend on the screen or
/// on hinting.
class FontFace {
public:
    FontFace(QRawFont raw, bool bold);

    /// One glyph a character. No kerning and no ligatures, so that every viewer sets the text as it was
    /// measured here.
    [[nodiscard]] std::vector<Glyph> glyphs(const QString& text) const;
    [[nodiscard]] double width(const QString& text) const; ///< em
    [[nodiscard]] QPainterPath
    outline(std::uint32_t glyph) const; ///< em, y downwards, origin on the baseline
    [[nodiscard]] bool has(char32_t character) const;
    [[nodiscard]] const TrueType& tables() const { return *tables_; }
    [[nodiscard]] QByteArray name() const { return bold_ ? "DejaVuSans-Bold" : "DejaVuSans"; }

private:
    QRawFont raw_;
    bool bold_ = false;
    std::shared_ptr<const TrueType> tables_;
    mutable std::unordered_map<char32_t, Glyph> cache_;
};

/// The typeface of every figure. Needs a QGuiApplication; used on the thread that made it.
class Fonts {
public:
    /// EnvironmentError when DejaVu Sans is not installed.
    static Fonts load();

    [[nodiscard]] const FontFace& face(bool bold) const { return bold ? bold_ : regular_; }
    [[nodiscard]] double width(const QString& text, const TextStyle& style) const;
    [[nodiscard]] double ascent(const TextStyle& style) const;     ///< points above the baseline, positive
    [[nodiscard]] double descent(const TextStyle& style) const;    ///< points below the baseline, positive
    [[nodiscard]] double cap_height(const TextStyle& style) const; ///< points
    [[nodiscard]] double x_height(const TextStyle& style) const;   ///< points
    /// Cut at the end with "…" so that it is at most \p width points wide.
    [[nodiscard]] QString elided(const QString& text, const TextStyle& style, double width) const;

private:
    Fonts(FontFace regular, FontFace bold);
    FontFace regular_;
    FontFace bold_;
};

/// Characters of the list's texts that the typeface lacks, each once, in code point order. They are drawn as
/// empty boxes.
std::vector<char32_t> missing_characters(const DisplayList& list, const Fonts& fonts);

/// The text as one outline, moved and rotated as the item says: for back ends that do not set text
/// themselves.
QPainterPath outline_of(const TextItem& item, const Fonts& fonts);

} // namespace ponderscope::figure
