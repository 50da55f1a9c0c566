// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/held_out.h"

#include "core/base/error.h"
#include "core/kernels/autocast.h"
#include "core/train/contexts.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace ponderscope {

void ThrottledProgress::operator()(const Progress& progress) {
    if (sink_ && (progress.done >= progress.total || Clock::now() - last_ > std::chrono::milliseconds(200))) {
        sink_(progress);
        last_ = Clock::now();
    }
}

HeldOut measure_held_out(const Model& model, std::span<const std::int32_t> ids, const HeldOutForm& form,
                         at::Device device, const ProgressSink& progress, const std::stop_token& stop) {
    const at::NoGradGuard no_grad;
    const auto begins =
        held_out_windows(static_cast<std::int64_t>(ids.size()), form.context, form.most_windows);
    double sum = 0;
    HeldOut result{.census = StepCensus(model.method(), form.threshold)};
    ThrottledProgress report(progress);
    const auto total = static_cast<std::int64_t>(begins.size()) * form.context;
    for (std::size_t first = 0; first < begins.size(); first += static_cast<std::size_t>(form.batch)) {
        if (stop.stop_requested()) {
            throw Cancelled();
        }
        const auto count = std::min(begins.size() - first, static_cast<std::size_t>(form.batch));
        at::Tensor rows = at::empty({static_cast<std::int64_t>(count), form.context + 1}, at::kLong);
        auto* out = rows.mutable_data_ptr<std::int64_t>();
        for (std::size_t i = 0; i < count; ++i) {
            const auto* from = ids.data() + begins[first + i];
            out = std::copy(from, from + form.context + 1, out);
        }
        const auto batch = PackedBatch::from_rows(rows, device);
        const Autocast autocast(device.type(), form.half);
        const auto tokens = static_cast<std::int64_t>(count) * form.context;
        const ForwardResult forward = model.forward(batch, form.forward);
        sum += forward.cross_entropy.item<double>() * static_cast<double>(tokens);
        result.census.add(forward, tokens, form.forward.training);
        result.tokens += tokens;
        report({"measuring held-out text", result.tokens, total, "tokens"});
    }
    if (result.tokens > 0) {
        result.nll = sum / static_cast<double>(result.tokens);
    }
    return result;
}

} // namespace ponderscope
