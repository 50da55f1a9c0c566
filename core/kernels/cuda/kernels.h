// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda/attend_ranges.h"
#include "core/kernels/cuda_library.h"

namespace ponderscope {

namespace kernels {

/// The element type of a tensor; \p type is fp32, bf16 or fp16.
inline Element element_of(at::ScalarType type) {
    return type == at::kFloat ? Element::f32 : type == at::kBFloat16 ? Element::bf16 : Element::f16;
}

} // namespace kernels

/// On a GPU, fp32, bf16 or fp16, heads of 8, 16 .. 256 elements.
bool attend_cuda_fits(const at::Tensor& q);
/// Plainly causal blocks of queries in order, of more than one query, in half precision, without a bias.
bool flash_fits(const at::Tensor& q, const Visibility& visibility, const at::Tensor& row_bias);
/// attend for checked arguments, without gradient: LibTorch's flash attention over sequences of any lengths
/// where it fits; else our kernels, to which causal blocks are sent as ranges: on the matrix unit for many
/// queries in half precision, else a query at a time, whose result depends only on the rows that the query
/// sees. Nothing is read back from the device.
at::Tensor attend_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const Visibility& visibility, double scale, const at::Tensor& row_bias);

/// On a GPU, fp32, bf16 or fp16, heads of 8, 16 .. 256 elements, a number of sources that the kernel's
/// arguments hold.
bool depth_mix_cuda_fits(const at::Tensor& v, std::size_t sources);
/// depth_mix by our kernel, for checked, contiguous arguments, without gradient.
DepthMixed depth_mix_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          std::span<const DepthSource> sources, bool want_weights);

/// All of them.
inline void add_kernels(CudaKernels& table) {
    table.attend_fits = attend_cuda_fits;
    table.flash_fits = flash_fits;
    table.attend = attend_cuda;
    table.depth_mix_fits = depth_mix_cuda_fits;
    table.depth_mix = depth_mix_cuda;
}

} // namespace ponderscope
