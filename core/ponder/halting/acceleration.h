// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <limits>

namespace ponderscope {

/// |move - before| / |move| of each row, [n, d] fp32 both: how much a step of the state differs from the step
/// before it (arXiv 2509.23314, divided by the step's length so that it has no unit). 0: the state did not
/// move; infinite: it stopped moving in this step.
inline at::Tensor acceleration(const at::Tensor& move, const at::Tensor& before) {
    const at::Tensor change = (move - before).norm(2, 1);
    return (change / move.norm(2, 1)).nan_to_num(0.0, std::numeric_limits<double>::infinity());
}

} // namespace ponderscope
