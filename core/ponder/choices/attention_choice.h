// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// Layers and query heads whose sequence attention a run records; by default none (methods.md section 10).
struct AttentionChoice {
    std::vector<std::int64_t> layers, heads; ///< ascending, each once; both empty or neither

    /// LAYERS[:HEADS], each `all` or numbers and ranges from 0 as in 0,3-5; without heads: all of them.
    /// InputError: anything else, a layer or a head that the model does not have.
    static AttentionChoice parse(const std::string& text, const ModelConfig& config);
    [[nodiscard]] bool none() const { return layers.empty(); }
    [[nodiscard]] std::string text() const; ///< "layers 0, 3-5; heads 1, 2"
};

} // namespace ponderscope
