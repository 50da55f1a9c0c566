// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/stats/layout.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
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

/// Calls visit(sequence, tokens, i, position) for every token with a target, in order: row i of \p tokens,
/// which go on to one behind the slice, for the target of its last token. Cancelled.
template <typename Visit>
void for_each_scored(const TraceReader& reader, const RunInfo& run, const std::stop_token& stop,
                     const Visit& visit) {
    for_each_slice(reader, run, stop,
                   [&](const SequenceInfo& sequence, std::int64_t begin, std::int64_t end) {
                       const TokenColumns tokens = reader.tokens(run.id, sequence.number, begin, end + 1);
                       const auto rows = std::min(tokens.size(), static_cast<std::size_t>(end - begin));
                       for (std::size_t i = 0; i < rows; ++i) {
                           if (!std::isnan(tokens.nll[i])) {
                               visit(sequence, tokens, i, begin + static_cast<std::int64_t>(i));
                           }
                       }
                   });
}

/// The layout of tokens that come one by one, in the order of sequences and positions.
class LayoutBuilder {
public:
    void add(const SequenceInfo& sequence, std::int64_t position) {
        if (sequence_ != sequence.number) {
            cluster_ = clusters_.of(sequence);
            last_ = -2;
        }
        sequence_ = sequence.number;
        layout.add(cluster_, last_ + 1 == position);
        last_ = position;
    }
    TokenLayout layout;

private:
    ClusterNumbers clusters_;
    std::int64_t sequence_ = -1, cluster_ = 0, last_ = -2;
};

} // namespace ponderscope
