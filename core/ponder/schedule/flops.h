// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/policy/flops_model.h"
#include "core/ponder/method.h"
#include "core/ponder/schedule/steps.h"

#include <ATen/core/Tensor.h>

namespace ponderscope {

/// The FLOPs model of a backbone with a method (methods.md section 11).
FlopsModel flops_model(const Backbone& backbone, const Method& method, const RunPlan& plan);

/// FLOPs of step-0 slots from the number of keys that each slot sees, its own included: int64 [n] -> int64
/// [n]. For passes that compute all slots at once.
at::Tensor slot_flops(const FlopsModel& model, const at::Tensor& visible);

} // namespace ponderscope
