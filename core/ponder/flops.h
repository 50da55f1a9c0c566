// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/ponder/method.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// FLOPs of every token of one sequence, exact integers (methods.md section 11): 2 per multiply-add, matrix
/// products only; what is computed only to be recorded is not counted. \p steps: K_t of the sequence's tokens
/// from its first on.
std::vector<std::int64_t> count_flops(const Backbone& backbone, const Method& method,
                                      std::span<const std::int64_t> steps);

} // namespace ponderscope
