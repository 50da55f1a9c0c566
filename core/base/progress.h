// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace ponderscope {

/// The progress of a long task. `total` is 0 if it is unknown. The receiver computes rates and the remaining
/// time.
struct Progress {
    std::string activity; ///< "recording", "reading weights"
    std::int64_t done = 0;
    std::int64_t total = 0;
    std::string unit; ///< "tokens", "bytes", "steps"
};

/// Called on the working thread, at most a few times a second. Must not throw. May be empty.
using ProgressSink = std::function<void(const Progress&)>;

inline void report_progress(const ProgressSink& sink, const Progress& progress) {
    if (sink) {
        sink(progress);
    }
}

} // namespace ponderscope
