// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// The location of a state: after a layer at a step of a token, or at the end of the step.
struct StatePlace {
    static constexpr std::int64_t end_of_step = -1; ///< value of `layer`
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

} // namespace ponderscope
