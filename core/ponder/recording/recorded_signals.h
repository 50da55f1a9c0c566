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
    /// Shape of a token's values. The last axis of attention is 1 here. A Recorder replaces the 1 by the
    /// number of tokens in its longest window.
    std::vector<std::int64_t> shape;
    bool on_request = false; ///< recorded only on request, because it costs extra
    bool half = false;       ///< fp16 in the trace and on the device; integer signals stay integers
    bool sparse = false;     ///< unwritten entries are NaN (integers: did_not_run); false: 0

    [[nodiscard]] std::int64_t token_bytes() const; ///< uncompressed bytes in the trace
};

/// The signals that a run of this level records, in the order of Recorder::signals.
std::vector<RecordedSignal> recorded_signals(const ModelConfig& config, const Method& method,
                                             const RunPlan& plan, RecordLevel level);

/// Number of candidates recorded for each token and step.
inline constexpr std::int64_t recorded_candidates = 10;

/// Whether the expected embedding's pass over the vocabulary also reads out the step. False if slots are
/// computed repeatedly.
bool reads_steps_anyway(const Method& method, const RunPlan& plan);
/// Number of elements of a state after \p layer (StatePlace::end_of_step: at the end of a step).
std::int64_t state_width(const ModelConfig& config, const Method& method, std::int64_t layer);

} // namespace ponderscope
