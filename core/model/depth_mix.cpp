// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/depth_mix.h"

#include "core/model/cuda_library.h"
#include "core/model/gradient.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ponderscope {

namespace {

void check(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
           std::span<const DepthSource> sources) {
    TORCH_CHECK(q.dim() == 3 && k.dim() == 3 && v.sizes() == k.sizes(), "depth_mix: q ", q.sizes(), ", k ",
                k.sizes(), ", v ", v.sizes());
    TORCH_CHECK(q.size(0) == k.size(0) && q.size(2) == k.size(2) && k.size(1) > 0 &&
                    q.size(1) % k.size(1) == 0,
                "depth_mix: q ", q.sizes(), " does not fit k ", k.sizes());
    for (const DepthSource& source : sources) {
        TORCH_CHECK(source.key.sizes() == k.sizes() && source.value.sizes() == k.sizes() &&
                        source.key.scalar_type() == k.scalar_type() && source.key.device() == k.device(),
                    "depth_mix: a source is ", source.key.sizes(), " for ", k.sizes());
    }
}

bool any_wants_gradient(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        std::span<const DepthSource> sources) {
    return wants_gradient(q) || wants_gradient(k) || wants_gradient(v) ||
           std::any_of(sources.begin(), sources.end(), [](const DepthSource& source) {
               return wants_gradient(source.key) || wants_gradient(source.value);
           });
}

/// Slots [begin, end): keys and values hold the sources', then the layer's own.
template <typename T>
void mix_slots(const T* q, const std::vector<const T*>& keys, const std::vector<const T*>& values, T* out,
               float* weights, std::int64_t begin, std::int64_t end, std::int64_t heads, std::int64_t group,
               std::int64_t size) {
    const std::size_t count = keys.size();
    const float scale = 1.0F / (std::sqrt(static_cast<float>(size)) * static_cast<float>(group));
    std::vector<float> mean(static_cast<std::size_t>(size));
    std::vector<float> sum(static_cast<std::size_t>(size));
    std::vector<float> alpha(count);
    for (std::int64_t row = begin * heads; row < end * heads; ++row) {
        const T* queries = q + row * group * size;
        for (std::int64_t e = 0; e < size; ++e) {
            float total = 0;
            for (std::int64_t j = 0; j < group; ++j) {
                total += static_cast<float>(queries[j * size + e]);
            }
            mean[static_cast<std::size_t>(e)] = total * scale;
        }
        float largest = -std::numeric_limits<float>::infinity();
        for (std::size_t s = 0; s < count; ++s) {
            const T* key = keys[s] + row * size;
            float dot = 0;
            for (std::int64_t e = 0; e < size; ++e) {
                dot += mean[static_cast<std::size_t>(e)] * static_cast<float>(key[e]);
            }
            alpha[s] = dot;
            largest = std::max(largest, dot);
        }
        float total = 0;
        for (float& value : alpha) {
            value = std::exp(value - largest);
            total += value;
        }
        std::fill(sum.begin(), sum.end(), 0.0F);
        for (std::size_t s = 0; s < count; ++s) {
            alpha[s] /= total;
            const T* value = values[s] + row * size;
            for (std::int64_t e = 0; e < size; ++e) {
                sum[static_cast<std::size_t>(e)] += alpha[s] * static_cast<float>(value[e]);
            }
        }
        for (std::int64_t e = 0; e < size; ++e) {
            out[row * size + e] = static_cast<T>(sum[static_cast<std::size_t>(e)]);
        }
        if (weights != nullptr) {
            std::copy(alpha.begin(), alpha.end(), weights + row * static_cast<std::int64_t>(count));
        }
    }
}

DepthMixed depth_mix_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         std::span<const DepthSource> sources, bool want_weights, const at::Tensor& out) {
    const std::int64_t n = k.size(0);
    const std::int64_t heads = k.size(1);
    const std::int64_t size = k.size(2);
    DepthMixed mixed;
    mixed.value = out.defined() ? out : at::empty(v.sizes(), v.options());
    if (want_weights) {
        mixed.weights = at::empty({n, heads, static_cast<std::int64_t>(sources.size()) + 1},
                                  v.options().dtype(at::kFloat));
    }
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, v.scalar_type(), "depth_mix", [&] {
        std::vector<const scalar_t*> keys;
        std::vector<const scalar_t*> values;
        for (const DepthSource& source : sources) {
            keys.push_back(source.key.const_data_ptr<scalar_t>());
            values.push_back(source.value.const_data_ptr<scalar_t>());
        }
        keys.push_back(k.const_data_ptr<scalar_t>());
        values.push_back(v.const_data_ptr<scalar_t>());
        float* weights = want_weights ? mixed.weights.mutable_data_ptr<float>() : nullptr;
        auto* target = mixed.value.mutable_data_ptr<scalar_t>();
        const auto* queries = q.const_data_ptr<scalar_t>();
        const std::int64_t work =
            std::max<std::int64_t>(1, heads * size) * static_cast<std::int64_t>(keys.size());
        at::parallel_for(
            0, n, std::max<std::int64_t>(1, 16384 / work), [&](std::int64_t begin, std::int64_t end) {
                mix_slots(queries, keys, values, target, weights, begin, end, heads, q.size(1) / heads, size);
            });
    });
    return mixed;
}

} // namespace

DepthMixed depth_mix_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               std::span<const DepthSource> sources, bool want_weights) {
    const at::ScalarType compute = v.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const std::int64_t size = k.size(2);
    std::vector<at::Tensor> keys;
    std::vector<at::Tensor> values;
    for (const DepthSource& source : sources) {
        keys.push_back(source.key);
        values.push_back(source.value);
    }
    keys.push_back(k);
    values.push_back(v);
    const at::Tensor mean = q.to(compute).reshape({k.size(0), k.size(1), -1, size}).mean(2);
    const at::Tensor scores =
        (mean.unsqueeze(2) * at::stack(keys, 2).to(compute)).sum(-1) / std::sqrt(static_cast<double>(size));
    const at::Tensor alpha = at::softmax(scores, -1); // [n, g, S + 1]
    const at::Tensor value = (alpha.unsqueeze(3) * at::stack(values, 2).to(compute)).sum(2);
    return {value.to(v.scalar_type()), want_weights ? alpha.to(at::kFloat) : at::Tensor()};
}

DepthMixed depth_mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     std::span<const DepthSource> sources, bool want_weights, const at::Tensor& out) {
    check(q, k, v, sources);
    const bool dense = std::all_of(sources.begin(), sources.end(), [](const DepthSource& source) {
        return source.key.is_contiguous() && source.value.is_contiguous();
    });
    if (dense && !any_wants_gradient(q, k, v, sources)) {
        if (v.device().is_cpu() && v.scalar_type() != at::kDouble) {
            return depth_mix_cpu(q.contiguous(), k.contiguous(), v.contiguous(), sources, want_weights, out);
        }
        if (const CudaKernels* cuda = cuda_kernels(v);
            cuda != nullptr && cuda->depth_mix_fits(v, sources.size())) {
            return cuda->depth_mix(q.contiguous(), k.contiguous(), v.contiguous(), sources, want_weights,
                                   out);
        }
    }
    DepthMixed mixed = depth_mix_reference(q, k, v, sources, want_weights);
    if (out.defined()) {
        out.copy_(mixed.value);
        mixed.value = out;
    }
    return mixed;
}

} // namespace ponderscope
