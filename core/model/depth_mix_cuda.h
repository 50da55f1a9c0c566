// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/depth_mix.h"

#include <cstddef>

namespace ponderscope {

/// Whether depth_mix_cuda was compiled in and takes these values: on a GPU, fp32, bf16 or fp16, heads of at
/// most 256 elements, a number of sources that the kernel's arguments hold.
bool depth_mix_cuda_fits(const at::Tensor& v, std::size_t sources);

/// depth_mix by our kernel, for checked, contiguous arguments, without gradient.
DepthMixed depth_mix_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          std::span<const DepthSource> sources, bool want_weights, const at::Tensor& out);

} // namespace ponderscope
