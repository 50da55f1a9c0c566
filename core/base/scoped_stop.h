// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <utility>

namespace ponderscope {

/// While this object lives, a request on \p stop cancels the work of the thread that created the object.
/// Engine computations and waits for another machine then throw Cancelled.
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
