// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace ponderscope::bench {

/// Seconds of the fastest of some rounds for each of several things to do. The rounds are interleaved, so
/// that what else the machine does meets all of them alike.
template <typename Actions>
std::vector<double> fastest(const Actions& actions, int rounds) {
    std::vector<double> seconds(actions.size(), std::numeric_limits<double>::infinity());
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < actions.size(); ++i) {
            const auto begin = std::chrono::steady_clock::now();
            actions[i]();
            const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
            seconds[i] = std::min(seconds[i], taken.count());
        }
    }
    return seconds;
}

} // namespace ponderscope::bench
