// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <utility>

namespace ponderscope {

/// While it lives, what its thread computes with an engine, or waits for at another machine, ends with
/// Throws Cancelled as soon as \p stop is requested, so that ending a thread does not wait for a long text or
/// a network.
class GivenUpBy {
public:
    explicit GivenUpBy(std::stop_token stop) : before_(std::exchange(current(), std::move(stop))) {}
    ~GivenUpBy() { current() = std::move(before_); }
    GivenUpBy(const GivenUpBy&) = delete;
    GivenUpBy& operator=(const GivenUpBy&) = delete;

    /// The stop token of the calling thread; without one, a token that never stops.
    static std::stop_token& current() {
        static thread_local std::stop_token stop;
        return stop;
    }

private:
    std::stop_token before_;
};

} // namespace ponderscope
