// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/head_rows.h"
#include "core/kernels/cuda/kernels.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

namespace ponderscope {

bool head_cuda_fits(const at::Tensor& logits, std::int64_t list_length) {
    return !logits.is_cpu() && logits.scalar_type() == at::kFloat && logits.is_contiguous() &&
           list_length <= kernels::longest_head_list;
}

HeadStatistics head_statistics_cuda(const at::Tensor& logits, const at::Tensor& targets, bool entropy,
                                    std::int64_t list_length) {
    const c10::DeviceGuard guard(logits.device());
    const std::int64_t n = logits.size(0);
    const auto integers = logits.options().dtype(at::kLong);
    HeadStatistics found;
    kernels::HeadRows rows;
    rows.logits = logits.const_data_ptr<float>();
    rows.rows = n;
    rows.vocabulary = logits.size(1);
    const auto floats = [&](at::Tensor& made, at::IntArrayRef sizes) {
        made = at::empty(sizes, logits.options());
        return made.mutable_data_ptr<float>();
    };
    rows.maximum = floats(found.maximum, {n, 1});
    rows.sum = floats(found.sum, {n, 1});
    const at::Tensor given = targets.defined() ? targets.contiguous() : at::Tensor();
    if (given.defined()) {
        rows.targets = given.const_data_ptr<std::int64_t>();
        rows.nll = floats(found.nll, {n});
        found.rank = at::empty({n}, integers);
        rows.rank = found.rank.mutable_data_ptr<std::int64_t>();
    }
    if (entropy) {
        rows.entropy = floats(found.entropy, {n});
    }
    if (list_length > 0) {
        rows.list_length = list_length;
        rows.list_values = floats(found.values, {n, list_length});
        found.ids = at::empty({n, list_length}, integers);
        rows.list_ids = found.ids.mutable_data_ptr<std::int64_t>();
    }
    check_queued(kernels::head_rows_cuda(rows, stream_of(logits)), "read_out", logits);
    return found;
}

at::Tensor head_exponentials_cuda(const at::Tensor& logits, const at::Tensor& maximum, double factor,
                                  at::ScalarType type) {
    const c10::DeviceGuard guard(logits.device());
    at::Tensor out = type == at::kFloat ? logits : at::empty(logits.sizes(), logits.options().dtype(type));
    kernels::HeadExponentials rows;
    rows.logits = logits.const_data_ptr<float>();
    rows.maximum = maximum.const_data_ptr<float>();
    rows.rows = logits.size(0);
    rows.vocabulary = logits.size(1);
    rows.factor = static_cast<float>(factor);
    rows.out = out.mutable_data_ptr();
    rows.element = kernels::element_of(type);
    check_queued(kernels::head_exponentials_cuda(rows, stream_of(logits)), "read_out", logits);
    return out;
}

std::pair<at::Tensor, at::Tensor> head_divergences_cuda(const at::Tensor& p, const HeadStatistics& of_p,
                                                        const at::Tensor& q, const HeadStatistics& of_q) {
    const c10::DeviceGuard guard(p.device());
    std::pair<at::Tensor, at::Tensor> apart{at::empty({p.size(0)}, p.options()),
                                            at::empty({p.size(0)}, p.options())};
    kernels::HeadDivergences rows;
    rows.p = p.const_data_ptr<float>();
    rows.q = q.const_data_ptr<float>();
    rows.p_maximum = of_p.maximum.const_data_ptr<float>();
    rows.p_sum = of_p.sum.const_data_ptr<float>();
    rows.q_maximum = of_q.maximum.const_data_ptr<float>();
    rows.q_sum = of_q.sum.const_data_ptr<float>();
    rows.rows = p.size(0);
    rows.vocabulary = p.size(1);
    rows.forward = apart.first.mutable_data_ptr<float>();
    rows.backward = apart.second.mutable_data_ptr<float>();
    check_queued(kernels::head_divergences_cuda(rows, stream_of(p)), "read_out", p);
    return apart;
}

} // namespace ponderscope
