// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/compare_charts.h"
#include "views/figure/chart_drawing.h"
#include "views/figure/figure.h"
#include "views/figure/parts.h"

#include "views/common/format.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

constexpr std::size_t most_points = 3000; ///< drawn one by one; more are a density
constexpr double side_by_side_mm = 130;   ///< from this width on

QString interval_text(const Estimate& estimate, bool difference) {
    const auto text = [&](double value) {
        return difference ? format_difference(value, 3) : format_nats(value, 3);
    };
    return u"%1 [%2, %3]"_s.arg(text(estimate.value), text(estimate.low), text(estimate.high));
}

using RunNames = std::function<QString(const RunComparison::Run&)>;

struct Panel {
    double x = 0;
    double y = 0;
    double width = 0;
};

void x_axis(DisplayList& list, const Style& style, const QRectF& plot, AxisRange range, int most) {
    const std::vector<double> ticks = round_ticks(range.low, range.high, most);
    const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 0;
    for (const double tick : ticks) {
        const double x = plot.x() + (tick - range.low) / (range.high - range.low) * plot.width();
        list.line({x, plot.bottom()}, {x, plot.bottom() + 2},
                  {style.colours.soft, style.hairline, {}, false});
        const QString label = tick_label(tick, step);
        const double half = style.fonts.width(label, style.small) / 2;
        list.text(
            label,
            {std::min(x, style.width - half), plot.bottom() + 3.5 + style.fonts.cap_height(style.small)},
            style.small, Align::center);
    }
    list.line({plot.x(), plot.bottom()}, {plot.right(), plot.bottom()},
              {style.colours.soft, style.hairline, {}, false});
}

/// Runs as rows: name and numbers at the left, mean and interval at the right. \p plot_height: of the rows
/// together, at least what they need. Returns its height.
double draw_intervals(DisplayList& list, const Style& style, const Panel& panel,
                      const RunComparison& comparison, double plot_height, const RunNames& name_of_run) {
    const Fonts& fonts = style.fonts;
    double label_width = 0;
    double low = comparison.runs.front().nll.low;
    double high = comparison.runs.front().nll.high;
    std::vector<QString> lines;
    for (const RunComparison::Run& run : comparison.runs) {
        QString line = interval_text(run.nll, false);
        lines.push_back(line);
        label_width = std::max(
            {label_width, fonts.width(line, style.small), fonts.width(name_of_run(run), style.body)});
        if (!std::isnan(run.difference.value)) {
            label_width = std::max(
                label_width, fonts.width(u"A − run "_s + interval_text(run.difference, true), style.small));
        }
        low = std::min(low, run.nll.low);
        high = std::max(high, run.nll.high);
    }
    label_width = std::min(label_width, panel.width * 0.55);
    const auto count = static_cast<double>(comparison.runs.size());
    const double pitch = std::max(style.size * (count > 1 ? 3.9 : 2.9), plot_height / count);
    const double left = panel.x + label_width + style.size * 1.2;
    const QRectF plot(left, panel.y, panel.x + panel.width - left - 3,
                      pitch * static_cast<double>(comparison.runs.size()));
    const AxisRange range = round_range(low, high, 4);
    const auto place = [&](double value) {
        return plot.x() + (value - range.low) / (range.high - range.low) * plot.width();
    };
    for (const double tick : round_ticks(range.low, range.high, 4)) {
        list.line({place(tick), plot.top()}, {place(tick), plot.bottom()},
                  {style.colours.line, style.hairline, {}, false});
    }
    double y = panel.y;
    for (std::size_t i = 0; i < comparison.runs.size(); ++i, y += pitch) {
        const RunComparison::Run& run = comparison.runs[i];
        const bool has_difference = !std::isnan(run.difference.value);
        const double block = style.size * (has_difference ? 3.2 : 2.0); // of the text lines
        double baseline = y + (pitch - block) / 2 + style.size * 0.75;
        const double first_baseline = baseline;
        list.text(fonts.elided(name_of_run(run), style.body, label_width), {panel.x, baseline}, style.body);
        baseline += style.size * 1.2;
        list.text(fonts.elided(lines[i], style.small, label_width), {panel.x, baseline}, style.small);
        if (has_difference) {
            baseline += style.size * 1.15;
            list.text(
                fonts.elided(u"A − run "_s + interval_text(run.difference, true), style.small, label_width),
                {panel.x, baseline}, style.small);
        }
        const QColor colour = style.runs[i % style.runs.size()];
        const double middle = (first_baseline + baseline) / 2 - fonts.x_height(style.body) / 2;
        const Stroke whisker{colour, 1.1, {}, false};
        list.line({place(run.nll.low), middle}, {place(run.nll.high), middle}, whisker);
        for (const double end : {run.nll.low, run.nll.high}) {
            list.line({place(end), middle - 2.2}, {place(end), middle + 2.2}, whisker);
        }
        list.circle({place(run.nll.value), middle}, 2.3, colour);
    }
    x_axis(list, style, plot, range, 4);
    const double name = plot.bottom() + 3.5 + fonts.cap_height(style.small) + style.size * 1.35;
    QString title = u"NLL (nats per token), mean and 95 % interval"_s;
    if (fonts.width(title, style.soft) > panel.width) {
        title = u"NLL (nats), 95 % interval"_s;
    }
    list.text(title, {panel.x + panel.width, name}, style.soft, Align::right);
    return name + fonts.descent(style.soft) - panel.y;
}

std::string point_table(const RunComparison& comparison) {
    std::string csv = "sequence,token," + csv_text("nll " + comparison.runs[0].label) + "," +
                      csv_text("nll " + comparison.runs[1].label) + "\n";
    for (std::size_t i = 0; i < comparison.places.size(); ++i) {
        csv += std::to_string(comparison.places[i].sequence) + "," +
               std::to_string(comparison.places[i].row + 1) + "," +
               csv_number(comparison.runs[0].token_nll[i]) + "," +
               csv_number(comparison.runs[1].token_nll[i]) + "\n";
    }
    return csv;
}

} // namespace

Figure compose_nll_comparison(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const Style style(spec, fonts);
    const RunComparison& comparison = *data.comparison;
    const RunNames names = [&spec](const RunComparison::Run& run) {
        return QString::fromStdString(shown_name(spec, run.label));
    };
    const bool scatter = spec.scatter && comparison.runs.size() > 1;
    const bool beside = scatter && spec.width_mm >= side_by_side_mm;
    DisplayList list;
    double height = 0;
    if (!scatter) {
        height = draw_intervals(list, style, {0, 1, style.width}, comparison, 0, names);
    } else {
        Chart pairs = comparison.places.size() > most_points ? token_density_chart(comparison)
                                                             : token_pairs_chart(comparison);
        pairs.title.clear();
        pairs.x.label = u"NLL of %1 (nats)"_s.arg(names(comparison.runs[0]));
        pairs.y.label = u"NLL of %1 (nats)"_s.arg(names(comparison.runs[1]));
        const double gap = style.size * 2.5;
        // The square is narrower than the column: at full width it would outweigh its information.
        const double side = style.width * (beside ? 0.4 : 0.8);
        const double left = beside ? style.width - side - gap : style.width;
        height = draw_intervals(list, style, {0, 1, left}, comparison, beside ? side * 0.7 : 0, names);
        const QRectF box = beside ? QRectF(left + gap, 0, side, side)
                                  : QRectF((style.width - side) / 2, height + gap, side, side);
        draw_chart(list, style, box, pairs, 2);
        height = std::max(height, box.bottom());
    }
    Figure figure;
    figure.page = finish(spec, style, list, 1 + height, "make the figure wider, or leave out \"scatter\"");
    figure.tables.push_back({"", csv_of(table_of(comparison))});
    if (scatter) {
        figure.tables.push_back({"tokens", point_table(comparison)});
    }
    return figure;
}

} // namespace ponderscope::figure
