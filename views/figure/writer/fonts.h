// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/writer/display_list.h"
#include "views/figure/writer/shaping.h"

#include <QPainterPath>
#include <QString>
#include <QStringList>

#include <memory>
#include <vector>

namespace ponderscope::figure {

/// The default font of figures, installed with Ponderscope.
inline constexpr const char* default_family = "DejaVu Sans";

/// The typeface of a figure, regular and bold, with fallback fonts of this machine for missing letters: Noto
/// Sans first, then the others in fontconfig's order. The user's language has no effect. Colour fonts (emoji)
/// are not used. Copies share loaded fonts. For one thread.
class Fonts {
public:
    /// EnvironmentError: the family is not installed, is damaged or cannot be embedded (FontFace).
    static Fonts load(const QString& family = QString::fromLatin1(default_family));
    /// Families of this machine with outlines. Only load() detects a family that cannot be embedded.
    static QStringList families();

    [[nodiscard]] const QString& family() const;
    [[nodiscard]] const FontFace& face(bool bold) const;
    /// The result is valid until the next call.
    [[nodiscard]] const ShapedText& shape(const QString& text, bool bold) const;
    // Lengths in points.
    [[nodiscard]] double width(const QString& text, const TextStyle& style) const {
        return shape(text, style.bold).width * style.size;
    }
    [[nodiscard]] double ascent(const TextStyle& style) const {
        return style.size * face(style.bold).ascender();
    }
    /// Below the baseline, positive.
    [[nodiscard]] double descent(const TextStyle& style) const {
        return -style.size * face(style.bold).descender();
    }
    [[nodiscard]] double cap_height(const TextStyle& style) const {
        return style.size * face(style.bold).cap_height();
    }
    [[nodiscard]] double x_height(const TextStyle& style) const {
        return style.size * face(style.bold).x_height();
    }
    /// The text, shortened at the end with "…" to at most \p width points.
    [[nodiscard]] QString elided(const QString& text, const TextStyle& style, double width) const;

private:
    struct Shelf;
    explicit Fonts(std::shared_ptr<Shelf> shelf);
    std::shared_ptr<Shelf> shelf_;
};

/// Characters that no font of this machine has, each once, in order. They are drawn as empty boxes.
std::vector<char32_t> missing_characters(const DisplayList& list, const Fonts& fonts);

/// The text as one outline, moved and rotated as the item requires, for back ends without text output.
QPainterPath outline_of(const TextItem& item, const Fonts& fonts);

} // namespace ponderscope::figure
