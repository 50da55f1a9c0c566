// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cstdint>
#include <stop_token>

namespace ponderscope {

/// Calls visit(sequence, begin, end) for tokens [begin, end) of every sequence of a run, at most 65,536 at a
/// time: what is read of a long text at once stays small. Cancelled.
template <typename Visit>
void for_each_slice(const TraceReader& reader, const RunInfo& run, const std::stop_token& stop,
                    const Visit& visit) {
    constexpr std::int64_t slice_tokens = 1 << 16;
    for (const SequenceInfo& sequence : reader.sequences(run.id)) {
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += slice_tokens) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            visit(sequence, begin, std::min(begin + slice_tokens, sequence.tokens));
        }
    }
}

} // namespace ponderscope
