// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <limits>

namespace ponderscope {

/// |move - before| / |move| for each row, both [n, d] fp32: the change between two successive updates of the
/// state, relative to the last update (arXiv 2509.23314). 0: both updates are equal (or zero). Infinite: only
/// the last update is zero.
inline at::Tensor acceleration(const at::Tensor& move, const at::Tensor& before) {
    const at::Tensor change = (move - before).norm(2, 1);
    return (change / move.norm(2, 1)).nan_to_num(0.0, std::numeric_limits<double>::infinity());
}

} // namespace ponderscope
