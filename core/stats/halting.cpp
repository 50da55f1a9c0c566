// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/halting.h"

#include "core/base/error.h"
#include "core/stats/run_slices.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

namespace ponderscope {
namespace {

constexpr double entropy_cell = 0.5;      ///< nats, of the density
constexpr std::size_t entropy_cells = 40; ///< up to 20 nats: more than the logarithm of any vocabulary
constexpr double probability_cell = 0.05;

HaltingStats::Bins empty_bins(double width, std::size_t count) {
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

HaltingStats halting_stats(const std::filesystem::path& trace, const std::string& run, LabelPlace types_of,
                           const std::stop_token& stop,
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
    const auto steps = static_cast<std::size_t>(info.max_steps) + 1;
    stats.nll_by_step.resize(steps);
    stats.entropy_by_step.assign(steps, empty_bins(entropy_cell, entropy_cells));
    stats.probability_by_step.assign(steps, empty_bins(probability_cell, 20));
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
            const auto chosen = only.find(sequence.number);
            if (!only.empty() && chosen == only.end()) {
                return;
            }
            const auto counts = [&](std::size_t i) {
                return only.empty() || std::binary_search(chosen->second.begin(), chosen->second.end(),
                                                          begin + static_cast<std::int64_t>(i));
            };
            // One more: the token that the last row predicts.
            const TokenColumns tokens = reader.tokens(info.id, sequence.number, begin, end + 1);
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
                const std::size_t typed = types_of == LabelPlace::prediction ? i + 1 : i;
                if (typed < tokens.size()) {
                    Sums& sums = types[tokens.id[typed]];
                    ++sums.count;
                    sums.steps += static_cast<double>(ran);
                    sums.nll += nll;
                    sums.dropped += ran < info.max_steps ? 1 : 0;
                }
            }
            const std::optional<SignalChunk> chunk =
                gate ? reader.signal(info.id, sequence.number, gate->name, begin, end) : std::nullopt;
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
        stats.types.push_back({id, reader.token_bytes(info.id, id), sums.count, sums.steps / count,
                               sums.nll / count, static_cast<double>(sums.dropped) / count});
    }
    std::sort(stats.types.begin(), stats.types.end(),
              [](const HaltingStats::TokenType& a, const HaltingStats::TokenType& b) {
                  return a.count != b.count ? a.count > b.count : a.id < b.id;
              });
    return stats;
}

} // namespace ponderscope
