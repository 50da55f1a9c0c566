// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/kept_signals.h"

#include "core/trace/packed_values.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

namespace ponderscope {
namespace {

bool is_of_candidates(std::string_view name) {
    return name == signal::candidate_ids || name == signal::candidate_probabilities;
}

/// The values of a signal [token, step] at each token's last step.
SignalChunk at_exit(const SignalChunk& by_step, const std::vector<std::int32_t>& steps) {
    const std::vector<float> values = to_floats(by_step);
    const auto width = static_cast<std::size_t>(by_step.shape[1]);
    std::vector<float> exits(steps.size(), std::numeric_limits<float>::quiet_NaN());
    for (std::size_t t = 0; t < exits.size(); ++t) {
        const auto step = static_cast<std::size_t>(std::max(steps[t], 0));
        // The gate has no value at step K if it decides only about the next step.
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

std::vector<SignalInfo> kept_signals(const std::vector<SignalInfo>& given, const KeptSignals& which) {
    std::vector<SignalInfo> kept;
    for (const SignalInfo& info : given) {
        if (which.scalars) {
            if (has_exit_gate(info)) {
                kept.push_back({exit_gate,
                                {"token"},
                                info.unit,
                                info.title + " at exit",
                                info.description + " At the last step that ran."});
            }
        } else if (which.candidates || !is_of_candidates(info.name)) {
            kept.push_back(info);
        }
    }
    return kept;
}

std::int64_t bytes_a_token(const Engine& engine, const RecordOptions& options, std::int64_t tokens) {
    constexpr std::int64_t row = 75; // measured size of a row of token_row
    if (options.kept.scalars) {
        return packed_token_bytes + static_cast<std::int64_t>(sizeof(float)); // plus the gate
    }
    std::int64_t bytes = row;
    for (const auto& [info, each] : engine.signal_bytes(options.level)) {
        if (info.name == signal::attention) {
            bytes += each * tokens / 2; // a token has keys of itself and earlier tokens
        } else if (options.kept.candidates || !is_of_candidates(info.name)) {
            bytes += each;
        }
    }
    return bytes;
}

void keep(WindowResult& result, const KeptSignals& which) {
    if (which.scalars) {
        std::vector<std::pair<std::string, SignalChunk>> kept;
        for (auto& [name, chunk] : result.signals) {
            if (name == signal::gate && chunk.shape.size() == 2) {
                kept.emplace_back(exit_gate, at_exit(chunk, result.tokens.steps));
            }
        }
        result.signals = std::move(kept);
        return;
    }
    if (!which.candidates) {
        std::erase_if(result.signals, [](const auto& one) { return is_of_candidates(one.first); });
    }
}

} // namespace ponderscope
