// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <utility>

namespace ponderscope {

/// While this object lives, a request on \p stop ends work on its thread: engine computations and waits for
/// another machine throw Cancelled. This stops a thread during a long text or a slow network read.
class ScopedStop {
public:
    explicit ScopedStop(std::stop_token stop) : before_(std::exchange(current(), std::move(stop))) {}
    ~ScopedStop() { current() = std::move(before_); }
    ScopedStop(const ScopedStop&) = delete;
    ScopedStop& operator=(const ScopedStop&) = delete;

    /// The stop token of the calling thread; without one, a token that never stops.
    static std::stop_token& current() {
        static thread_local std::stop_token stop;
        return stop;
    }

private:
    std::stop_token before_;
};

} // namespace ponderscope
