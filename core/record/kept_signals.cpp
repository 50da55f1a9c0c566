// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/kept_signals.h"

#include "core/trace/packed_values.h"
#include "core/trace/reader.h"
#include "core/trace/signal_sums.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

namespace ponderscope {
namespace {

bool is_of_candidates(std::string_view name) {
    return name == signal::candidate_ids || name == signal::candidate_probabilities;
}

bool is_of_depth(std::string_view name) {
    return name == signal::depth_weights || name == signal::mhc_read || name == signal::mhc_write ||
           name == signal::attnres_weights;
}

/// The value at each token's last step of a signal [token, step].
SignalChunk at_exit(const SignalChunk& by_step, const std::vector<std::int32_t>& steps) {
    const std::vector<float> values = to_floats(by_step);
    const auto width = static_cast<std::size_t>(by_step.shape[1]);
    std::vector<float> exits(steps.size(), std::numeric_limits<float>::quiet_NaN());
    for (std::size_t t = 0; t < exits.size(); ++t) {
        const auto step = static_cast<std::size_t>(std::max(steps[t], 0));
        // A gate that decides on the step after it has one place less than there are steps.
        if (step < width) {
            exits[t] = values[t * width + step];
        }
    }
    SignalChunk chunk{by_step.first, DType::f32, {static_cast<std::int64_t>(exits.size())}, {}};
    chunk.data.resize(exits.size() * sizeof(float));
    std::memcpy(chunk.data.data(), exits.data(), chunk.data.size());
    return chunk;
}

bool has_exit_gate(const SignalInfo& info) {
    return info.name == signal::gate && info.axes == std::vector<std::string>{"token", "step"};
}

} // namespace

std::vector<SignalInfo> kept_signals(const std::vector<SignalInfo>& given, const RecordOptions& options) {
    std::vector<SignalInfo> kept;
    for (const SignalInfo& info : given) {
        if (options.depth_sums && is_of_depth(info.name)) {
            kept.push_back(info);
            kept.back().name += summed_suffix;
            kept.back().storage = SignalStorage::summed;
            kept.back().title += ", over all tokens";
            kept.back().description =
                "Added up over the tokens of the run, not kept by token. " + info.description;
        } else if (options.scalars) {
            if (has_exit_gate(info)) {
                kept.push_back({exit_gate,
                                {"token"},
                                info.unit,
                                info.title + " at exit",
                                info.description + " At the last step that ran."});
            }
        } else if (options.candidates || !is_of_candidates(info.name)) {
            kept.push_back(info);
        }
    }
    return kept;
}

double bytes_a_token(const std::vector<SignalInfo>& kept, const RecordOptions& options,
                     const ModelConfig& config, std::int64_t max_steps) {
    constexpr double row = 75; // of token_row, measured
    double bytes = options.scalars ? static_cast<double>(packed_token_bytes) : row;
    const auto length = [&](const std::string& axis) -> std::int64_t {
        constexpr std::int64_t candidates = 10;
        return axis == "token"                         ? 1
               : axis == "step" || axis == "iteration" ? max_steps + 1
               : axis == "candidate"                   ? candidates
               : axis == "layer" || axis == "source"   ? config.layers
               : axis == "sublayer"                    ? 2 * config.layers
               : axis == "head"                        ? config.query_heads
                                                       : 0; // priced elsewhere, or of few values
    };
    for (const SignalInfo& info : kept) {
        if (info.storage == SignalStorage::summed) {
            continue; // of the run, however many tokens it has
        }
        double values = 1;
        for (const std::string& axis : info.axes) {
            values *= static_cast<double>(length(axis));
        }
        bytes += values * static_cast<double>(size_of(info.dtype));
    }
    return bytes;
}

void keep(WindowResult& result, const RecordOptions& options) {
    if (options.depth_sums) {
        for (auto& [name, chunk] : result.signals) {
            name += is_of_depth(name) ? summed_suffix : std::string_view();
        }
    }
    if (options.scalars) {
        std::vector<std::pair<std::string, SignalChunk>> kept;
        for (auto& [name, chunk] : result.signals) {
            if (name.ends_with(summed_suffix)) {
                kept.emplace_back(name, std::move(chunk));
            } else if (name == signal::gate && chunk.shape.size() == 2) {
                kept.emplace_back(exit_gate, at_exit(chunk, result.tokens.steps));
            }
        }
        result.signals = std::move(kept);
        return;
    }
    if (!options.candidates) {
        std::erase_if(result.signals, [](const auto& one) { return is_of_candidates(one.first); });
    }
}

} // namespace ponderscope
