// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/halting/halting_stats.h"

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/trace/reader.h"
#include "views/common/format.h"
#include "views/common/translated.h"
#include "views/halting/run_slices.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace ponderscope {
namespace {

using figure::Chart;

constexpr double entropy_cell = 0.5;      ///< nats, of the density
constexpr std::size_t entropy_cells = 40; ///< up to 20 nats: more than the logarithm of any vocabulary
constexpr double probability_cell = 0.05;

HaltingStats::Bins bins(double width, std::size_t count) {
    return {width, std::vector<std::int64_t>(count, 0)};
}

std::optional<SignalInfo> gate_of(const std::vector<SignalInfo>& infos) {
    for (const char* name : {signal::gate, signal::halting_mass}) {
        for (const SignalInfo& info : infos) {
            if (info.name == name && info.axes == std::vector<std::string>{"token", "step"}) {
                return info;
            }
        }
    }
    return std::nullopt;
}

} // namespace

void HaltingStats::Bins::add(double value) {
    if (std::isfinite(value)) {
        const double place = std::clamp(value / width, 0.0, static_cast<double>(counts.size() - 1));
        ++counts[static_cast<std::size_t>(place)];
    }
}

std::vector<std::int64_t> HaltingStats::histogram() const {
    std::vector<std::int64_t> counts;
    for (const Spread& step : nll_by_step) {
        counts.push_back(step.all().count);
    }
    return counts;
}

HaltingStats halting_stats(const std::filesystem::path& trace, const std::string& run,
                           Attribution attribution, const std::stop_token& stop,
                           const std::map<std::int64_t, std::vector<std::int64_t>>& only) {
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo info = find_run(reader, run);
    constexpr std::int64_t most_steps = 4096;
    if (info.max_steps < 0 || info.max_steps > most_steps) {
        throw InputError(trace, "from 0 to " + std::to_string(most_steps) + " further steps",
                         std::to_string(info.max_steps), "the trace is damaged; record it again");
    }
    HaltingStats stats;
    stats.unit = info.step_unit;
    stats.max_steps = info.max_steps;
    stats.attribution = attribution;
    const auto steps = static_cast<std::size_t>(info.max_steps) + 1;
    stats.nll_by_step.resize(steps);
    stats.entropy_by_step.assign(steps, bins(entropy_cell, entropy_cells));
    stats.probability_by_step.assign(steps, bins(probability_cell, 20));
    const std::optional<SignalInfo> gate =
        info.max_steps > 0 ? gate_of(reader.signal_infos(info.id)) : std::nullopt;
    if (gate) {
        stats.gate_title = gate->title.empty() ? gate->name : gate->title;
    }
    struct Sums {
        std::int64_t count = 0;
        double steps = 0;
        double nll = 0;
        std::int64_t dropped = 0;
    };
    std::unordered_map<std::int32_t, Sums> types;
    for_each_slice(
        reader, info, stop, [&](const SequenceInfo& sequence, std::int64_t begin, std::int64_t end) {
            const auto chosen = only.find(sequence.index);
            if (!only.empty() && chosen == only.end()) {
                return;
            }
            const auto counts = [&](std::size_t i) {
                return only.empty() || std::binary_search(chosen->second.begin(), chosen->second.end(),
                                                          begin + static_cast<std::int64_t>(i));
            };
            // One more: the token that the last row predicts.
            const TokenColumns tokens = reader.tokens(info.id, sequence.index, begin, end + 1);
            const auto rows = std::min(tokens.size(), static_cast<std::size_t>(end - begin));
            for (std::size_t i = 0; i < rows; ++i) {
                const auto nll = static_cast<double>(tokens.nll[i]);
                if (!std::isfinite(nll) || !counts(i)) {
                    continue;
                }
                const std::int64_t ran = std::clamp<std::int64_t>(tokens.steps[i], 0, info.max_steps);
                ++stats.scored;
                stats.nll_by_step[static_cast<std::size_t>(ran)].add(tokens.nll[i]);
                stats.entropy_by_step[static_cast<std::size_t>(ran)].add(
                    static_cast<double>(tokens.entropy[i]));
                stats.probability_by_step[static_cast<std::size_t>(ran)].add(std::exp(-nll));
                const std::size_t typed = attribution == Attribution::predicted ? i + 1 : i;
                if (typed < tokens.size()) {
                    Sums& sums = types[tokens.id[typed]];
                    ++sums.count;
                    sums.steps += static_cast<double>(ran);
                    sums.nll += nll;
                    sums.dropped += ran < info.max_steps ? 1 : 0;
                }
            }
            const std::optional<SignalChunk> chunk =
                gate ? reader.signal(info.id, sequence.index, gate->name, begin, end) : std::nullopt;
            if (chunk && chunk->shape.size() == 2 && chunk->shape[1] > 0 &&
                chunk->shape[1] <= most_steps + 1) {
                const std::vector<float> values = to_floats(*chunk);
                const auto width = static_cast<std::size_t>(chunk->shape[1]);
                if (stats.gate_by_step.size() < width) {
                    stats.gate_by_step.resize(width);
                }
                for (std::size_t i = 0; i < std::min(rows, values.size() / width); ++i) {
                    for (std::size_t k = 0;
                         counts(i) && k < width && static_cast<std::int64_t>(k) <= tokens.steps[i]; ++k) {
                        stats.gate_by_step[k].add(values[i * width + k]);
                    }
                }
            }
        });
    for (const auto& [id, sums] : types) {
        const auto count = static_cast<double>(sums.count);
        stats.types.push_back({id,
                               {},
                               sums.count,
                               sums.steps / count,
                               sums.nll / count,
                               static_cast<double>(sums.dropped) / count});
    }
    std::sort(stats.types.begin(), stats.types.end(),
              [](const HaltingStats::TokenType& a, const HaltingStats::TokenType& b) {
                  return a.count != b.count ? a.count > b.count : a.id < b.id;
              });
    for (HaltingStats::TokenType& type : stats.types) {
        const std::string bytes = reader.token_bytes(info.id, type.id);
        type.label = bytes.empty() ? QStringLiteral("‹id %1›").arg(type.id) : visible_token(bytes);
    }
    return stats;
}

QString halting_title(HaltingChart chart, const std::string& unit) {
    const QString step = step_word(unit);
    switch (chart) {
    case HaltingChart::steps: {
        const QString steps = steps_word(unit);
        return steps.left(1).toUpper() + steps.mid(1);
    }
    case HaltingChart::nll:
        return tr("NLL by halt %1").arg(step);
    case HaltingChart::gates:
        return tr("Gates by %1").arg(step);
    case HaltingChart::entropy:
        return tr("Entropy by halt %1").arg(step);
    case HaltingChart::probability:
        return tr("Target probability by halt %1").arg(step);
    }
    return {};
}

namespace {

/// Tokens by step and value: cells of a bin, coloured by the logarithm of their number.
void density(Chart& chart, const std::vector<HaltingStats::Bins>& by_step, const QString& unit,
             const QString& what) {
    Chart::Series cells;
    cells.mark = Chart::Mark::cell;
    double most = 1;
    for (std::size_t k = 0; k < by_step.size(); ++k) {
        chart.dy = by_step[k].width;
        for (std::size_t bin = 0; bin < by_step[k].counts.size(); ++bin) {
            const std::int64_t count = by_step[k].counts[bin];
            if (count > 0) {
                cells.x.push_back(static_cast<double>(k));
                cells.y.push_back((static_cast<double>(bin) + 0.5) * chart.dy);
                cells.labels.push_back(tr("%1 %2, %3 about %4: %5 tokens")
                                           .arg(unit)
                                           .arg(k)
                                           .arg(what, format_nats(cells.y.back()), format_count(count)));
                // The logarithm: a few common cells would leave the rest in the dark.
                cells.value.push_back(std::log10(static_cast<double>(count)));
                most = std::max(most, cells.value.back());
            }
        }
    }
    chart.scale = {tr("log10 of the number of tokens"), 0, most, false};
    chart.series.push_back(std::move(cells));
}

} // namespace

figure::Chart halting_chart(HaltingChart kind, const HaltingStats& stats) {
    Chart chart;
    const QString unit = step_word(stats.unit);
    chart.title = halting_title(kind, stats.unit);
    chart.x.label = tr("last %1").arg(unit);
    chart.x.whole = true;
    const auto spread = [&](const std::vector<Spread>& steps, const QString& what) {
        SpreadSeries series;
        for (std::size_t k = 0; k < steps.size(); ++k) {
            series.add(k, steps[k], [&](double mean, double low, double high) {
                return tr("%1 %2: %3 %4, half of the tokens from %5 to %6; %7 tokens")
                    .arg(unit, QString::number(k), what, format_nats(mean), format_nats(low),
                         format_nats(high), format_count(steps[k].all().count));
            });
        }
        chart.series = series.take();
    };
    switch (kind) {
    case HaltingChart::steps: {
        chart.y.label = tr("share of tokens");
        chart.y.from_zero = true;
        Chart::Series series;
        series.mark = Chart::Mark::bar;
        const std::vector<std::int64_t> counts = stats.histogram();
        for (std::size_t k = 0; k < counts.size(); ++k) {
            const double share = stats.scored > 0
                                     ? static_cast<double>(counts[k]) / static_cast<double>(stats.scored)
                                     : std::nan("");
            series.x.push_back(static_cast<double>(k));
            series.y.push_back(share);
            series.labels.push_back(tr("%1 %2: %3 tokens, %4 %")
                                        .arg(unit)
                                        .arg(k)
                                        .arg(format_count(counts[k]))
                                        .arg(share * 100, 0, 'f', 1));
        }
        chart.series.push_back(std::move(series));
        break;
    }
    case HaltingChart::nll:
        chart.y.label = tr("NLL (nats)");
        spread(stats.nll_by_step, tr("mean NLL"));
        break;
    case HaltingChart::gates:
        chart.x.label = tr("after %1").arg(unit);
        chart.y.label = QString::fromStdString(stats.gate_title);
        chart.y.low = 0;
        chart.y.high = 1;
        spread(stats.gate_by_step, tr("mean"));
        break;
    case HaltingChart::entropy:
        chart.y.label = tr("entropy (nats)");
        density(chart, stats.entropy_by_step, unit, tr("entropy"));
        break;
    case HaltingChart::probability:
        chart.y.label = tr("probability of the true token");
        chart.y.low = 0;
        chart.y.high = 1;
        density(chart, stats.probability_by_step, unit, tr("probability"));
        break;
    }
    return chart;
}

} // namespace ponderscope
