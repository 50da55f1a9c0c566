// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace ponderscope {

/// The error message for a model with NaN logits.
inline constexpr const char* no_numbers = "The model's logits are NaN; copy the checkpoint again, take an "
                                          "earlier checkpoint of its training, or add --dtype float32.";

inline std::string sentence_of_lost(std::int64_t tokens) {
    return std::to_string(tokens) + " tokens have no NLL. " + no_numbers;
}

} // namespace ponderscope
