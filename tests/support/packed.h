// SPDX-License-Identifier: GPL-3.0-or-later
// Chunks and rows of a trace that no model made.
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ponderscope::testing {

/// Values of that shape as a chunk that begins at token \p first.
template <class T>
SignalChunk packed(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values,
                   std::int64_t first = 0) {
    const auto bytes = std::as_bytes(std::span(values));
    return {first, dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

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

} // namespace ponderscope::testing
