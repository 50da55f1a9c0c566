// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/choices/request.h"
#include "core/ponder/choices/run_plan.h"
#include "core/ponder/method.h"

#include <cstdint>
#include <vector>

namespace ponderscope {

/// A signal that a run records.
struct RecordedSignal {
    SignalInfo info;
    std::vector<std::int64_t> shape; ///< of one token; the last of attention is the longest window, here 1
    bool on_request = false;         ///< has a price of its own
    bool half = false;               ///< fp16 on the device, too, where it is no whole number
    bool sparse = false;             ///< NaN or did_not_run if nothing is put; else 0

    [[nodiscard]] std::int64_t token_bytes() const; ///< in the trace, before it is compressed
};

/// The signals that a run of this level records, in the order of Recorder::signals.
std::vector<RecordedSignal> recorded_signals(const ModelConfig& config, const Method& method,
                                             const RunPlan& plan, RecordLevel level);

/// Candidates kept for each token and step.
inline constexpr std::int64_t recorded_candidates = 10;

/// The pass over the vocabulary that makes an expected embedding reads the step out as well; not where slots
/// are computed over and over.
bool reads_steps_anyway(const Method& method, const RunPlan& plan);
/// Elements of a state after \p layer, or at the end of a step.
std::int64_t state_width(const ModelConfig& config, const Method& method, std::int64_t layer);

} // namespace ponderscope
