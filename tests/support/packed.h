// SPDX-License-Identifier: GPL-3.0-or-later
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

} // namespace ponderscope::testing
