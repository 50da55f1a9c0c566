// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/sequence_source.h"
#include "core/trace/shard.h"
#include "core/trace/windows.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

namespace ponderscope {

/// A window of a sequence.
struct Task {
    std::shared_ptr<const SequenceInput> sequence;
    std::int64_t number = 0; ///< number of the sequence in the whole run, from 0
    std::int64_t place = 0;  ///< index of the sequence in the trace of this process, from 0
    WindowSpan span;
    std::vector<std::int32_t> ids = {}; ///< the window's ids, if they differ from the sequence's

    /// The token ids of the window.
    [[nodiscard]] std::span<const std::int32_t> window_ids() const {
        return ids.empty() ? sequence->ids_of(span) : std::span<const std::int32_t>(ids);
    }
};

/// The windows of one process of a world. Holds the tasks that reach() read and release_until() has not yet
/// released.
///
/// Sequences form groups. A group takes whole sequences until its windows fill whole batches, or until the
/// unfilled part of its last batch is negligible. No batch has windows of two groups. All processes read all
/// sequences, and each group goes to the process with the fewest tokens so far. So processes need no
/// communication, and each sequence is in one shard. The composition of batches, on which the last bits of
/// results depend, equals that of a single process.
class Tasks {
public:
    struct Share {
        ShardInfo place;
        std::int64_t finished = 0; ///< number of sequences in the trace; a batch with only these is skipped
        /// Replaces the first id of every window except a sequence's first, as context only.
        std::optional<std::int32_t> start_token = std::nullopt;
    };
    Tasks(SequenceSource& source, std::int64_t context, std::int64_t stride, std::int64_t vocab_size,
          Share share, std::stop_token stop);

    /// The end of the batch that begins at task \p begin; see run_in_batches().
    std::size_t reach(std::size_t begin, std::size_t size);
    [[nodiscard]] const Task& at(std::size_t task) const { return waiting_[task - first_]; }
    void release_until(std::size_t until);
    /// Whether all tasks were read and released.
    [[nodiscard]] bool done() const { return ended_ && waiting_.empty(); }
    /// Number of sequences of the whole run that were read so far.
    [[nodiscard]] std::int64_t sequences() const { return sequences_; }

private:
    [[nodiscard]] std::vector<Task> read_group();
    void deal(std::vector<Task> group);

    SequenceSource& source_;
    std::int64_t context_, stride_, vocab_size_;
    Share share_;
    std::stop_token stop_;
    std::deque<Task> waiting_;
    std::deque<std::size_t> ends_; ///< ends of the groups of waiting tasks
    std::size_t first_ = 0;
    std::int64_t sequences_ = 0;
    std::int64_t places_ = 0;
    std::vector<std::int64_t> dealt_; ///< tokens that each process received
    bool ended_ = false;
};

/// InputError: fewer than two tokens, or an id outside of the vocabulary.
void check_sequence(const SequenceInput& sequence, std::int64_t vocab_size);

} // namespace ponderscope
