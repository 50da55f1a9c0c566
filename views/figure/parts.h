// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_map.h"
#include "views/common/theme.h"
#include "views/figure/display_list.h"
#include "views/figure/fonts.h"
#include "views/figure/spec.h"

#include <QString>

#include <string>
#include <vector>

namespace ponderscope::figure {

/// Colours of runs by name ("okabe_ito", "grey"); empty for "default", which is the theme's.
std::vector<QColor> palette_colours(const std::string& name, bool dark);
/// Of halting rules by their number in policy_kinds(), told apart by the colour-blind; anew behind the last,
/// with dashes (round_of).
const std::vector<QColor>& rule_colours(bool dark);
/// "viridis", "cividis", "magma" or "grey".
ColourMap colour_map(const std::string& name);

/// What all kinds of figures share: colours of the theme, text styles in three roles, and the size asked for.
struct Style {
    Style(const FigureSpec& spec, const Fonts& fonts);
    void setColours(const Palette& palette); ///< of letters, lines and of runs A and B: those of a window

    const Fonts& fonts;
    Palette colours;
    std::vector<QColor> runs;               ///< one a run: A, B, and the others; repeats after the last
    std::vector<QColor> rules;              ///< one a halting rule; with a named palette that of runs
    double size;                            ///< points
    TextStyle body;                         ///< size, text colour
    TextStyle soft;                         ///< size, labels
    TextStyle small;                        ///< numbers at axes, 7/8 of size
    ColourMap cells = ColourMap::viridis(); ///< magnitudes
    bool dark = false;
    double hairline = 0.5;
    double margin = 0; ///< around the content, points; only where the page has a colour of its own
    double width;      ///< of the content, points
};

/// "0", "2.5", "−3" with a real minus sign. \p step: the distance between ticks, which says how many decimals
/// all of them have; 0: as many as the value needs.
QString tick_label(double value, double step = 0);
/// Text for LaTeX, what is special to it escaped.
std::string tex(const QString& text);
/// Whether there is room for ticks from \p low to \p high, numbers of 64 bits: none between two means that
/// are equal but for the order in which they were summed.
bool are_apart(double low, double high);
/// At most \p most round values (1, 2, 5 times a power of ten) within [low, high].
std::vector<double> round_ticks(double low, double high, int most);
struct AxisRange {
    double low = 0;
    double high = 1;
};
/// Widened to round numbers that hold both values.
AxisRange round_range(double low, double high, int most_ticks);

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

/// One decimal at most, for messages.
std::string number_text(double value);

// CSV as RFC 4180 has it: full stops, the shortest digits that read back as the same number, nothing for NaN.
std::string csv_text(const std::string& text);
/// Bytes of a token: as they are when they are UTF-8, else made visible.
std::string csv_bytes(const std::string& bytes);
std::string csv_number(float value);
std::string csv_number(double value);
inline std::string csv_number(std::int64_t value) {
    return std::to_string(value);
}

} // namespace ponderscope::figure
