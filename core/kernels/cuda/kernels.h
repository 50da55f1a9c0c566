// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda/attend_ranges.h"
#include "core/kernels/cuda_library.h"

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

namespace ponderscope {

namespace kernels {

/// The element type of a tensor; \p type is fp32, bf16 or fp16.
inline Element element_of(at::ScalarType type) {
    return type == at::kFloat ? Element::f32 : type == at::kBFloat16 ? Element::bf16 : Element::f16;
}

} // namespace kernels

/// The stream on which work on the tensor is queued.
inline void* stream_of(const at::Tensor& tensor) {
    return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

/// c10::Error if a kernel could not be queued. \p error: null or a message. \p what: the kernel.
inline void check_queued(const char* error, const char* what, const at::Tensor& tensor) {
    TORCH_CHECK(error == nullptr, what, " on ", tensor.device(), ": ", error);
}

/// Whether the tensor fits: on a GPU; fp32, bf16 or fp16; heads of 8, 16 .. 256 elements.
bool attend_cuda_fits(const at::Tensor& q);
/// Whether the queries are causal blocks in order, with two or more queries each, half precision and no bias.
bool flash_fits(const at::Tensor& q, const Visibility& visibility, const at::Tensor& row_bias);
/// attend for checked arguments, without gradient. If flash_fits(), LibTorch's flash attention runs, for
/// sequences of any lengths. Otherwise our kernels read causal blocks as ranges. Many queries in half
/// precision run on the matrix unit, other queries run one at a time. With one query at a time, the result of
/// a query depends only on the rows that the query sees. Nothing is copied to the host.
at::Tensor attend_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const Visibility& visibility, double scale, const at::Tensor& row_bias);

/// Whether the logits are contiguous fp32 on a GPU, and the kernel's memory holds a list of this length.
bool head_cuda_fits(const at::Tensor& logits, std::int64_t list_length);
HeadStatistics head_statistics_cuda(const at::Tensor& logits, const at::Tensor& targets, bool entropy,
                                    std::int64_t list_length);
at::Tensor head_exponentials_cuda(const at::Tensor& logits, const at::Tensor& maximum, double factor,
                                  at::ScalarType type);
std::pair<at::Tensor, at::Tensor> head_divergences_cuda(const at::Tensor& p, const HeadStatistics& of_p,
                                                        const at::Tensor& q, const HeadStatistics& of_q);

/// Whether the tensor is fp32, bf16 or fp16 on a GPU, with contiguous heads.
bool rotate_cuda_fits(const at::Tensor& x);
/// rotate() of core/model/rope.h, without gradient.
at::Tensor rotate_cuda(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                       const at::Tensor& rows, bool neighbours);

/// Enters all kernels of this folder in the table.
inline void add_kernels(CudaKernels& table) {
    table.attend_fits = attend_cuda_fits;
    table.flash_fits = flash_fits;
    table.attend = attend_cuda;
    table.rotate_fits = rotate_cuda_fits;
    table.rotate = rotate_cuda;
    table.head_fits = head_cuda_fits;
    table.head_statistics = head_statistics_cuda;
    table.head_exponentials = head_exponentials_cuda;
    table.head_divergences = head_divergences_cuda;
}

} // namespace ponderscope
