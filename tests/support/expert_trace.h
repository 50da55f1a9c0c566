// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/column_labels.h"
#include "core/trace/writer.h"
#include "tests/support/packed.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace ponderscope::testing {

/// Appends a run of one sequence "a b c ..." whose tokens chose these experts: [token][layer * k + choice],
/// in layers 0 and 2 of a model with \p experts experts. Weights are 0.6 and 0.4.
inline void write_expert_run(const std::filesystem::path& path, const std::string& name, std::int64_t experts,
                             const std::vector<std::vector<std::int8_t>>& chosen) {
    constexpr std::int64_t layers = 2, k = 2;
    const auto count = static_cast<std::int64_t>(chosen.size());
    const std::string description =
        with_column_labels("Chosen. Experts: " + std::to_string(experts) + ".", {"0", "2"});
    RunInfo run;
    run.name = name;
    run.checkpoint_digest = "checkpoint " + name;
    run.architecture = "qwen3_moe";
    run.method = "vanilla";
    run.depth_mixing = "none";
    run.policy = "learned";
    run.scoring = "exact";
    run.text_digest = "text";
    run.tokenizer_digest = "tokenizer";
    run.record_level = "steps";
    run.layers = 3;
    run.vocab_size = 256;
    run.context = run.stride = 64;
    TraceWriter writer(path);
    const std::vector<std::string> axes{"token", "step", "layer", "choice"};
    writer.begin_run(
        run, {{signal::router_experts, axes, "", "Chosen experts", description, DType::i8},
              {signal::router_weights, axes, "weight", "Weights of the chosen experts", description}});
    TokenColumns tokens = equal_tokens(chosen.size());
    tokens.nll.back() = std::numeric_limits<float>::quiet_NaN();
    tokens.rank.back() = 0;
    std::string text;
    SignalChunk ids{0, DType::i8, {count, 1, layers, k}, {}};
    std::vector<float> weights;
    for (std::size_t t = 0; t < chosen.size(); ++t) {
        tokens.id[t] = static_cast<std::int32_t>('a' + t % 26);
        tokens.begin[t] = text.size();
        text += std::string(1, static_cast<char>(tokens.id[t])) + " ";
        tokens.end[t] = text.size();
        for (const std::int8_t id : chosen[t]) {
            ids.data.push_back(static_cast<std::byte>(id));
            weights.push_back(weights.size() % 2 == 0 ? 0.6F : 0.4F);
        }
    }
    writer.begin_sequence("letters", text);
    writer.append(tokens, {{signal::router_experts, ids},
                           {signal::router_weights, packed(DType::f32, ids.shape, weights)}});
    writer.end_sequence();
    writer.end_run(1.0);
    writer.finish();
}

} // namespace ponderscope::testing
