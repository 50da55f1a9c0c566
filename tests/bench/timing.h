// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <stdlib.h>

namespace ponderscope::bench {

inline double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

template <typename Work>
double seconds_of(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Programs that wanted a processor in the last minute, which says what a figure is worth; -1: not known.
inline double load() {
    double average = 0;
    return ::getloadavg(&average, 1) == 1 ? average : -1;
}

/// "--name value" pairs over what is preset. Nothing, and what there is to choose on standard error, for any
/// other argument.
inline std::optional<std::map<std::string, std::string>>
options_of(int argc, char** argv, std::map<std::string, std::string> options) {
    for (int i = 1; i < argc; i += 2) {
        const auto found = options.find(argv[i]);
        if (found == options.end() || i + 1 == argc) {
            std::fprintf(stderr, "usage: %s", argv[0]);
            for (const auto& [name, value] : options) {
                std::fprintf(stderr, " [%s %s]", name.c_str(), value.c_str());
            }
            std::fprintf(stderr, "\n");
            return std::nullopt;
        }
        found->second = argv[i + 1];
    }
    return options;
}

} // namespace ponderscope::bench
