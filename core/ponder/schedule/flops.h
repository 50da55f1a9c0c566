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

} // namespace ponderscope
