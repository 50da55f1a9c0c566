// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/attend.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

void check(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visibility& visibility,
           const at::Tensor& row_bias) {
    TORCH_CHECK(q.dim() == 3 && k.dim() == 3 && v.dim() == 3, "attend: q, k, v must have three dimensions");
    TORCH_CHECK(k.sizes() == v.sizes(), "attend: k is ", k.sizes(), ", v is ", v.sizes());
    TORCH_CHECK(q.size(2) == k.size(2), "attend: head sizes of q and k differ: ", q.size(2), ", ", k.size(2));
    TORCH_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0, "attend: ", q.size(1),
                " query heads do not share ", k.size(1), " KV heads");
    TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(),
                "attend: dtypes differ");
    TORCH_CHECK(q.device() == k.device() && q.device() == v.device(), "attend: devices differ");
    TORCH_CHECK(visibility.window >= 0, "attend: a window cannot be negative");
    TORCH_CHECK(visibility.causal.empty() || !visibility.ranges.defined(),
                "attend: visibility is given both as causal blocks and as ranges");
    if (row_bias.defined()) {
        TORCH_CHECK(row_bias.dim() == 1 && row_bias.size(0) == k.size(0), "attend: row_bias is ",
                    row_bias.sizes(), " for ", k.size(0), " rows");
    }
    if (visibility.ranges.defined()) {
        const auto& ranges = visibility.ranges;
        TORCH_CHECK(ranges.dim() == 3 && ranges.size(0) == q.size(0) && ranges.size(2) == 2 &&
                        ranges.scalar_type() == at::kInt && ranges.device() == q.device(),
                    "attend: ranges must be int32 [", q.size(0), ", m, 2] on the queries' device");
        return;
    }
    std::int64_t queries = 0;
    for (const auto& block : visibility.causal) {
        TORCH_CHECK(block.length >= 0 && block.past >= 0 && block.query_begin >= 0 && block.row_begin >= 0 &&
                        block.query_begin + block.length <= q.size(0) &&
                        block.row_begin + block.past + block.length <= k.size(0),
                    "attend: a causal block lies outside of the queries or rows");
        queries += block.length;
    }
    TORCH_CHECK(queries == q.size(0), "attend: causal blocks cover ", queries, " of ", q.size(0), " queries");
}

} // namespace

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visibility& visibility,
                  double scale, const at::Tensor& row_bias) {
    check(q, k, v, visibility, row_bias);
    return attend_reference(q, k, v, visibility, scale, row_bias);
}

} // namespace ponderscope
