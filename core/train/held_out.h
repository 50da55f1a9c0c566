// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/ponder/engine/model.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <stop_token>
#include <vector>

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

/// Last steps of the tokens of some forwards, and their gates.
class StepCensus {
public:
    /// For a model on which \p method halts or not. Where a method lets every slot run in training
    /// (Method::halts_in_training), a token counts with the steps that its gates allow. \p threshold: of
    /// PonderConfig.
    StepCensus(const Method& method, double threshold);

    /// \p forward: of \p tokens tokens, run as ForwardForm::training. Without gradients.
    void add(const ForwardResult& forward, std::int64_t tokens, bool training);

    [[nodiscard]] bool halts() const { return halts_; }
    /// Mean gate or router value after step k over the tokens that reached it, k = 0 … K-1; NaN if none
    /// did. Empty: the method has none.
    [[nodiscard]] std::vector<double> gates() const;
    /// Share of the tokens whose last step is k, k = 0 … K; their sum is 1.
    [[nodiscard]] std::vector<double> shares() const;
    [[nodiscard]] double mean_steps() const; ///< of the tokens' last steps; NaN before any was added

private:
    bool halts_ = false;
    bool all_run_in_training_ = false;
    double threshold_ = 0;
    bool gated_ = false;
    std::int64_t tokens_ = 0;
    std::vector<std::int64_t> reached_; ///< [K + 1], tokens whose slot (t, k) ran
    std::vector<double> gate_sum_;      ///< [K + 1], over those
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
