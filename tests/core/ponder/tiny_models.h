// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"
#include "core/ponder/engine/engine.h"
#include "tests/support/test_data.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope::testing {

/// config.json with these keys and a vocabulary of that size.
nlohmann::json tiny_config(const char* keys, std::int64_t vocabulary = 61);
/// The config with these keys over its own.
nlohmann::json with_keys(nlohmann::json config, const char* keys);
/// config.json of small models: every odd size differs from the others, so that a swapped axis shows.
nlohmann::json tiny_gpt_neox(std::int64_t vocabulary = 61);
nlohmann::json tiny_gpt2(std::int64_t vocabulary = 61);
nlohmann::json tiny_llama(std::int64_t vocabulary = 61);
nlohmann::json tiny_mistral(std::int64_t vocabulary = 61); ///< a window of 5 keys in every layer
nlohmann::json tiny_qwen2(std::int64_t vocabulary = 61);   ///< a window of 6 keys in the upper layers
nlohmann::json tiny_qwen3(std::int64_t vocabulary = 61);   ///< a window of 7 keys by layer_types
/// Four experts, two chosen, in layers 0 and 2; layer 1 has a plain MLP.
nlohmann::json tiny_qwen3_moe(std::int64_t vocabulary = 61);
nlohmann::json tiny_phi(std::int64_t vocabulary = 61);
nlohmann::json tiny_opt(std::int64_t vocabulary = 61);      ///< norms after the sums, narrow embeddings
nlohmann::json tiny_nanbeige(std::int64_t vocabulary = 61); ///< norms per head, one pass
/// The config of a Llama, or of its kind, with Depth-Attention and norms per head.
nlohmann::json with_depth_attention(nlohmann::json config, std::int64_t stride, std::int64_t window = 0);
/// The config with PonderLM on it.
nlohmann::json with_ponderlm(nlohmann::json config, std::int64_t steps);

/// Writes the config and weights drawn from \p seed (large enough that attention and logits are far from
/// flat) and opens the folder. \p method: where the config fits several.
Checkpoint make_checkpoint(const std::filesystem::path& folder, const nlohmann::json& config,
                           std::uint64_t seed = 1, std::optional<MethodKind> method = std::nullopt);

/// In which the tests were asked to run (test_dtype).
Precision test_precision();
/// The engine on the device and in the dtype that the tests were asked for (test_device); \p precision wins.
Engine load_engine(const Checkpoint& checkpoint, std::optional<Precision> precision = std::nullopt);

/// The same checkpoint with its weights rounded to \p precision, stored in fp32.
void round_weights(const Checkpoint& checkpoint, Precision precision, const std::filesystem::path& folder);
/// The same checkpoint with every weight moved to the next number of fp32, up or down by a draw: what its
/// results change by is what rounding alone may do to them.
void nudge_weights(const Checkpoint& checkpoint, const std::filesystem::path& folder);

/// Ids below \p vocabulary, the same for the same seed.
std::vector<std::int32_t> random_ids(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed);

/// All of a text as one window.
Window whole(const std::vector<std::int32_t>& ids);
/// A window scored alone.
WindowResult scored_alone(const Engine& engine, const Window& window, RecordLevel level);

/// The signal of a result; nullptr: it has none of that name.
const SignalChunk* find(const WindowResult& result, const std::string& name);
/// Its values; std::out_of_range without it.
std::vector<float> floats_of(const WindowResult& result, const std::string& name);

} // namespace ponderscope::testing
