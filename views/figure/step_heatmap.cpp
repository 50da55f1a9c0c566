// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/format.h"
#include "views/common/value_look.h"
#include "views/figure/figure.h"
#include "views/figure/parts.h"
#include "views/figure/token_pieces.h"

#include "core/base/error.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

/// Columns as they are drawn: one a token, or the mean of several where a page cannot show that many, as in
/// the window.
struct Columns {
    std::int64_t count = 0;
    std::int64_t tokens_each = 1;
    std::vector<float> values; ///< [column * steps + step]; NaN: not recorded
    std::vector<bool> ran;     ///< same shape; false: halted
    std::vector<bool> exists;  ///< [column]: some token of it shows a row
};

Columns columns_of(const StepSignal& signal, std::int64_t most) {
    const auto tokens = static_cast<std::int64_t>(signal.values.size());
    Columns columns;
    columns.tokens_each = (tokens + most - 1) / most;
    columns.count = (tokens + columns.tokens_each - 1) / columns.tokens_each;
    const auto cells = static_cast<std::size_t>(columns.count * signal.steps);
    columns.values.assign(cells, std::numeric_limits<float>::quiet_NaN());
    columns.ran.assign(cells, false);
    columns.exists.assign(static_cast<std::size_t>(columns.count), false);
    std::vector<Moments> means(cells);
    for (std::int64_t token = 0; token < tokens; ++token) {
        const auto i = static_cast<std::size_t>(token);
        if (signal.executed[i] >= 0) {
            columns.exists[static_cast<std::size_t>(token / columns.tokens_each)] = true;
        }
        for (std::int64_t step = 0; step < signal.steps && step <= signal.executed[i]; ++step) {
            const auto cell = static_cast<std::size_t>(token / columns.tokens_each * signal.steps + step);
            const float value = signal.values[i][static_cast<std::size_t>(step)];
            columns.ran[cell] = true;
            if (std::isfinite(value)) {
                means[cell].add(static_cast<double>(value));
                columns.values[cell] = static_cast<float>(means[cell].mean);
            }
        }
    }
    return columns;
}

void set_scale(const FigureSpec& spec, const StepSignal& signal, const Columns& columns,
               ScaleLegend& legend) {
    ValueLook look = look_of(kind_of_signal(signal.info), spread_of(std::span<const float>(columns.values)));
    look.hold(spec.range);
    legend.map = look.diverging ? ColourMap::diverging(spec.theme == "dark") : colour_map(spec.colour_map);
    legend.scale = look.scale;
    legend.signs = look.isSigned();
    for (const float value : columns.values) {
        legend.clipped_low = legend.clipped_low || static_cast<double>(value) < look.scale.low;
        legend.clipped_high = legend.clipped_high || static_cast<double>(value) > look.scale.high;
    }
}

struct CellColours {
    QRgb halted;
    QRgb missing;
};

QRgb colour_of(const Columns& columns, std::size_t cell, const ColourMap& map, const ColourScale& scale,
               const CellColours& others) {
    if (!columns.ran[cell]) {
        const std::size_t steps = columns.ran.size() / columns.exists.size();
        return columns.exists[cell / steps] ? others.halted : others.missing;
    }
    return std::isnan(columns.values[cell]) ? others.missing : map.at(scale.position(columns.values[cell]));
}

void draw_cells(DisplayList& list, const QRectF& plot, double row_gap, const Columns& columns,
                std::int64_t steps, const ColourMap& map, const ColourScale& scale,
                const CellColours& others) {
    const double row_height =
        (plot.height() - row_gap * static_cast<double>(steps - 1)) / static_cast<double>(steps);
    const double column_width = plot.width() / static_cast<double>(columns.count);
    for (std::int64_t step = 0; step < steps; ++step) {
        const double y = plot.y() + static_cast<double>(step) * (row_height + row_gap);
        const auto colour = [&](std::int64_t column) {
            return colour_of(columns, static_cast<std::size_t>(column * steps + step), map, scale, others);
        };
        if (columns.count * steps > most_vector_cells) {
            QImage row(static_cast<int>(columns.count), 1, QImage::Format_RGB32);
            for (std::int64_t column = 0; column < columns.count; ++column) {
                row.setPixel(static_cast<int>(column), 0, colour(column));
            }
            list.image({plot.x(), y, plot.width(), row_height}, row);
            continue;
        }
        // Neighbours of one colour are one rectangle. Each reaches a little under the next one, so that no
        // viewer shows a seam.
        for (std::int64_t column = 0; column < columns.count;) {
            std::int64_t end = column + 1;
            while (end < columns.count && colour(end) == colour(column)) {
                ++end;
            }
            const double overlap = end < columns.count ? std::min(0.3, column_width / 2) : 0;
            list.rect({plot.x() + static_cast<double>(column) * column_width, y,
                       static_cast<double>(end - column) * column_width + overlap, row_height},
                      QColor(colour(column)));
            column = end;
        }
    }
}

/// The tokens themselves under their columns, turned, where there is room for letters. Returns the height
/// that they took.
double draw_token_names(DisplayList& list, const Style& style, const QRectF& plot, const RunRows& run,
                        double column_width) {
    const double room = 7.5 * style.size;
    double longest = 0;
    for (const TokenPiece& piece : token_pieces(run)) {
        TextStyle text = style.small;
        text.color = piece.invisible || piece.text.isEmpty() ? style.colours.soft : style.colours.text;
        const QString name = style.fonts.elided(piece.text.isEmpty() ? u"·"_s : piece.text, text,
                                                room); // a dot where it stands inside a character
        const double x = plot.x() + (static_cast<double>(piece.token - run.first) + 0.5) * column_width;
        list.text(name, {x + style.fonts.x_height(text) / 2, plot.bottom() + 3}, text, Align::right, 90);
        longest = std::max(longest, style.fonts.width(name, text));
    }
    return 3 + longest;
}

double draw_token_axis(DisplayList& list, const Style& style, const QRectF& plot, const RunRows& run,
                       const Columns& columns) {
    const double per_token = plot.width() / static_cast<double>(run.count());
    const double baseline = plot.bottom() + 3 + style.fonts.cap_height(style.small);
    const int most = std::max(2, static_cast<int>(plot.width() / (5 * style.size)));
    double right_edge = 0;
    for (const double tick :
         round_ticks(static_cast<double>(run.first), static_cast<double>(run.last - 1), most)) {
        if (tick != std::floor(tick)) {
            continue;
        }
        const double x = plot.x() + (tick - static_cast<double>(run.first) + 0.5) * per_token;
        list.line({x, plot.bottom() + 0.5}, {x, plot.bottom() + 2.3},
                  {style.colours.soft, style.hairline, {}, false});
        const QString label = tick_label(tick, 0);
        const double half = style.fonts.width(label, style.small) / 2;
        const double at = std::clamp(x, half, style.width - half);
        list.text(label, {at, baseline}, style.small, Align::center);
        right_edge = at + half;
    }
    QString name = u"token"_s;
    if (columns.tokens_each > 1) {
        name += u" (each column: mean of %1 tokens)"_s.arg(columns.tokens_each);
    }
    // Beside the numbers where there is room, else beneath them.
    const double wide = style.fonts.width(name, style.small);
    if (plot.right() - right_edge > wide + style.size) {
        list.text(name, {plot.right(), baseline}, style.small, Align::right);
        return baseline - plot.bottom() + 1.5;
    }
    list.text(name, {plot.center().x(), baseline + style.size * 1.25}, style.soft, Align::center);
    return baseline - plot.bottom() + style.size * 1.25 + 2;
}

std::string table_of(const FigureSpec& spec, const RunRows& run, const StepSignal& signal) {
    std::string csv = "token,id,text,row,step," + csv_text(signal.info.name) + "\n";
    for (std::int64_t token = run.first; token < run.last; ++token) {
        const auto i = static_cast<std::size_t>(token - run.first);
        const auto row = run.shown(token, spec.attribution);
        if (!row) {
            continue;
        }
        const std::string start = std::to_string(token) + "," +
                                  std::to_string(run.rows.id[run.local(token)]) + "," +
                                  csv_bytes(token_bytes_of(run, token)) + "," +
                                  std::to_string(run.rows.first + static_cast<std::int64_t>(*row)) + ",";
        for (std::int64_t step = 0; step < signal.steps && step <= signal.executed[i]; ++step) {
            csv += start + std::to_string(step) + "," +
                   csv_number(signal.values[i][static_cast<std::size_t>(step)]) + "\n";
        }
    }
    return csv;
}

} // namespace

Figure compose_step_heatmap(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const Style style(spec, fonts);
    const RunRows& run = data.runs.front();
    const StepSignal& signal = *data.signal;
    const double left = style.size * 2.6;
    const double plot_width = style.width - left - 0.5;

    // 600 columns an inch are finer than print; what is more is drawn as the mean of several.
    const Columns columns =
        columns_of(signal, std::max<std::int64_t>(1, static_cast<std::int64_t>(plot_width / 72 * 600)));
    ScaleLegend legend;
    set_scale(spec, signal, columns, legend);
    legend.label = QString::fromStdString(signal.info.shown_name());
    if (!signal.info.unit.empty()) {
        legend.label += u" (%1)"_s.arg(QString::fromStdString(signal.info.unit));
    }
    legend.bar = 6 * style.size;
    const CellColours others{style.colours.halted.rgb(), style.colours.panel.rgb()};

    DisplayList list;
    const double baseline = style.size;
    bool any_halted = false;
    bool any_missing = false;
    for (std::size_t cell = 0; cell < columns.ran.size(); ++cell) {
        any_halted = any_halted ||
                     (!columns.ran[cell] && columns.exists[cell / static_cast<std::size_t>(signal.steps)]);
        any_missing = any_missing || (columns.ran[cell] && std::isnan(columns.values[cell]));
    }
    const QString halted = u"halted"_s;
    const double halted_width = style.size + 3 + fonts.width(halted, style.soft);
    const double room = style.width - (any_halted ? halted_width + style.size : 0);
    // A long title first shortens the bar, then goes without the unit that 0 to 1 tells anyhow.
    if (scale_legend_width(style, legend) > room) {
        legend.bar = std::max(3.5 * style.size, legend.bar - (scale_legend_width(style, legend) - room));
    }
    if (scale_legend_width(style, legend) > room && signal.info.unit == "probability") {
        legend.label = QString::fromStdString(signal.info.shown_name());
    }
    const double label_room =
        room - (scale_legend_width(style, legend) - fonts.width(legend.label, style.soft));
    legend.label = fonts.elided(legend.label, style.soft, label_room);
    draw_scale_legend(list, style, {0, baseline}, legend);
    if (any_halted) {
        const double x = style.width - halted_width;
        const double height = fonts.cap_height(style.small);
        list.rect({x, baseline - height, style.size, height}, style.colours.halted,
                  {style.colours.border, 0.35, {}, false});
        list.text(halted, {x + style.size + 3, baseline}, style.soft);
    }

    const double top = baseline + style.size * 0.9;
    const bool names = plot_width / static_cast<double>(run.count()) >= style.small.size * 1.02;
    const double row_height = std::clamp(120.0 / static_cast<double>(signal.steps), 3.0, style.size * 2.2);
    double plot_height = row_height * static_cast<double>(signal.steps);
    if (spec.height_mm) {
        // Measure the height of the axis below on a list that is thrown away.
        DisplayList trial;
        const QRectF anywhere(left, 0, plot_width, 10);
        const double below = names ? draw_token_names(trial, style, anywhere, run,
                                                      plot_width / static_cast<double>(run.count()))
                                   : draw_token_axis(trial, style, anywhere, run, columns);
        plot_height = std::max(plot_height / 4, *spec.height_mm * points_per_mm - title_height(spec, style) -
                                                    top - below - 0.5);
    }
    const QRectF plot(left, top, plot_width, plot_height);
    const double gap = row_height > 6 && signal.steps <= 16 ? 0.8 : 0;
    draw_cells(list, plot, gap, columns, signal.steps, legend.map, legend.scale, others);

    const double row_pitch = (plot.height() + gap) / static_cast<double>(signal.steps);
    const auto every =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(style.small.size * 1.3 / row_pitch)));
    for (std::int64_t step = 0; step < signal.steps; step += every) {
        const double middle = plot.y() + (static_cast<double>(step) + 0.5) * row_pitch - gap / 2;
        list.text(QString::number(step), {left - 4, middle + fonts.cap_height(style.small) / 2}, style.small,
                  Align::right);
    }
    list.text(step_word(run.info.step_unit), {fonts.cap_height(style.soft) + 0.5, plot.center().y()},
              style.soft, Align::center, 90);
    const double below =
        names ? draw_token_names(list, style, plot, run, plot_width / static_cast<double>(run.count()))
              : draw_token_axis(list, style, plot, run, columns);

    Figure figure;
    if (columns.tokens_each > 1) {
        figure.notices.push_back("Each column of the heatmap shows the mean of " +
                                 std::to_string(columns.tokens_each) + " tokens.");
    }
    if (any_missing) {
        figure.notices.push_back("Some steps ran, but no value of \"" + signal.info.name +
                                 "\" was recorded for them; their cells are left empty.");
    }
    figure.page = finish(spec, style, list, plot.bottom() + below + 0.5, "ask for more height");
    figure.tables.push_back({"", table_of(spec, run, signal)});
    return figure;
}

} // namespace ponderscope::figure
