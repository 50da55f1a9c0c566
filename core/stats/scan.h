// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/stats/layout.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

namespace ponderscope {

/// Calls \p work once for each part 0..parts-1, with up to \p workers threads: the calling thread (worker 0)
/// and helpers. After a failure no new part starts, and started parts finish. Rethrows the exception of the
/// first failed part.
void for_each_part(std::size_t parts, std::size_t workers,
                   const std::function<void(std::size_t part, std::size_t worker)>& work);

/// Options for reading runs with several threads.
struct ReadOptions {
    ProgressSink progress = {};
    std::stop_token stop = {};
    int threads = 0; ///< 0: one for each processor; fewer if files are small or many are open
};

/// Divides the sequences into parts [first, end) and calls \p read for each part, on several threads with
/// separate readers. Each call of \p read returns a function. These functions run one after the other, in the
/// order of the sequences. \p tokens: number of tokens of each sequence. Rethrows the first exception in this
/// order. Throws Cancelled.
using ReadSequences = std::function<std::function<void()>(std::span<const TraceReader* const> readers,
                                                          std::int64_t first, std::int64_t end)>;
void read_sequences(const std::vector<const TraceReader*>& traces, std::span<const std::int64_t> tokens,
                    const ReadSequences& read, const ReadOptions& options);

/// Reads a sample in the order of sequences and positions. \p read(readers, sequence, begin, end, sample)
/// adds tokens [begin, end) of a sequence, one page at a time. Sample::append adds the tokens of the next
/// sequence.
template <class Sample, class Read>
Sample read_sample(const std::vector<const TraceReader*>& traces, std::span<const std::int64_t> tokens,
                   const Read& read, const ReadOptions& options) {
    constexpr std::int64_t page = 1 << 16; // so that a sequence of any length takes the same memory
    Sample all;
    read_sequences(
        traces, tokens,
        [&](std::span<const TraceReader* const> readers, std::int64_t first, std::int64_t last) {
            std::vector<Sample> samples;
            for (std::int64_t sequence = first; sequence < last; ++sequence) {
                const std::int64_t end = tokens[static_cast<std::size_t>(sequence)];
                samples.emplace_back();
                for (std::int64_t begin = 0; begin < end; begin += page) {
                    read(readers, sequence, begin, std::min(begin + page, end), samples.back());
                }
            }
            return [&all, samples = std::move(samples)] {
                for (const Sample& sample : samples) {
                    all.append(sample);
                }
            };
        },
        options);
    all.layout.close_gaps();
    return all;
}

/// Appends values to a vector.
template <class Value>
void append_to(std::vector<Value>& all, const std::vector<Value>& more) {
    all.insert(all.end(), more.begin(), more.end());
}

/// Calls visit(sequence, begin, end) for tokens [begin, end) of every sequence of a run, at most 65,536 at a
/// time, to limit memory. Throws Cancelled.
template <typename Visit>
void for_each_slice(const TraceReader& reader, const RunInfo& run, const std::stop_token& stop,
                    const Visit& visit) {
    constexpr std::int64_t slice_tokens = 1 << 16;
    for (const SequenceInfo& sequence : reader.sequences(run.id)) {
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += slice_tokens) {
            throw_if_stopped(stop);
            visit(sequence, begin, std::min(begin + slice_tokens, sequence.tokens));
        }
    }
}

/// Calls visit(sequence, tokens, i, position) for every token with a target, in order. The token is row i of
/// `tokens`. `tokens` has one row beyond the slice, for the target of the last token. Throws Cancelled.
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

/// Builds the layout of tokens that are added in the order of sequences and positions.
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

/// The token to which labels and types refer: the predicted token, or the token at the position.
enum class LabelPlace : std::uint8_t { prediction, token };

/// Tokens with a target. All vectors have the same length.
struct ScoredTokens {
    std::vector<std::int32_t> id;
    std::vector<double> steps;
    std::vector<double> nll;     ///< nats
    std::vector<double> entropy; ///< nats; NaN if unknown
    std::vector<double> bytes;   ///< bytes of text under each target; 0 without a text
    TokenLayout layout;
    std::int64_t last = -2; ///< position of the last token

    /// Appends the tokens of the next sequence.
    void append(const ScoredTokens& more);
};

/// Reads the tokens of a run with several threads. \p types: the token to which `id` refers. InputError: no
/// scored token.
ScoredTokens read_scored(const TraceReader& trace, const RunInfo& run, const ReadOptions& options,
                         LabelPlace types = LabelPlace::token);

} // namespace ponderscope
