// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/kernels.h"
#include "core/kernels/cuda/rotate_heads.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

namespace ponderscope {

bool rotate_cuda_fits(const at::Tensor& x) {
    const at::ScalarType type = x.scalar_type();
    return !x.is_cpu() && x.stride(2) == 1 &&
           (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

at::Tensor rotate_cuda(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                       const at::Tensor& rows, bool neighbours) {
    const c10::DeviceGuard guard(x.device());
    at::Tensor out = at::empty(x.sizes(), x.options().memory_format(at::MemoryFormat::Contiguous));
    kernels::RotateHeads arguments;
    arguments.x = x.const_data_ptr();
    arguments.out = out.mutable_data_ptr();
    arguments.cos = cos.const_data_ptr<float>();
    arguments.sin = sin.const_data_ptr<float>();
    arguments.rows = rows.const_data_ptr<std::int64_t>();
    arguments.n = x.size(0);
    arguments.heads = x.size(1);
    arguments.size = x.size(2);
    arguments.half = cos.size(1);
    arguments.row_stride = x.stride(0);
    arguments.head_stride = x.stride(1);
    arguments.neighbours = neighbours;
    arguments.element = kernels::element_of(x.scalar_type());
    check_queued(kernels::rotate_heads_cuda(arguments, stream_of(x)), "rotate", x);
    return out;
}

} // namespace ponderscope
