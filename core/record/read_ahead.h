// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/sequence_source.h"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>

namespace ponderscope {

/// Takes sequences from another source on a thread of its own, a bounded number ahead: reading and tokenising
/// do not hold up what computes. \p source must outlive this, and is this one's from the first next() on;
/// with this it ends.
class ReadAhead final : public SequenceSource {
public:
    /// What waits has at most so many tokens, or is one sequence.
    explicit ReadAhead(SequenceSource& source, std::size_t max_tokens = std::size_t{1} << 20);
    ~ReadAhead() override;
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    std::shared_ptr<const SequenceInput> next() override;
    [[nodiscard]] Amount amount() const override { return amount_; }
    [[nodiscard]] std::string text_digest() const override;
    [[nodiscard]] std::string left_out() const override;

private:
    void work();

    SequenceSource& source_;
    std::size_t max_tokens_;
    Amount amount_;
    std::string digest_; ///< before it began
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<const SequenceInput>> waiting_;
    std::size_t waiting_tokens_ = 0;
    std::exception_ptr failure_;
    bool ended_ = false;
    bool leaving_ = false;
    std::thread thread_; ///< from the first next() on
};

} // namespace ponderscope
