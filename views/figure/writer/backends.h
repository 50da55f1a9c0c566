// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/writer/display_list.h"
#include "views/figure/writer/fonts.h"

#include <QByteArray>
#include <QImage>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

class QPainter;

namespace ponderscope::figure {

// Back ends turn a display list into a file's bytes. The same list gives the same bytes. Qt's writers are not
// used: the PDF writer adds dates and random identifiers, the SVG writer (Qt 6.4) drops clip paths.

/// PDF 1.7, one page of the list's size. Text is searchable and uses an embedded font subset.
QByteArray to_pdf(const DisplayList& list, const Fonts& fonts);

/// SVG 1.1. Text stays searchable and editable, with an embedded font subset. Each text element states its
/// width, so that programs that ignore embedded fonts (Inkscape, LibreOffice) place it correctly.
QByteArray to_svg(const DisplayList& list, const Fonts& fonts);

/// PNG; the file contains its resolution (pHYs).
QByteArray to_png(const DisplayList& list, const Fonts& fonts, double dpi = 300);

QByteArray png_of(const QImage& image);

/// The list painted on white; one point is dpi / 72 pixels.
QImage to_image(const DisplayList& list, const Fonts& fonts, double dpi);

/// Paints the list in points. The painter's transformation positions and scales it.
void paint(const DisplayList& list, const Fonts& fonts, QPainter& painter);

/// "12.5", "0", "-3.125": at most \p decimals decimals, no trailing zeros, a decimal point in every locale.
QByteArray number(double value, int decimals = 3);
/// All operations of a path. \p operation writes one, given its letter (m, l or c) and points "x y x y".
QByteArray path_data(const QPainterPath& path,
                     const std::function<QByteArray(char letter, const QByteArray& points)>& operation);

/// A font face with the glyphs that a display list uses.
struct UsedFace {
    const FontFace* face = nullptr;
    std::map<std::uint32_t, QString> glyphs; ///< the text of each glyph; empty: another glyph has the text
    std::set<char32_t> characters;
    bool regular = false; ///< the list has regular text in this face
    bool bold = false;
};
/// The faces that \p list uses, in the order of first use.
std::vector<UsedFace> used_faces(const DisplayList& list, const Fonts& fonts);

} // namespace ponderscope::figure
