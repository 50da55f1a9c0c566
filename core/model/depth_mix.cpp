// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/depth_mix.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ponderscope {

DepthMixed depth_mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     std::span<const DepthSource> sources, bool want_weights) {
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
    const at::Tensor mean =
        q.to(compute).reshape({k.size(0), k.size(1), q.size(1) / k.size(1), size}).mean(2);
    const at::Tensor scores = (mean.unsqueeze(2) * at::stack(keys, 2).to(compute)).sum(-1) /
                              std::sqrt(std::max<double>(1, static_cast<double>(size)));
    const at::Tensor alpha = at::softmax(scores, -1); // [n, g, S + 1]
    const at::Tensor value = (alpha.unsqueeze(3) * at::stack(values, 2).to(compute)).sum(2);
    return {value.to(v.scalar_type()), want_weights ? alpha.to(at::kFloat) : at::Tensor()};
}

} // namespace ponderscope
