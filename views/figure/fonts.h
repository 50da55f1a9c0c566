// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/display_list.h"
#include "views/figure/truetype.h"

#include <QPainterPath>
#include <QRawFont>
#include <QString>
#include <QStringList>

#include <memory>
#include <unordered_map>
#include <vector>

namespace ponderscope::figure {

struct Glyph {
    std::uint32_t number = 0; ///< 0: the face has no such character
    char32_t character = 0;
    double advance = 0; ///< em
};

/// One face: metrics from the font's own tables, so that they do not depend on the screen or
/// on hinting.
class FontFace {
public:
    FontFace(QRawFont raw, QByteArray name);

    /// One glyph a character. No kerning and no ligatures, so that every viewer sets the text as it was
    /// measured here.
    [[nodiscard]] std::vector<Glyph> glyphs(const QString& text) const;
    [[nodiscard]] double width(const QString& text) const; ///< em
    [[nodiscard]] QPainterPath
    outline(std::uint32_t glyph) const; ///< em, y downwards, origin on the baseline
    [[nodiscard]] bool has(char32_t character) const;
    [[nodiscard]] const TrueType& tables() const { return *tables_; }
    [[nodiscard]] const QByteArray& name() const { return name_; } ///< a PostScript name

private:
    QRawFont raw_;
    QByteArray name_;
    std::shared_ptr<const TrueType> tables_;
    mutable std::unordered_map<char32_t, Glyph> cache_;
};

/// What figures are set in where nothing else is asked for: on every machine that has Ponderscope.
inline constexpr const char* default_family = "DejaVu Sans";

/// The typeface of a figure, regular and bold. Needs a QGuiApplication; used on the thread that made it.
class Fonts {
public:
    /// EnvironmentError when the family is not installed, or cannot be embedded: without TrueType outlines
    /// (`glyf`), variable, or not allowed by its licence (OS/2 fsType).
    static Fonts load(const QString& family = QString::fromLatin1(default_family));
    /// Scalable families of this machine; whether one can be embedded shows when it is loaded.
    static QStringList families();

    [[nodiscard]] const QString& family() const { return family_; }
    [[nodiscard]] const FontFace& face(bool bold) const { return bold ? bold_ : regular_; }
    [[nodiscard]] double width(const QString& text, const TextStyle& style) const;
    [[nodiscard]] double ascent(const TextStyle& style) const;     ///< points above the baseline, positive
    [[nodiscard]] double descent(const TextStyle& style) const;    ///< points below the baseline, positive
    [[nodiscard]] double cap_height(const TextStyle& style) const; ///< points
    [[nodiscard]] double x_height(const TextStyle& style) const;   ///< points
    /// Cut at the end with "…" so that it is at most \p width points wide.
    [[nodiscard]] QString elided(const QString& text, const TextStyle& style, double width) const;

private:
    Fonts(QString family, FontFace regular, FontFace bold);
    QString family_;
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
