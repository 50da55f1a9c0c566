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

/// "viridis", "cividis", "magma" or "grey".
ColourMap colour_map(const std::string& name);

/// Shared parts of all kinds of figures: colours of the theme, text styles in three roles, and the requested
/// size.
struct Style : ChartInks {
    Style(const FigureSpec& spec, const Fonts& fonts);

    const Fonts& fonts;
    double size;                            ///< points
    TextStyle body;                         ///< size, text colour
    TextStyle soft;                         ///< size, labels
    TextStyle small;                        ///< numbers at axes, 7/8 of size
    ColourMap cells = ColourMap::viridis(); ///< magnitudes
    bool dark = false;
    double hairline = 0.5;
    double margin = 0; ///< around the content, points; only if the page has a colour of its own
    double width;      ///< of the content, points
};

/// Small text in lines of at most \p width, broken between words; the last of \p most lines is cut short.
std::vector<QString> wrapped_lines(const Style& style, const QString& text, double width, int most = 1000);

std::vector<QString> wrapped_lines(const Fonts& fonts, const TextStyle& letters, const QString& text,
                                   double width, int most = 1000);

/// Label, low end, colour bar, high end on one baseline. Returns the width that it took.
struct ScaleLegend {
    QString label;
    ColourMap map = ColourMap::viridis();
    ColourScale scale;
    bool signs = false;        ///< the colours part at 0: the ends have their sign
    bool clipped_low = false;  ///< values below the scale exist: "≤"
    bool clipped_high = false; ///< values above the scale exist: "≥"
    double bar = 56;           ///< points
};
double draw_scale_legend(DisplayList& list, const Style& style, QPointF baseline, const ScaleLegend& legend);
double scale_legend_width(const Style& style, const ScaleLegend& legend);

/// Sets the page's size, from the height that the content took or that the specification demands; InputError
/// when it is too small or when no page can be that high. Draws the title and, for the dark theme, the
/// background beneath everything.
DisplayList finish(const FigureSpec& spec, const Style& style, const DisplayList& content,
                   double content_height, const std::string& what_to_shorten);
/// Height that the title takes.
double title_height(const FigureSpec& spec, const Style& style);

/// \p value with at most one decimal, for messages.
std::string number_text(double value);

} // namespace ponderscope::figure
