// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/choices/request.h"
#include "core/ponder/choices/run_plan.h"
#include "core/ponder/schedule/steps.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// The signals that a run of this level records, in the order of Recorder::signals.
std::vector<SignalInfo> recorded_signals(const ModelConfig& config, const Method& method, const RunPlan& plan,
                                         RecordLevel level);

/// The pass over the vocabulary that makes an expected embedding reads the step out as well; not where slots
/// are computed over and over.
bool reads_steps_anyway(const Method& method, const RunPlan& plan);
/// Refreshes whose movement is recorded.
std::int64_t recorded_refreshes(const Method& method, const RunPlan& plan);
/// The config as the depth recorder sees it: where layers are the steps, a step has weights of its own layer
/// only, and they are not recorded.
ModelConfig mixing_heard(ModelConfig config, const Method& method);

} // namespace ponderscope
