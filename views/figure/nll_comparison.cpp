// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure.h"
#include "views/figure/parts.h"

#include "views/common/format.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace ponderscope::figure {
namespace {

constexpr std::size_t most_points = 3000; ///< drawn one by one; more are counted in squares
constexpr double side_by_side_mm = 130;   ///< from this width on

QString interval_text(const Estimate& estimate, bool difference) {
    const auto text = [&](double value) {
        return difference ? format_difference(value, 3) : format_nats(value, 3);
    };
    return QStringLiteral("%1 [%2, %3]").arg(text(estimate.value), text(estimate.low), text(estimate.high));
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
                label_width,
                fonts.width(QStringLiteral("A − run ") + interval_text(run.difference, true), style.small));
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
            list.text(fonts.elided(QStringLiteral("A − run ") + interval_text(run.difference, true),
                                   style.small, label_width),
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
    QString title = QStringLiteral("NLL (nats per token), mean and 95 % interval");
    if (fonts.width(title, style.soft) > panel.width) {
        title = QStringLiteral("NLL (nats), 95 % interval");
    }
    list.text(title, {panel.x + panel.width, name}, style.soft, Align::right);
    return name + fonts.descent(style.soft) - panel.y;
}

void draw_points(DisplayList& list, const Style& style, const QRectF& plot, const RunComparison& comparison,
                 double high) {
    const std::vector<float>& a = comparison.runs[0].token_nll;
    const std::vector<float>& b = comparison.runs[1].token_nll;
    if (comparison.places.size() <= most_points) {
        QColor ink = style.colours.text;
        ink.setAlphaF(comparison.places.size() > 600 ? 0.25F : 0.4F);
        list.beginClip(plot);
        for (std::size_t i = 0; i < a.size(); ++i) {
            list.circle({plot.x() + a[i] / high * plot.width(), plot.bottom() - b[i] / high * plot.height()},
                        1.1, ink);
        }
        list.endClip();
        return;
    }
    // Too many for dots: squares of the plot, inked by the logarithm of how many tokens lie in each.
    constexpr int squares = 64;
    std::map<std::pair<int, int>, int> counts;
    int most = 1;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const auto square = [&](float value) {
            return std::clamp(static_cast<int>(value / high * squares), 0, squares - 1);
        };
        most = std::max(most, ++counts[{square(b[i]), square(a[i])}]);
    }
    const double side = plot.width() / squares;
    for (const auto& [square, count] : counts) {
        const double share =
            (std::log1p(count) - std::log(2.0) * 0.6) / (std::log1p(most) - std::log(2.0) * 0.6);
        const auto mix = [&](double from, double to) {
            return from + (to - from) * std::clamp(share, 0.12, 1.0);
        };
        const QColor& paper = style.colours.panel;
        const QColor& ink = style.colours.text;
        list.rect({plot.x() + square.second * side, plot.bottom() - (square.first + 1) * side, side, side},
                  QColor::fromRgbF(static_cast<float>(mix(paper.redF(), ink.redF())),
                                   static_cast<float>(mix(paper.greenF(), ink.greenF())),
                                   static_cast<float>(mix(paper.blueF(), ink.blueF()))));
    }
}

double scatter_side(const Style& style, double panel_width) {
    return panel_width - style.size * 3.0 - 1;
}

/// Token against token. Returns its height; the plot itself is square.
double draw_scatter(DisplayList& list, const Style& style, const Panel& panel,
                    const RunComparison& comparison, const RunNames& name_of_run) {
    const Fonts& fonts = style.fonts;
    float largest = 0;
    for (const std::size_t run : {0U, 1U}) {
        for (const float nll : comparison.runs[run].token_nll) {
            largest = std::max(largest, nll);
        }
    }
    const AxisRange range = round_range(0, std::max(1.0, static_cast<double>(largest)), 6);
    const double left = panel.x + style.size * 3.0;
    const double side = scatter_side(style, panel.width);
    const QRectF plot(left, panel.y, side, side);
    const Stroke grid{style.colours.line, style.hairline, {}, false};
    const std::vector<double> ticks = round_ticks(range.low, range.high, 6);
    for (const double tick : ticks) {
        const double x = plot.x() + tick / range.high * side;
        const double y = plot.bottom() - tick / range.high * side;
        list.line({x, plot.top()}, {x, plot.bottom()}, grid);
        list.line({plot.left(), y}, {plot.right(), y}, grid);
        list.text(tick_label(tick, ticks[1] - ticks[0]),
                  {plot.left() - 4, y + fonts.cap_height(style.small) / 2}, style.small, Align::right);
    }
    draw_points(list, style, plot, comparison, range.high);
    list.line(plot.bottomLeft(), plot.topRight(), {style.colours.soft, 0.6, {3, 2}, false});
    list.line(plot.topLeft(), plot.bottomLeft(), {style.colours.soft, style.hairline, {}, false});
    x_axis(list, style, plot, range, 6);

    const double line = style.size * 1.3;
    const QString names[] = {name_of_run(comparison.runs[0]), name_of_run(comparison.runs[1])};
    const auto named = [&](std::size_t run) { return TextStyle{style.size, false, style.runs[run]}; };
    const auto axis_name = [&](const QString& run) {
        return fonts.elided(QStringLiteral("NLL of %1 (nats)").arg(run), style.soft, side);
    };
    const double name = plot.bottom() + 3.5 + fonts.cap_height(style.small) + style.size * 1.35;
    list.text(axis_name(names[0]), {plot.center().x(), name}, named(0), Align::center);
    list.text(axis_name(names[1]), {panel.x + fonts.cap_height(style.soft) + 0.5, plot.center().y()},
              named(1), Align::center, 90);
    // On paper of its own, so that it stays readable above the dots.
    const QString facts[] = {
        QStringLiteral("r = %1").arg(format_nats(comparison.runs[1].correlation.value, 3)),
        QStringLiteral("%1 tokens").arg(format_count(static_cast<std::int64_t>(comparison.places.size())))};
    const double wide = std::max(fonts.width(facts[0], style.body), fonts.width(facts[1], style.small));
    QColor paper = style.colours.panel;
    paper.setAlphaF(0.85F);
    list.rect({plot.left() + 3, plot.top() + 3, wide + 6, line * 2 + 1}, paper);
    list.text(facts[0], {plot.left() + 6, plot.top() + 3 + line * 0.85}, style.body);
    list.text(facts[1], {plot.left() + 6, plot.top() + 3 + line * 1.75}, style.small);
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
    double top = 1;
    double height = 0;
    const double gap = style.size * 2.5;
    if (beside) {
        // Both axes on one line: the rows share out the height that the square has.
        top = fonts.cap_height(style.small) / 2 + 0.5;
        const double scatter_width = style.width * 0.36;
        const double left_width = style.width - scatter_width - gap;
        height = draw_scatter(list, style, {left_width + gap, top, scatter_width}, comparison, names);
        height = std::max(height, draw_intervals(list, style, {0, top, left_width}, comparison,
                                                 scatter_side(style, scatter_width), names));
    } else {
        height = draw_intervals(list, style, {0, top, style.width}, comparison, 0, names);
    }
    if (scatter && !beside) {
        // Not as wide as the column: a square of the whole width would outweigh what it has to say.
        const double width = style.width * 0.8;
        height += gap + draw_scatter(list, style, {(style.width - width) / 2, top + height + gap, width},
                                     comparison, names);
    }
    Figure figure;
    figure.page = finish(spec, style, list, top + height, "make the figure wider, or leave out \"scatter\"");
    figure.tables.push_back({"", csv_of(table_of(comparison))});
    if (scatter) {
        figure.tables.push_back({"tokens", point_table(comparison)});
    }
    return figure;
}

} // namespace ponderscope::figure
