// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of a trace that no model made.
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ponderscope::testing {

/// Tokens that are all alike: id 1, no text, one step, an NLL and an entropy of 1.
inline TokenColumns equal_tokens(std::size_t count) {
    TokenColumns tokens;
    tokens.id.assign(count, 1);
    tokens.begin.assign(count, 0);
    tokens.end.assign(count, 0);
    tokens.nll.assign(count, 1);
    tokens.entropy.assign(count, 1);
    tokens.max_probability.assign(count, 0.5F);
    tokens.rank.assign(count, 1);
    tokens.steps.assign(count, 0);
    tokens.flops.assign(count, 10);
    return tokens;
}

/// As f32 or i32.
inline SignalChunk chunk_of(std::vector<std::int64_t> shape, const std::vector<float>& values,
                            DType dtype = DType::f32) {
    const std::vector<std::int32_t> whole(values.begin(), values.end());
    const auto bytes =
        dtype == DType::i32 ? std::as_bytes(std::span(whole)) : std::as_bytes(std::span(values));
    return {0, dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

} // namespace ponderscope::testing
