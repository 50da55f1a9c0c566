// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/writer/display_list.h"
#include "views/figure/writer/fonts.h"

#include <QByteArray>
#include <QImage>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

class QPainter;

namespace ponderscope::figure {

// Back ends: a display list in, a file's bytes out. The same list gives the same bytes: no dates, no random
// identifiers. Qt's own PDF and SVG generators are not used: the first writes dates and random ids, the
// second (Qt 6.4) drops clip paths.

/// PDF 1.7, one page of exactly the list's size. Text is set in an embedded subset and can be searched and
/// copied.
QByteArray to_pdf(const DisplayList& list, const Fonts& fonts);

/// SVG 1.1. Text stays text, so that it can be searched and edited, in an embedded subset of the typeface;
/// each text also carries its width, so that a program that ignores embedded fonts (Inkscape, LibreOffice)
/// sets it in the same place.
QByteArray to_svg(const DisplayList& list, const Fonts& fonts);

/// PNG at a resolution that the file names (pHYs).
QByteArray to_png(const DisplayList& list, const Fonts& fonts, double dpi = 300);

/// The list painted on white, one point being dpi / 72 pixels.
QImage to_image(const DisplayList& list, const Fonts& fonts, double dpi);

/// Paints the list in points; the painter's transformation places and scales it.
void paint(const DisplayList& list, const Fonts& fonts, QPainter& painter);

/// "12.5", "0", "-3.125": at most \p decimals, no trailing zeros, a full stop in every locale.
QByteArray number(double value, int decimals = 3);

/// The use of one font face in a display list.
struct UsedFace {
    const FontFace* face = nullptr;
    std::map<std::uint32_t, QString> glyphs; ///< and the text that each stands for; empty: none of its own
    std::set<char32_t> characters;
    bool regular = false; ///< the styles it is used in
    bool bold = false;
};
/// The faces that \p list uses, in the order of their first use.
std::vector<UsedFace> used_faces(const DisplayList& list, const Fonts& fonts);

} // namespace ponderscope::figure
