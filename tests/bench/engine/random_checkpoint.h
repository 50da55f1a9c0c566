// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/files.h"
#include "core/base/splitmix.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/safetensors.h"
#include "core/ponder/engine/model.h"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace ponderscope::bench {

/// config.json of a GPT-NeoX of these sizes.
inline nlohmann::json neox_config(std::int64_t d, std::int64_t layers, std::int64_t heads,
                                  std::int64_t vocabulary) {
    return {{"model_type", "gpt_neox"},       {"hidden_size", d},
            {"intermediate_size", 4 * d},     {"num_hidden_layers", layers},
            {"num_attention_heads", heads},   {"vocab_size", vocabulary},
            {"max_position_embeddings", 2048}};
}

/// Ids below \p vocabulary, the same for the same seed.
inline std::vector<std::int32_t> random_ids(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
    std::vector<std::int32_t> ids;
    for (std::int64_t t = 0; t < count; ++t) {
        const std::uint64_t drawn = splitmix64(seed, static_cast<std::uint64_t>(t));
        ids.push_back(static_cast<std::int32_t>(bounded(drawn, static_cast<std::uint64_t>(vocabulary))));
    }
    return ids;
}

/// A checkpoint in Hugging Face layout with that config.json and fresh weights, the same every time.
inline Checkpoint make_random_checkpoint(const std::filesystem::path& folder, const nlohmann::json& config,
                                         DType dtype = DType::f32) {
    std::filesystem::create_directories(folder);
    write_file_atomically(folder / "config.json", config.dump(1));
    std::vector<std::pair<std::string, at::Tensor>> kept;
    {
        const Parameters parameters =
            Parameters::initialise(parameter_layout(read_model_config(folder / "config.json")), 7, at::kCPU);
        for (const auto& [name, tensor] : parameters.items()) {
            kept.emplace_back(name, dtype == DType::bf16 ? tensor.detach().to(at::kBFloat16) : tensor);
        }
    }
    std::vector<TensorView> tensors;
    for (const auto& [name, tensor] : kept) {
        const std::span bytes(static_cast<const std::byte*>(tensor.const_data_ptr()),
                              static_cast<std::size_t>(tensor.nbytes()));
        tensors.push_back({name, dtype, tensor.sizes().vec(), bytes});
    }
    write_safetensors(folder / "model.safetensors", tensors);
    return Checkpoint::open(folder);
}

} // namespace ponderscope::bench
