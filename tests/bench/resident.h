// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <fstream>
#include <string>

namespace ponderscope::testing {

/// Memory of this process in MB as /proc says it: "VmRSS:" is resident now, "VmHWM:" was at most. 0
/// elsewhere.
inline double resident_megabytes(const std::string& what = "VmRSS:") {
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word) {
        if (word == what) {
            double kilobytes = 0;
            status >> kilobytes;
            return kilobytes / 1000;
        }
    }
    return 0;
}

} // namespace ponderscope::testing
