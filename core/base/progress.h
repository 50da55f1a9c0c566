// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace ponderscope {

/// How far a long task is. `total` is 0 when it is not known. Rates and time left are the receiver's
/// business: it has a clock.
struct Progress {
    std::string activity; ///< "recording", "reading weights"
    std::int64_t done = 0;
    std::int64_t total = 0;
    std::string unit; ///< "tokens", "bytes", "steps"
};

/// Called on the thread that works, at most a few times a second. Must not throw. May be empty.
using ProgressSink = std::function<void(const Progress&)>;

} // namespace ponderscope
