// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <limits>

namespace ponderscope {

/// |move - before| / |move| for each row, both [n, d] fp32: the change between two successive updates of the
/// state (arXiv 2509.23314), relative to the last update. 0: the state did not move; infinite: it stopped
/// moving in this step.
inline at::Tensor acceleration(const at::Tensor& move, const at::Tensor& before) {
    const at::Tensor change = (move - before).norm(2, 1);
    return (change / move.norm(2, 1)).nan_to_num(0.0, std::numeric_limits<double>::infinity());
}

} // namespace ponderscope
