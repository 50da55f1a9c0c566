// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// The location of a state: after a layer at a step of a token, or at the end of the step.
struct StatePlace {
    static constexpr std::int64_t end_of_step = -1; ///< value of `layer`
    static constexpr std::int64_t all_tokens = -1;  ///< value of `token`: the mean over all tokens
    std::int64_t sequence = 0;                      ///< number in the run, from 0
    std::int64_t token = 0;                         ///< position in the sequence
    std::int64_t step = 0;
    std::int64_t layer = end_of_step;
    bool operator==(const StatePlace&) const = default;
};

/// "sequence 0, token 12, step 1, layer 3".
std::string to_string(const StatePlace& place);

/// A state that replaces the computed one. All later computation uses it.
struct StatePatch {
    StatePlace to;
    std::vector<float> state;
};

/// Sum of the states at one location over tokens.
struct StateSum {
    std::vector<float> sum;
    std::int64_t tokens = 0;                       ///< 0: no token was read out, or none ran the step
    [[nodiscard]] std::vector<float> mean() const; ///< empty: no token
};

} // namespace ponderscope
