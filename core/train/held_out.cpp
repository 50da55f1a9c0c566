// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/held_out.h"

#include "core/base/error.h"
#include "core/kernels/autocast.h"
#include "core/ponder/method.h"
#include "core/train/trainer_impl.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace ponderscope {

StepCensus::StepCensus(const Method& method, double threshold)
    : halts_(method.halts()),
      all_run_in_training_(method.halts() && !method.halts_in_training()),
      threshold_(threshold),
      reached_(static_cast<std::size_t>(method.max_steps() + 1)),
      gate_sum_(reached_.size()) {}

void StepCensus::add(const ForwardResult& forward, std::int64_t tokens, bool training) {
    tokens_ += tokens;
    at::Tensor alive; // bool [N]: tokens that did not stop; undefined: all rows
    for (std::size_t k = 0; k < forward.steps.size() && k < reached_.size(); ++k) {
        const StepStates& states = forward.steps[k];
        reached_[k] += alive.defined() ? alive.sum().item<std::int64_t>() : states.hidden.size(0);
        if (!states.value.defined()) {
            continue;
        }
        gated_ = true;
        const at::Tensor values = states.value.to(at::kDouble);
        gate_sum_[k] += (alive.defined() ? values.masked_select(alive) : values).sum().item<double>();
        if (training && all_run_in_training_) {
            const at::Tensor on = states.value >= threshold_;
            alive = alive.defined() ? alive.logical_and(on) : on;
        }
    }
}

std::vector<double> StepCensus::gates() const {
    std::vector<double> means;
    for (std::size_t k = 0; gated_ && k + 1 < reached_.size(); ++k) {
        means.push_back(reached_[k] > 0 ? gate_sum_[k] / static_cast<double>(reached_[k])
                                        : std::numeric_limits<double>::quiet_NaN());
    }
    return means;
}

std::vector<double> StepCensus::shares() const {
    std::vector<double> shares;
    for (std::size_t k = 0; tokens_ > 0 && k < reached_.size(); ++k) {
        const std::int64_t on = k + 1 < reached_.size() ? reached_[k + 1] : 0;
        shares.push_back(static_cast<double>(reached_[k] - on) / static_cast<double>(tokens_));
    }
    return shares;
}

double StepCensus::mean_steps() const {
    if (tokens_ == 0) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    double sum = 0;
    for (std::size_t k = 1; k < reached_.size(); ++k) {
        sum += static_cast<double>(reached_[k]); // a token with K_t steps is in K_t terms
    }
    return sum / static_cast<double>(tokens_);
}

HeldOut Trainer::measure(const ForwardForm& form, std::int64_t most_windows, bool half,
                         const std::stop_token& stop) const {
    const at::NoGradGuard no_grad;
    const std::span<const std::int32_t> ids = corpus_.held_out;
    const std::vector<std::int64_t> begins =
        held_out_windows(static_cast<std::int64_t>(ids.size()), recipe_.context, most_windows);
    double sum = 0;
    HeldOut result{.census = StepCensus(model_->method(), config_.ponder.threshold)};
    const auto total = static_cast<std::int64_t>(begins.size()) * recipe_.context;
    const auto batch = static_cast<std::size_t>(recipe_.batch);
    for (std::size_t first = 0; first < begins.size(); first += batch) {
        throw_if_stopped(stop);
        std::vector<std::span<const std::int32_t>> windows;
        for (std::size_t i = first; i < std::min(begins.size(), first + batch); ++i) {
            windows.push_back(ids.subspan(static_cast<std::size_t>(begins[i]),
                                          static_cast<std::size_t>(recipe_.context + 1)));
        }
        const Autocast autocast(device_.type(), half);
        const auto tokens = static_cast<std::int64_t>(windows.size()) * recipe_.context;
        const ForwardResult forward = model_->forward(PackedBatch::from_windows(windows, device_), form);
        sum += forward.cross_entropy.item<double>() * static_cast<double>(tokens);
        result.census.add(forward, tokens, form.training);
        result.tokens += tokens;
        report_progress(options_.progress, {"measuring held-out text", result.tokens, total, "tokens"});
    }
    if (result.tokens > 0) {
        result.nll = sum / static_cast<double>(result.tokens);
    }
    return result;
}

} // namespace ponderscope
