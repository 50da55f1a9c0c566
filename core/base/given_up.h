// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <utility>

namespace ponderscope {

/// While it lives, what its thread computes with an engine, or waits for at another machine, ends with
/// Cancelled as soon as \p stop is requested: whoever ends a thread waits neither for a long text nor for a
/// network.
class GivenUpBy {
public:
    explicit GivenUpBy(std::stop_token stop) : before_(std::exchange(current(), std::move(stop))) {}
    ~GivenUpBy() { current() = std::move(before_); }
    GivenUpBy(const GivenUpBy&) = delete;
    GivenUpBy& operator=(const GivenUpBy&) = delete;

    /// Of the calling thread; one that is never requested where there is none.
    static std::stop_token& current() {
        static thread_local std::stop_token stop;
        return stop;
    }

private:
    std::stop_token before_;
};

} // namespace ponderscope
