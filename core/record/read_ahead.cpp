// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/read_ahead.h"

namespace ponderscope {

ReadAhead::ReadAhead(SequenceSource& source, std::size_t max_tokens)
    : source_(source), max_tokens_(max_tokens), amount_(source.amount()), digest_(source.text_digest()) {}

ReadAhead::~ReadAhead() {
    {
        const std::lock_guard guard(mutex_);
        leaving_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) {
        source_.stop(); // it may be waiting for a pipe that says nothing
        thread_.join();
    }
}

void ReadAhead::work() {
    for (;;) {
        std::shared_ptr<const SequenceInput> sequence;
        std::exception_ptr failure;
        try {
            sequence = source_.next();
        } catch (...) {
            failure = std::current_exception();
        }
        std::unique_lock guard(mutex_);
        if (!sequence) {
            failure_ = failure;
            ended_ = true;
            changed_.notify_all();
            return;
        }
        const std::size_t tokens = sequence->ids.size();
        changed_.wait(
            guard, [&] { return leaving_ || waiting_.empty() || waiting_tokens_ + tokens <= max_tokens_; });
        if (leaving_) {
            return;
        }
        waiting_tokens_ += tokens;
        waiting_.push_back(std::move(sequence));
        changed_.notify_all();
    }
}

std::shared_ptr<const SequenceInput> ReadAhead::next() {
    std::unique_lock guard(mutex_);
    if (!thread_.joinable()) {
        thread_ = std::thread([this] { work(); });
    }
    changed_.wait(guard, [&] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) {
        if (failure_) {
            std::rethrow_exception(failure_);
        }
        return nullptr;
    }
    std::shared_ptr<const SequenceInput> sequence = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_tokens_ -= sequence->ids.size();
    changed_.notify_all();
    return sequence;
}

std::string ReadAhead::text_digest() const {
    const std::lock_guard guard(mutex_);
    return ended_ ? source_.text_digest() : digest_;
}

std::string ReadAhead::left_out() const {
    const std::lock_guard guard(mutex_);
    return ended_ || !thread_.joinable() ? source_.left_out() : std::string();
}

} // namespace ponderscope
