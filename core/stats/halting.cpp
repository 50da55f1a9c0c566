// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/halting.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/stats/scan.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace ponderscope {

void Spread::add(float value) {
    if (!std::isfinite(value)) {
        return;
    }
    if (all_.count % every_ == 0) {
        constexpr std::size_t most = 100'000;
        some_.push_back(value);
        if (some_.size() > most) {
            for (std::size_t i = 0; 2 * i < some_.size(); ++i) {
                some_[i] = some_[2 * i];
            }
            some_.resize((some_.size() + 1) / 2);
            every_ *= 2;
        }
    }
    all_.add(static_cast<double>(value));
}

double Spread::mean() const {
    return all_.count == 0 ? not_a_number : all_.mean;
}

double Spread::quantile(double share) const {
    std::vector<double> sorted(some_.begin(), some_.end());
    std::sort(sorted.begin(), sorted.end());
    return quantile_of_sorted(sorted, share);
}

namespace {

constexpr double entropy_cell = 0.5;      ///< nats; width of a bin
constexpr std::size_t entropy_cells = 40; ///< up to 20 nats: more than the logarithm of any vocabulary
constexpr double probability_cell = 0.05;

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
                           const std::stop_token& stop) {
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo info = find_run(reader, run);
    constexpr std::int64_t most_steps = 4096;
    if (info.max_steps < 0 || info.max_steps > most_steps) {
        throw InputError(ErrorId::trace_damaged, trace,
                         "from 0 to " + std::to_string(most_steps) + " further steps",
                         std::to_string(info.max_steps), "the trace is damaged; record it again");
    }
    HaltingStats stats;
    stats.unit = info.step_unit;
    stats.max_steps = info.max_steps;
    const auto steps = static_cast<std::size_t>(info.max_steps) + 1;
    stats.nll_by_step.resize(steps);
    using Counts = std::vector<std::int64_t>;
    stats.entropy_by_step.assign(steps, {entropy_cell, Counts(entropy_cells)});
    stats.probability_by_step.assign(steps, {probability_cell, Counts(20)});
    const std::optional<SignalInfo> gate =
        info.max_steps > 0 ? gate_of(reader.signal_infos(info.id)) : std::nullopt;
    if (gate) {
        stats.gate_title = gate->title.empty() ? gate->name : gate->title;
    }
    for_each_slice(
        reader, info, stop, [&](const SequenceInfo& sequence, std::int64_t begin, std::int64_t end) {
            const TokenColumns tokens = reader.tokens(info.id, sequence.number, begin, end);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                const auto nll = static_cast<double>(tokens.nll[i]);
                if (!std::isfinite(nll)) {
                    continue;
                }
                const std::int64_t ran = std::clamp<std::int64_t>(tokens.steps[i], 0, info.max_steps);
                ++stats.scored;
                stats.nll_by_step[static_cast<std::size_t>(ran)].add(tokens.nll[i]);
                stats.entropy_by_step[static_cast<std::size_t>(ran)].add(
                    static_cast<double>(tokens.entropy[i]));
                stats.probability_by_step[static_cast<std::size_t>(ran)].add(std::exp(-nll));
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
                for (std::size_t i = 0; i < std::min(tokens.size(), values.size() / width); ++i) {
                    for (std::size_t k = 0; k < width && static_cast<std::int64_t>(k) <= tokens.steps[i];
                         ++k) {
                        stats.gate_by_step[k].add(values[i * width + k]);
                    }
                }
            }
        });
    return stats;
}

} // namespace ponderscope
