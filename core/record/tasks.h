// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/sequence_source.h"
#include "core/trace/shard.h"
#include "core/trace/windows.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <stop_token>
#include <vector>

namespace ponderscope {

/// Tokens [first, end) of a sequence that become one sequence of the trace: all of it where one process
/// records the run, else what of it lies in one batch.
struct PlannedPiece {
    std::int64_t number = 0; ///< in the trace, from 0
    std::int64_t first = 0;
    std::int64_t end = 0;
};

/// A window of one of the sequences.
struct Task {
    std::shared_ptr<const SequenceInput> sequence;
    std::int64_t number = 0; ///< of the sequence in the whole run, from 0
    WindowSpan span;
    PlannedPiece piece;
};

/// The windows that one process of a world computes, as many as are asked for and not yet let go. All
/// processes read all sequences, and put their windows into the batches of a process that is alone; each
/// batch then goes to the process with the fewest tokens so far. So nothing has to be said between them, and
/// every number is what one process computes: results depend, in their last bits, on what shares a batch.
class Tasks {
public:
    struct Share {
        ShardInfo place;
        std::int64_t finished =
            0; ///< pieces that are in the trace already: batches of nothing else are left out
    };
    Tasks(SequenceSource& source, std::int64_t context, std::int64_t stride, std::int64_t vocab_size,
          Share share, std::stop_token stop);

    /// Sees to it that the first \p count tasks are known; how many are: fewer, where there are no more.
    std::size_t reach(std::size_t count);
    [[nodiscard]] const Task& at(std::size_t task) const { return waiting_[task - first_]; }
    void let_go(std::size_t until);
    /// Every task there is was asked for and let go.
    [[nodiscard]] bool done() const { return ended_ && waiting_.empty(); }
    [[nodiscard]] std::int64_t sequences() const { return sequences_; } ///< of the whole run, read so far

private:
    void read_batch();
    void deal();

    SequenceSource& source_;
    std::int64_t context_, stride_, vocab_size_;
    Share share_;
    std::stop_token stop_;
    std::deque<Task> forming_; ///< windows of batches to come
    std::deque<Task> waiting_;
    std::size_t first_ = 0;
    std::int64_t sequences_ = 0;
    std::int64_t pieces_ = 0;
    std::vector<std::int64_t> dealt_; ///< tokens that each process got
    bool ended_ = false;
};

/// InputError: fewer than two tokens, an id that the model has not.
void check_sequence(const SequenceInput& sequence, std::int64_t vocab_size);

/// What the trace keeps of a piece: its text, labels and place.
struct CutOut {
    std::string text;
    std::uint64_t text_begin = 0;
    std::vector<TextLabel> labels;
    PieceInfo place;
};
CutOut cut_out(const SequenceInput& sequence, std::int64_t number, const PlannedPiece& piece);

} // namespace ponderscope
