// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/format.h"
#include "views/halting/step_charts.h"

#include <cmath>
#include <numeric>

using namespace Qt::StringLiterals;

namespace ponderscope {

QString halting_title(HaltingChart chart, const std::string& unit) {
    const QString step = step_word(unit);
    switch (chart) {
    case HaltingChart::steps: {
        const QString steps = steps_word(unit);
        return steps.left(1).toUpper() + steps.mid(1);
    }
    case HaltingChart::nll:
        return u"NLL by halt %1"_s.arg(step);
    case HaltingChart::gates:
        return u"Gates by %1"_s.arg(step);
    case HaltingChart::entropy:
        return u"Entropy by halt %1"_s.arg(step);
    case HaltingChart::probability:
        return u"Probability of the target by halt %1"_s.arg(step);
    }
    return {};
}

namespace {

/// Adds cells by step and value, coloured by the logarithm of the number of tokens.
void density(Chart& chart, const std::vector<HaltingStats::Bins>& by_step, const QString& unit,
             const QString& what) {
    auto cells = Chart::Series::of(Chart::Mark::cell);
    double most = 1;
    for (std::size_t k = 0; k < by_step.size(); ++k) {
        chart.dy = by_step[k].width;
        for (std::size_t bin = 0; bin < by_step[k].counts.size(); ++bin) {
            const std::int64_t count = by_step[k].counts[bin];
            if (count > 0) {
                const double y = (static_cast<double>(bin) + 0.5) * chart.dy;
                // The logarithm, because otherwise a few large numbers would make all other cells dark.
                cells.addCell(static_cast<double>(k), y, std::log10(static_cast<double>(count)),
                              u"%1 %2, %3 about %4: %5 tokens"_s.arg(unit, QString::number(k), what,
                                                                     format_nats(y), format_count(count)));
                most = std::max(most, cells.value.back());
            }
        }
    }
    chart.scale = {u"log10 of the number of tokens"_s, 0, most, false};
    chart.series.push_back(std::move(cells));
}

} // namespace

Chart steps_chart(const std::vector<std::int64_t>& counts, const std::string& unit) {
    Chart chart;
    chart.title = halting_title(HaltingChart::steps, unit);
    chart.x.label = u"last %1"_s.arg(step_word(unit));
    chart.x.whole = true;
    chart.y.label = u"share of tokens"_s;
    chart.y.from_zero = true;
    const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
    auto series = Chart::Series::of(Chart::Mark::bar);
    for (std::size_t k = 0; k < counts.size(); ++k) {
        const double share = total > 0 ? static_cast<double>(counts[k]) / total : std::nan("");
        series.add(static_cast<double>(k), share,
                   u"%1 %2: %3 tokens, %4 %"_s.arg(step_word(unit), QString::number(k),
                                                   format_count(counts[k]),
                                                   QString::number(share * 100, 'f', 1)));
    }
    chart.series.push_back(std::move(series));
    return chart;
}

Chart halting_chart(HaltingChart kind, const HaltingStats& stats) {
    Chart chart;
    const QString unit = step_word(stats.unit);
    chart.title = halting_title(kind, stats.unit);
    chart.x.label = u"last %1"_s.arg(unit);
    chart.x.whole = true;
    const auto spread = [&](const std::vector<Spread>& steps, const QString& what) {
        chart.series = spread_series(steps, 0, [&](std::size_t k, double mean, double low, double high) {
            return u"%1 %2: %3 %4, middle half of the tokens from %5 to %6; %7 tokens"_s.arg(
                unit, QString::number(k), what, format_nats(mean), format_nats(low), format_nats(high),
                format_count(steps[k].all().count));
        });
    };
    switch (kind) {
    case HaltingChart::steps:
        return steps_chart(stats.histogram(), stats.unit);
    case HaltingChart::nll:
        chart.y.label = u"NLL (nats)"_s;
        chart.x.low = -0.5; // the bands of the first and last step are as wide as the others
        chart.x.high = static_cast<double>(stats.nll_by_step.size()) - 0.5;
        spread(stats.nll_by_step, u"mean NLL"_s);
        break;
    case HaltingChart::gates:
        chart.x.label = u"after %1"_s.arg(unit);
        chart.y.label = QString::fromStdString(stats.gate_title);
        chart.y.low = 0;
        chart.y.high = 1;
        spread(stats.gate_by_step, u"mean"_s);
        break;
    case HaltingChart::entropy:
        chart.y.label = u"entropy (nats)"_s;
        density(chart, stats.entropy_by_step, unit, u"entropy"_s);
        break;
    case HaltingChart::probability:
        chart.y.label = u"probability of the true token"_s;
        chart.y.low = 0;
        chart.y.high = 1;
        density(chart, stats.probability_by_step, unit, u"probability"_s);
        break;
    }
    return chart;
}

} // namespace ponderscope
