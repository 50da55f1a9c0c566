// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/common/trace_data.h"

#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace ponderscope::testing {

inline constexpr float none = std::numeric_limits<float>::quiet_NaN();

/// Tokens with these steps; all else of them is one.
inline SequenceData sequence_of(std::vector<std::int32_t> steps) {
    SequenceData data;
    const std::size_t n = steps.size();
    data.tokens.id.assign(n, 1);
    data.tokens.begin.assign(n, 0);
    data.tokens.end.assign(n, 0);
    data.tokens.nll.assign(n, 1);
    data.tokens.entropy.assign(n, 1);
    data.tokens.max_probability.assign(n, 1);
    data.tokens.rank.assign(n, 1);
    data.tokens.steps = std::move(steps);
    data.tokens.flops.assign(n, 1);
    return data;
}

inline std::shared_ptr<const SequenceData> shared_sequence(std::vector<std::int32_t> steps) {
    return std::make_shared<const SequenceData>(sequence_of(std::move(steps)));
}

/// [token, step] in rows.
inline SignalChunk chunk_of(const std::vector<float>& values, std::int64_t steps) {
    SignalChunk chunk{0, DType::f32, {static_cast<std::int64_t>(values.size()) / steps, steps}, {}};
    const auto bytes = std::as_bytes(std::span(values));
    chunk.data.assign(bytes.begin(), bytes.end());
    return chunk;
}

} // namespace ponderscope::testing
