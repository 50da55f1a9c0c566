// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// States that a run records: after these layers at every step, or, without layers, at the end of each step.
struct StateChoice {
    std::vector<std::int64_t> layers; ///< ascending, each once, of those that every step runs

    /// Empty: the end of each step. `all`, or numbers and ranges from 0 as in 0,3-5. InputError: anything
    /// else, a layer that the model does not run at every step, a residual that is no single stream.
    static StateChoice parse(const std::string& text, const ModelConfig& config);
    [[nodiscard]] std::string text() const; ///< "after layers 0, 3-5", "at the end of each step"
};

/// InputError unless what leaves a layer of the model is a single residual stream. \p what: "--record
/// states:LAYERS".
void require_single_stream(const ModelConfig& config, const std::string& what);

} // namespace ponderscope
