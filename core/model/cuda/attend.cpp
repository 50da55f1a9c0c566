// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/cuda/attend_ranges.h"
#include "core/model/cuda/kernels.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace ponderscope {

namespace {

at::Tensor as_ranges(const Visibility& visibility, std::int64_t queries, at::Device device) {
    if (visibility.ranges.defined()) {
        return visibility.ranges.contiguous();
    }
    const auto on_host = at::empty({queries, 1, 2}, at::TensorOptions().dtype(at::kInt).pinned_memory(true));
    auto* numbers = on_host.data_ptr<std::int32_t>();
    for (const auto& block : visibility.causal) {
        for (std::int64_t i = 0; i < block.length; ++i) {
            numbers[2 * (block.query_begin + i)] = static_cast<std::int32_t>(block.row_begin);
            numbers[2 * (block.query_begin + i) + 1] =
                static_cast<std::int32_t>(block.row_begin + block.past + i + 1);
        }
    }
    // The allocator keeps pinned memory until the copy is done.
    return on_host.to(device, /*non_blocking=*/true);
}

at::Tensor with_contiguous_heads(const at::Tensor& tensor) {
    return tensor.stride(2) == 1 ? tensor : tensor.contiguous();
}

} // namespace

bool attend_cuda_fits(const at::Tensor& q) {
    const auto type = q.scalar_type();
    return q.is_cuda() && kernels::fits_cuda_head(q.size(2)) &&
           (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

at::Tensor attend_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const Visibility& visibility, double scale, const at::Tensor& row_bias) {
    const c10::cuda::CUDAGuard guard(q.device());
    const auto queries = with_contiguous_heads(q);
    const auto keys = with_contiguous_heads(k);
    const auto values = with_contiguous_heads(v);
    const auto ranges = as_ranges(visibility, q.size(0), q.device());
    const auto bias = row_bias.defined() ? row_bias.to(at::kFloat).contiguous() : at::Tensor();
    auto out = at::empty(q.sizes(), q.options().memory_format(at::MemoryFormat::Contiguous));

    kernels::AttendRanges arguments;
    arguments.q = queries.const_data_ptr();
    arguments.k = keys.const_data_ptr();
    arguments.v = values.const_data_ptr();
    arguments.out = out.data_ptr();
    arguments.ranges = ranges.const_data_ptr<std::int32_t>();
    arguments.row_bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
    arguments.queries = q.size(0);
    arguments.ranges_per_query = ranges.size(1);
    arguments.query_heads = q.size(1);
    arguments.kv_heads = k.size(1);
    arguments.head_size = q.size(2);
    arguments.window = visibility.window;
    arguments.q_stride = queries.stride(0);
    arguments.q_head_stride = queries.stride(1);
    arguments.k_stride = keys.stride(0);
    arguments.k_head_stride = keys.stride(1);
    arguments.v_stride = values.stride(0);
    arguments.v_head_stride = values.stride(1);
    arguments.scale = static_cast<float>(scale);
    arguments.element = q.scalar_type() == at::kFloat      ? kernels::Element::f32
                        : q.scalar_type() == at::kBFloat16 ? kernels::Element::bf16
                                                           : kernels::Element::f16;
    const char* error =
        kernels::attend_ranges_cuda(arguments, c10::cuda::getCurrentCUDAStream(q.device().index()).stream());
    TORCH_CHECK(error == nullptr, "attend on ", q.device(), ": ", error);
    return out;
}

} // namespace ponderscope
