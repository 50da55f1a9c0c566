// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/engine/engine.h"
#include "core/record/session.h"

#include <cstdint>
#include <stop_token>
#include <vector>

namespace ponderscope {

/// What a precision below float32 costs and gains on some text. NLL in nats a prediction.
struct PrecisionCost {
    std::int64_t predictions = 0; ///< that were compared
    double mean_nll = 0;
    double mean_nll_float32 = 0;
    double mean_change = 0;    ///< of one prediction, either way
    double largest_change = 0; ///< likewise
    double seconds = 0;        ///< of computing, at the level that is recorded
    double seconds_float32 = 0;
};

/// Scores the first \p tokens tokens of the sequences with both engines, a batch of windows after the other
/// in turn, so that what else the machine does meets both alike; the first batch is computed once before that
/// and not counted. InputError: nothing is predicted in so few tokens. Cancelled.
PrecisionCost precision_cost(const Engine& engine, const Engine& float32,
                             const std::vector<SequenceInput>& sequences, std::int64_t tokens,
                             const RecordOptions& options, const std::stop_token& stop = {});

} // namespace ponderscope
