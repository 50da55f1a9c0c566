// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>
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

/// The median of one of several things to do, and what the machine was asked for meanwhile.
struct Timed {
    double seconds = 0;
    std::string machine; ///< "load 3.9"
};

/// Each of several things to do, in rounds that are interleaved, so that what else the machine does meets all
/// of them alike. A round before them warms up.
template <typename Actions>
std::vector<Timed> interleaved(const Actions& actions, int rounds) {
    std::vector<std::vector<double>> seconds(actions.size());
    for (int round = -1; round < rounds; ++round) {
        for (std::size_t i = 0; i < actions.size(); ++i) {
            const double taken = seconds_of(actions[i]);
            if (round >= 0) {
                seconds[i].push_back(taken);
            }
        }
    }
    char machine[32];
    std::snprintf(machine, sizeof machine, "load %.1f", load());
    std::vector<Timed> timed;
    for (std::vector<double>& each : seconds) {
        timed.push_back({median(std::move(each)), machine});
    }
    return timed;
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

/// main() around a benchmark: lines appear as they are printed, and what is wrong with the input is a
/// sentence and code 2.
inline int run_program(int (*run)(int argc, char** argv), int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}

} // namespace ponderscope::bench
