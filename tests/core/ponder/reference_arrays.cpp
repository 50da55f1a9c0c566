// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/ponder/reference_arrays.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ponderscope::testing {

NamedArray tail(const NamedArray& logits, std::int64_t positions) {
    NamedArray last = logits;
    const std::int64_t batch = logits.shape[0];
    const std::int64_t tokens = logits.shape[1];
    const std::int64_t vocabulary = logits.shape[2];
    positions = std::min(positions, tokens);
    last.shape[1] = positions;
    last.floats.clear();
    for (std::int64_t row = 0; row < batch; ++row) {
        const auto begin = logits.floats.begin() + (row * tokens + tokens - positions) * vocabulary;
        last.floats.insert(last.floats.end(), begin, begin + positions * vocabulary);
    }
    return last;
}

NamedArray heads_first(const NamedArray& ours) {
    NamedArray result = ours;
    const std::int64_t batch = ours.shape[0];
    const std::int64_t tokens = ours.shape[1];
    const std::int64_t heads = ours.shape[2];
    const std::int64_t sources = ours.shape[3];
    std::swap(result.shape[1], result.shape[2]);
    for (std::int64_t i = 0; i < batch * heads * tokens; ++i) {
        const std::int64_t b = i / (heads * tokens);
        const std::int64_t head = i / tokens % heads;
        const std::int64_t from = ((b * tokens + i % tokens) * heads + head) * sources;
        std::copy_n(ours.floats.begin() + from, sources, result.floats.begin() + i * sources);
    }
    return result;
}

NamedArray exit_rows(const NamedArray& signal, std::int64_t first) {
    NamedArray rows;
    rows.dtype = signal.dtype;
    const std::int64_t tokens = signal.shape[1];
    const std::int64_t steps = signal.shape[2];
    rows.shape = {steps - first, tokens};
    for (std::int64_t k = first; k < steps; ++k) {
        for (std::int64_t t = 0; t < tokens; ++t) {
            const auto from = static_cast<std::size_t>(t * steps + k);
            if (signal.dtype == DType::i64) {
                rows.integers.push_back(signal.integers[from]);
            } else {
                rows.floats.push_back(signal.floats[from]);
            }
        }
    }
    return rows;
}

NamedArray without_embeddings(const NamedArray& theirs) {
    NamedArray rows = theirs;
    rows.shape[0] -= 1;
    const auto width = static_cast<std::ptrdiff_t>(theirs.shape[1]);
    if (theirs.dtype == DType::i64) {
        rows.integers.erase(rows.integers.begin(), rows.integers.begin() + width);
    } else {
        rows.floats.erase(rows.floats.begin(), rows.floats.begin() + width);
    }
    return rows;
}

} // namespace ponderscope::testing
