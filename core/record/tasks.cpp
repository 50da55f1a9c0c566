// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/tasks.h"

#include "core/base/error.h"

#include <algorithm>

namespace ponderscope {

void check_sequence(const SequenceInput& sequence, std::int64_t vocab_size) {
    if (sequence.ids.size() < 2) {
        throw InputError(sequence.title + ": expected at least two tokens, found " +
                         std::to_string(sequence.ids.size()) + "; nothing can be predicted from less.");
    }
    for (const std::int32_t id : sequence.ids) {
        if (id < 0 || id >= vocab_size) {
            throw InputError(sequence.title + ": expected token ids below the model's vocab_size " +
                             std::to_string(vocab_size) + ", found " + std::to_string(id) +
                             "; these ids belong to another tokenizer.");
        }
    }
}

Tasks::Tasks(SequenceSource& source, std::int64_t context, std::int64_t stride, std::int64_t vocab_size,
             Share share, std::stop_token stop)
    : source_(source),
      context_(context),
      stride_(stride),
      vocab_size_(vocab_size),
      share_(share),
      stop_(std::move(stop)),
      dealt_(static_cast<std::size_t>(share.place.world), 0) {}

std::size_t Tasks::reach(std::size_t count) {
    while (first_ + waiting_.size() < count && !(ended_ && forming_.empty())) {
        read_batch();
        if (stop_.stop_requested() && !ended_) {
            break; // stopped, a source says no more than that
        }
        deal();
    }
    return first_ + waiting_.size();
}

void Tasks::let_go(std::size_t until) {
    for (; first_ < until; ++first_) {
        waiting_.pop_front();
    }
}

void Tasks::read_batch() {
    while (!ended_ && forming_.size() < static_cast<std::size_t>(share_.place.batch)) {
        std::shared_ptr<const SequenceInput> sequence = source_.next();
        if (!sequence) {
            ended_ = !stop_.stop_requested();
            return;
        }
        check_sequence(*sequence, vocab_size_);
        const auto tokens = static_cast<std::int64_t>(sequence->ids.size());
        for (const WindowSpan& span : plan_windows(tokens, context_, stride_)) {
            forming_.push_back({sequence, sequences_, span, {sequences_, 0, tokens}});
        }
        ++sequences_;
    }
}

void Tasks::deal() {
    const auto end =
        forming_.begin() +
        static_cast<std::ptrdiff_t>(std::min(forming_.size(), static_cast<std::size_t>(share_.place.batch)));
    std::int64_t tokens = 0;
    for (auto task = forming_.begin(); task != end; ++task) {
        tokens += task->span.end - task->span.begin;
    }
    const auto least = std::min_element(dealt_.begin(), dealt_.end());
    *least += tokens;
    if (least - dealt_.begin() == share_.place.rank) {
        if (share_.place.world > 1) {
            for (auto task = forming_.begin(); task != end;) {
                const auto behind =
                    std::find_if(task, end, [&](const Task& other) { return other.number != task->number; });
                const PlannedPiece piece{pieces_++, task->span.report_begin, (behind - 1)->span.report_end};
                for (; task != behind; ++task) {
                    task->piece = piece;
                }
            }
        }
        if (std::any_of(forming_.begin(), end,
                        [&](const Task& task) { return task.piece.number >= share_.finished; })) {
            waiting_.insert(waiting_.end(), forming_.begin(), end);
        }
    }
    forming_.erase(forming_.begin(), end);
}

CutOut cut_out(const SequenceInput& sequence, std::int64_t number, const PlannedPiece& piece) {
    const auto tokens = static_cast<std::int64_t>(sequence.ids.size());
    CutOut cut;
    cut.place = {number, piece.first, tokens, 0, 0, false};
    if (sequence.begin.empty()) {
        return cut;
    }
    // Up to the end of the tokens in front; those without bytes, which a template added, do not move it.
    const auto cut_at = [&](std::int64_t token) -> std::uint64_t {
        for (auto before = static_cast<std::size_t>(token); before-- > 0;) {
            if (sequence.begin[before] < sequence.end[before]) {
                return sequence.end[before];
            }
        }
        return 0;
    };
    cut.text_begin = cut_at(piece.first);
    const std::uint64_t text_end = piece.end == tokens ? sequence.text.size() : cut_at(piece.end);
    cut.text = sequence.text.substr(cut.text_begin, text_end - cut.text_begin);
    cut.place.text_begin = static_cast<std::int64_t>(cut.text_begin);
    if (piece.end < tokens) {
        const auto next = static_cast<std::size_t>(piece.end);
        cut.place.next_bytes = static_cast<std::int64_t>(sequence.end[next] - sequence.begin[next]);
    }
    for (const TextLabel& label : sequence.labels) {
        const std::uint64_t begin = std::max(label.begin, cut.text_begin);
        const std::uint64_t end = std::min(label.end, text_end);
        if (begin < end) {
            cut.place.label_goes_on = cut.place.label_goes_on || label.begin < cut.text_begin;
            cut.labels.push_back({begin - cut.text_begin, end - cut.text_begin, label.name});
        }
    }
    return cut;
}

} // namespace ponderscope
