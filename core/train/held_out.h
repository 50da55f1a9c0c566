// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/ponder/engine/model.h"
#include "core/train/step_census.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <stop_token>

namespace ponderscope {

/// At most five messages a second, and always the last one.
class ThrottledProgress {
public:
    explicit ThrottledProgress(const ProgressSink& sink) : sink_(sink) {}
    void operator()(const Progress& progress);

private:
    using Clock = std::chrono::steady_clock;
    const ProgressSink& sink_;
    Clock::time_point last_ = Clock::now() - std::chrono::seconds(1);
};

/// Measurements of a model on text that it was not trained on.
struct HeldOut {
    double nll = std::numeric_limits<double>::quiet_NaN(); ///< nats a token
    std::int64_t tokens = 0;
    StepCensus census;
};

struct HeldOutForm {
    ForwardForm forward;
    std::int64_t context = 0, batch = 0;
    std::int64_t most_windows = 0; ///< 0: all
    bool half = false;             ///< products in bf16
    double threshold = 0;          ///< of the method, for the census
};

/// Windows spread evenly over \p ids. Cancelled.
HeldOut measure_held_out(const Model& model, std::span<const std::int32_t> ids, const HeldOutForm& form,
                         at::Device device, const ProgressSink& progress, const std::stop_token& stop);

} // namespace ponderscope
