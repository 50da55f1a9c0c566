// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace ponderscope {

/// The error message for a model with NaN logits.
inline constexpr const char* no_numbers = "The model's logits are NaN, so that it predicts nothing: expected "
                                          "weights that are numbers and a precision "
                                          "that holds what is made of them, found others; take the "
                                          "checkpoint again, one from before it diverged, or "
                                          "--dtype float32.";

inline std::string sentence_of_lost(std::int64_t tokens) {
    return "Of " + std::to_string(tokens) + " tokens there is no NLL. " + no_numbers;
}

} // namespace ponderscope
