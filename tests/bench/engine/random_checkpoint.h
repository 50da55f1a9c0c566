// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/files.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/safetensors.h"
#include "core/ponder/engine/model.h"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <vector>

namespace ponderscope::bench {

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
        tensors.push_back({name,
                           dtype,
                           tensor.sizes().vec(),
                           {static_cast<const std::byte*>(tensor.const_data_ptr()),
                            static_cast<std::size_t>(tensor.nbytes())}});
    }
    write_safetensors(folder / "model.safetensors", tensors);
    return Checkpoint::open(folder);
}

} // namespace ponderscope::bench
