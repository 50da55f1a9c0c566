// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/depth_mix.h"

#include "core/kernels/cuda/kernels.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

namespace ponderscope {

bool depth_mix_cuda_fits(const at::Tensor& v, std::size_t sources) {
    const at::ScalarType type = v.scalar_type();
    return !v.is_cpu() && kernels::fits_cuda_head(v.size(2)) &&
           static_cast<std::int64_t>(sources) <= kernels::most_depth_sources &&
           (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

DepthMixed depth_mix_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          std::span<const DepthSource> sources, bool want_weights) {
    const c10::DeviceGuard guard(v.device());
    DepthMixed mixed;
    mixed.value = at::empty(v.sizes(), v.options());
    if (want_weights) {
        mixed.weights = at::empty({v.size(0), v.size(1), static_cast<std::int64_t>(sources.size()) + 1},
                                  v.options().dtype(at::kFloat));
    }
    kernels::DepthMix arguments;
    arguments.q = q.const_data_ptr();
    arguments.k = k.const_data_ptr();
    arguments.v = v.const_data_ptr();
    arguments.out = mixed.value.mutable_data_ptr();
    arguments.weights = want_weights ? mixed.weights.mutable_data_ptr<float>() : nullptr;
    for (const DepthSource& source : sources) {
        arguments.source_keys[arguments.sources] = source.key.const_data_ptr();
        arguments.source_values[arguments.sources] = source.value.const_data_ptr();
        ++arguments.sources;
    }
    arguments.rows = v.size(0);
    arguments.query_heads = q.size(1);
    arguments.kv_heads = v.size(1);
    arguments.head_size = v.size(2);
    arguments.element = kernels::element_of(v.scalar_type());
    check_queued(kernels::depth_mix_cuda(arguments, stream_of(v)), "depth_mix", v);
    return mixed;
}

} // namespace ponderscope
