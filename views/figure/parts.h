// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart_axis.h"
#include "views/common/colour_map.h"
#include "views/common/format.h"
#include "views/figure/spec.h"
#include "views/figure/writer/display_list.h"
#include "views/figure/writer/fonts.h"

#include <QString>

#include <string>
#include <vector>

namespace ponderscope::figure {

/// Common parts of all figures: colours of the theme, text styles in three roles, and the requested size.
struct Style : ChartInks {
    Style(const FigureSpec& spec, const Fonts& fonts);

    const Fonts& fonts;
    double size;     ///< font size in points
    TextStyle body;  ///< text of `size`
    TextStyle soft;  ///< labels of `size`
    TextStyle small; ///< numbers at axes, 7/8 of `size`
    ColourMap cells; ///< map for magnitudes
    bool dark = false;
    double hairline = 0.5;
    double margin = 0; ///< margin around the content in points, if the page has a background colour
    double width;      ///< width of the content in points
};

/// Breaks a text between words into lines of at most \p width. Cuts text beyond \p most lines, with "…".
std::vector<QString> wrapped_lines(const Fonts& fonts, const TextStyle& letters, const QString& text,
                                   double width, int most = 1000);

struct ScaleLegend {
    QString label;
    ColourMap map;
    ColourScale scale;
    bool signs = false;        ///< diverging scale: draw both ends with signs
    bool clipped_low = false;  ///< values below the scale exist: draw "≤"
    bool clipped_high = false; ///< values above the scale exist: draw "≥"
    double bar = 56;           ///< length of the colour bar in points
};
/// Draws label, low end, colour bar and high end on one baseline. Returns the width.
double draw_scale_legend(DisplayList& list, const Style& style, QPointF baseline, const ScaleLegend& legend);
double scale_legend_width(const Style& style, const ScaleLegend& legend);

/// Sets the page's size from the content's height or the specification's height, draws the title and, for the
/// dark theme, the background. InputError: the height is too small for the content or too large for a page.
DisplayList finish(const FigureSpec& spec, const Style& style, const DisplayList& content,
                   double content_height, const std::string& what_to_shorten);
double title_height(const FigureSpec& spec, const Style& style);

/// \p value with at most one decimal, for messages.
std::string number_text(double value);

} // namespace ponderscope::figure
