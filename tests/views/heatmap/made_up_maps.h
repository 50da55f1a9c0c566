// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/support/packed.h"
#include "views/common/trace_data.h"

#include <limits>
#include <memory>
#include <vector>

namespace ponderscope::testing {

inline constexpr float none = std::numeric_limits<float>::quiet_NaN();

/// Tokens that ran these steps and are alike otherwise.
inline SequenceData sequence_of(std::vector<std::int32_t> steps) {
    SequenceData data;
    data.tokens = equal_tokens(steps.size());
    data.tokens.steps = std::move(steps);
    return data;
}

inline std::shared_ptr<const SequenceData> shared_sequence(std::vector<std::int32_t> steps) {
    return std::make_shared<const SequenceData>(sequence_of(std::move(steps)));
}

/// Values [token, step].
inline SignalChunk steps_of(const std::vector<float>& values, std::int64_t steps) {
    return packed(DType::f32, {static_cast<std::int64_t>(values.size()) / steps, steps}, values);
}

} // namespace ponderscope::testing
