// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"
#include "core/policy/policy_spec.h"

#include <memory>

namespace ponderscope {

class HaltingRule; // halting.h

/// The halting rule that applies a policy to a run (methods.md section 9, "Rerun"). After each step the rule
/// decides as in a replay, but from the signals of this run. The engine makes the read-outs that the rule
/// needs. InputError: the oracle (it needs the next token), or a policy that does not fit the model: learned
/// without a gate or router, fixed beyond K, random pruning without a rate.
std::shared_ptr<const HaltingRule> policy_halting(const PolicySpec& spec, const ModelConfig& config);

} // namespace ponderscope
