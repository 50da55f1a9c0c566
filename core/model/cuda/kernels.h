// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/cuda_library.h"

namespace ponderscope {

/// On a GPU, fp32, bf16 or fp16, heads of at most 256 elements.
bool attend_cuda_fits(const at::Tensor& q);
/// attend by our kernel, for checked arguments, without gradient. Nothing is read back from the device;
/// causal blocks are sent to it as ranges. A query's result depends on nothing but what it sees.
at::Tensor attend_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const Visibility& visibility, double scale, const at::Tensor& row_bias);

/// On a GPU, fp32, bf16 or fp16, heads of at most 256 elements, a number of sources that the kernel's
/// arguments hold.
bool depth_mix_cuda_fits(const at::Tensor& v, std::size_t sources);
/// depth_mix by our kernel, for checked, contiguous arguments, without gradient.
DepthMixed depth_mix_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          std::span<const DepthSource> sources, bool want_weights, const at::Tensor& out);

bool read_out_cuda_fits(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request);
/// read_out on a GPU for checked requests: logits of some thousand tokens at a time, read once by a kernel
/// that makes their statistics. Nothing is read back from the device.
HeadResult read_out_cuda(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request);

} // namespace ponderscope
