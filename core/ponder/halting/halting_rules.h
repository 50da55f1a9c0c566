// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope {

class HaltingRule; // halting.h

/// No token halts. On a run under this rule, replays can choose any step.
std::shared_ptr<const HaltingRule> full_halting();

/// The chosen tokens run up to a given last step (at most K). The other tokens follow \p otherwise (nullptr:
/// the method's own rule).
struct ForcedSteps {
    std::int64_t sequence = 0; ///< number in the run
    std::int64_t position = 0; ///< position in the sequence
    std::int64_t steps = 0;
};
std::shared_ptr<const HaltingRule> forced_halting(std::vector<ForcedSteps> forced,
                                                  std::shared_ptr<const HaltingRule> otherwise);

/// Every token runs up to its given last step, steps[sequence][position]; tokens without an entry run up to
/// K. Reruns of the oracle use this rule with the replay's steps (methods.md section 9). \p name is stored
/// with the run.
std::shared_ptr<const HaltingRule> prescribed_halting(std::string name,
                                                      std::vector<std::vector<std::int32_t>> steps);

} // namespace ponderscope
