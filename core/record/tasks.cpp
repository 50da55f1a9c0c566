// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/tasks.h"

#include "core/base/error.h"

#include <algorithm>
#include <iterator>

namespace ponderscope {
namespace {

/// After this many full batches a group may end with an unfilled batch, which costs at most 1/9 of the time.
constexpr std::size_t enough_batches = 8;

} // namespace

void check_sequence(const SequenceInput& sequence, std::int64_t vocab_size) {
    if (sequence.ids.size() < 2) {
        throw InputError(ErrorId::text_empty, sequence.title + ": expected at least two tokens, found " +
                                                  std::to_string(sequence.ids.size()) +
                                                  "; give a longer text.");
    }
    for (const std::int32_t id : sequence.ids) {
        if (id < 0 || id >= vocab_size) {
            throw InputError(ErrorId::text_ids, sequence.title +
                                                    ": expected token ids below the model's vocab_size " +
                                                    std::to_string(vocab_size) + ", found " +
                                                    std::to_string(id) + "; use the model's own tokenizer.");
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

std::size_t Tasks::reach(std::size_t begin, std::size_t size) {
    while (first_ + waiting_.size() <= begin && !ended_) {
        std::vector<Task> group = read_group();
        if (stop_.stop_requested() && !ended_) {
            break; // after a stop the group may be incomplete
        }
        deal(std::move(group));
    }
    if (first_ + waiting_.size() <= begin) {
        return begin;
    }
    return std::min(begin + size, *std::upper_bound(ends_.begin(), ends_.end(), begin));
}

void Tasks::release_until(std::size_t until) {
    for (; first_ < until; ++first_) {
        waiting_.pop_front();
    }
    while (!ends_.empty() && ends_.front() <= first_) {
        ends_.pop_front();
    }
}

std::vector<Task> Tasks::read_group() {
    const auto batch = static_cast<std::size_t>(share_.place.batch);
    std::vector<Task> group;
    while (group.empty() || (group.size() % batch != 0 && group.size() < enough_batches * batch)) {
        std::shared_ptr<const SequenceInput> sequence = source_.next();
        if (!sequence) {
            ended_ = !stop_.stop_requested();
            break;
        }
        check_sequence(*sequence, vocab_size_);
        const auto tokens = static_cast<std::int64_t>(sequence->ids.size());
        for (const WindowSpan& span : plan_windows(tokens, context_, stride_)) {
            group.push_back({sequence, sequences_, 0, span});
            if (share_.start_token && span.begin > 0) {
                Task& task = group.back();
                const std::span<const std::int32_t> seen = task.window_ids();
                task.ids.assign(seen.begin(), seen.end());
                task.ids.front() = *share_.start_token;
            }
        }
        ++sequences_;
    }
    return group;
}

void Tasks::deal(std::vector<Task> group) {
    std::int64_t tokens = 0;
    for (const Task& task : group) {
        tokens += task.span.end - task.span.begin;
    }
    const auto least = std::min_element(dealt_.begin(), dealt_.end());
    *least += tokens;
    if (least - dealt_.begin() != share_.place.rank || group.empty()) {
        return;
    }
    const std::int64_t first = group.front().number;
    for (Task& task : group) {
        task.place = places_ + (task.number - first);
    }
    places_ = group.back().place + 1;
    std::size_t begin = 0;
    for (std::size_t end = 0; begin < group.size(); begin = end) {
        end = std::min(begin + static_cast<std::size_t>(share_.place.batch), group.size());
        if (group[end - 1].place >= share_.finished) {
            break;
        }
    }
    if (begin < group.size()) {
        waiting_.insert(waiting_.end(),
                        std::make_move_iterator(group.begin() + static_cast<std::ptrdiff_t>(begin)),
                        std::make_move_iterator(group.end()));
        ends_.push_back(first_ + waiting_.size());
    }
}

} // namespace ponderscope
