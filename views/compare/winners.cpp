// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/winners.h"

#include "core/base/error.h"
#include "core/stats/distributions.h"
#include "core/stats/significance.h"
#include "core/trace/reader.h"
#include "views/common/format.h"
#include "views/common/translated.h"
#include "views/halting/token_grouping.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace ponderscope {
namespace {

/// Ids of the tokens that the compared rows predict, -1 where they have none.
std::vector<std::int32_t> predicted_ids(const RunComparison& comparison, const TraceReader& reader,
                                        const RunInfo& run, const std::stop_token& stop) {
    std::vector<std::int32_t> ids;
    ids.reserve(comparison.places.size());
    TokenColumns tokens;
    std::int32_t sequence = -1;
    for (const RunComparison::Place& place : comparison.places) {
        if (place.sequence != sequence) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            sequence = place.sequence;
            tokens = reader.tokens(run.id, sequence);
        }
        const auto at = static_cast<std::size_t>(place.row) + 1;
        ids.push_back(at < tokens.size() ? tokens.id[at] : -1);
    }
    return ids;
}

} // namespace

Winners winners_of(const RunComparison& comparison, const ComparisonRequest& request, const std::string& by,
                   std::size_t second, const std::stop_token& stop,
                   const std::vector<RunComparison::Place>& only) {
    if (comparison.runs.size() <= second || second == 0) {
        throw InputError("There is no second run over this text to compare with.");
    }
    const std::vector<float>& a = comparison.runs.front().token_nll;
    const std::vector<float>& b = comparison.runs[second].token_nll;
    TokenGrouping groups;
    if (by == "position") {
        std::vector<std::int64_t> positions;
        for (const RunComparison::Place& place : comparison.places) {
            positions.push_back(place.row + std::int64_t{1});
        }
        groups = group_by_position(positions);
    } else if (by == "difficulty") {
        std::vector<double> values;
        for (std::size_t i = 0; i < a.size(); ++i) {
            values.push_back((static_cast<double>(a[i]) + static_cast<double>(b[i])) / 2);
        }
        groups = group_by_difficulty(values);
    } else {
        const TraceReader reader = TraceReader::open(request.runs.front().trace);
        const RunInfo run = comparison.runs.front().info;
        const std::vector<std::int32_t> ids = predicted_ids(comparison, reader, run, stop);
        const auto bytes = [&](std::int32_t id) {
            return id < 0 ? std::string() : reader.token_bytes(run.id, id);
        };
        groups = by == "type" ? group_by_type(ids, bytes) : group_by_class(ids, bytes);
    }
    // Of each group, a sum for every cluster or block that has some of its tokens.
    struct Sums {
        std::map<std::size_t, std::size_t> at; // by unit
        std::vector<double> difference, tokens;
        std::int64_t b_lower = 0;
    };
    std::vector<Sums> sums(groups.names.size());
    const std::vector<std::size_t> units = units_of(comparison.layout, comparison.resampling);
    for (std::size_t i = 0; i < groups.group.size(); ++i) {
        if (groups.group[i] >= 0 &&
            (only.empty() || std::binary_search(only.begin(), only.end(), comparison.places[i]))) {
            Sums& sum = sums[static_cast<std::size_t>(groups.group[i])];
            const auto [place, fresh] = sum.at.emplace(units[i], sum.tokens.size());
            if (fresh) {
                sum.difference.push_back(0);
                sum.tokens.push_back(0);
            }
            sum.difference[place->second] += static_cast<double>(a[i]) - static_cast<double>(b[i]);
            sum.tokens[place->second] += 1;
            sum.b_lower += b[i] < a[i] ? 1 : 0;
        }
    }
    Winners winners{QString::fromStdString(comparison.runs.front().label),
                    QString::fromStdString(comparison.runs[second].label),
                    by,
                    {}};
    std::vector<double> p;
    for (std::size_t g = 0; g < sums.size(); ++g) {
        const Sums& sum = sums[g];
        if (sum.tokens.empty()) {
            continue;
        }
        const UnitMean mean = unit_mean(sum.difference, sum.tokens);
        const double half = mean.standard_error > 0
                                ? mean.standard_error * student_quantile(0.975, mean.degrees)
                                : mean.standard_error;
        const double count = std::accumulate(sum.tokens.begin(), sum.tokens.end(), 0.0);
        winners.rows.push_back({groups.names[g], static_cast<std::int64_t>(count), mean.mean,
                                mean.mean - half, mean.mean + half, static_cast<double>(sum.b_lower) / count,
                                0});
        p.push_back(std::isnan(half) ? half : sign_flip_p(sum.difference));
    }
    const std::vector<double> q = false_discovery_q(p);
    for (std::size_t i = 0; i < q.size(); ++i) {
        winners.rows[i].q = q[i];
    }
    return winners;
}

figure::Chart winners_chart(const Winners& winners) {
    using figure::Chart;
    Chart chart;
    chart.title = tr("Who wins where");
    chart.x.label = winners.by == "position"     ? tr("position in the sequence")
                    : winners.by == "difficulty" ? tr("mean NLL of both runs")
                                                 : QString();
    chart.y.label = tr("NLL of %1 minus %2 (nats)").arg(winners.a, winners.b);
    Chart::Series zero;
    zero.ink = Chart::soft;
    zero.dashed = true;
    Chart::Series a;
    a.name = tr("%1 is better").arg(winners.a);
    a.mark = Chart::Mark::point;
    Chart::Series b = a;
    b.name = tr("%1 is better").arg(winners.b);
    b.ink = Chart::b;
    Chart::Series neither = a;
    neither.name = tr("neither (q over 0.05)");
    neither.ink = Chart::soft;
    for (std::size_t i = 0; i < winners.rows.size(); ++i) {
        const Winners::Row& row = winners.rows[i];
        chart.x.names.push_back(row.name);
        Chart::Series& series = !(row.q <= 0.05) ? neither : row.difference < 0 ? a : b;
        series.x.push_back(static_cast<double>(i));
        series.y.push_back(row.difference);
        series.low.push_back(row.low);
        series.high.push_back(row.high);
        series.labels.push_back(tr("%1: %2 nats [%3, %4], %5 is lower at %6 % of %7 tokens, q %8")
                                    .arg(row.name, format_difference(row.difference, 3),
                                         format_difference(row.low, 3), format_difference(row.high, 3),
                                         winners.b, QString::number(100 * row.b_lower, 'f', 0),
                                         format_count(row.tokens), format_probability(row.q)));
    }
    zero.x = {-0.5, static_cast<double>(winners.rows.size()) - 0.5};
    zero.y = {0, 0};
    chart.series = {std::move(zero), std::move(a), std::move(b), std::move(neither)};
    std::erase_if(chart.series, [](const Chart::Series& series) { return series.x.empty(); });
    return chart;
}

figure::Chart token_density_chart(const RunComparison& comparison, std::size_t second) {
    using figure::Chart;
    constexpr double side = 0.25; // nats
    Chart chart;
    chart.title = tr("Token against token");
    if (comparison.runs.size() <= second) {
        return chart;
    }
    chart.x.label = tr("NLL of %1 (nats)").arg(QString::fromStdString(comparison.runs.front().label));
    chart.y.label = tr("NLL of %1 (nats)").arg(QString::fromStdString(comparison.runs[second].label));
    chart.dx = side;
    chart.dy = side;
    std::map<std::pair<int, int>, std::int64_t> counts;
    const std::vector<float>& a = comparison.runs.front().token_nll;
    const std::vector<float>& b = comparison.runs[second].token_nll;
    double high = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        // Beyond 40 nats a probability is no number of single precision any more.
        const auto cell = [](float nll) { return static_cast<int>(std::clamp(nll, 0.0F, 40.0F) / side); };
        ++counts[{cell(a[i]), cell(b[i])}];
        high = std::max(
            {high, static_cast<double>(std::min(a[i], 40.0F)), static_cast<double>(std::min(b[i], 40.0F))});
    }
    Chart::Series cells;
    cells.mark = Chart::Mark::cell;
    double most = 1;
    for (const auto& [place, count] : counts) {
        cells.x.push_back((place.first + 0.5) * side);
        cells.y.push_back((place.second + 0.5) * side);
        cells.value.push_back(std::log10(static_cast<double>(count)));
        most = std::max(most, cells.value.back());
        cells.labels.push_back(
            tr("%1 tokens at about %2 and %3 nats")
                .arg(format_count(count), format_nats(cells.x.back()), format_nats(cells.y.back())));
    }
    chart.scale = {tr("log10 of the number of tokens"), 0, most, false};
    Chart::Series diagonal;
    diagonal.ink = Chart::soft;
    diagonal.dashed = true;
    diagonal.x = {0, high};
    diagonal.y = {0, high};
    chart.series = {std::move(cells), std::move(diagonal)};
    return chart;
}

} // namespace ponderscope
