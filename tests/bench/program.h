// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

namespace ponderscope::bench {

/// The numbers of "1,8,32".
inline std::vector<std::int64_t> numbers_of(const std::string& list) {
    std::vector<std::int64_t> numbers;
    std::istringstream text(list);
    for (std::string one; std::getline(text, one, ',');) {
        numbers.push_back(std::stoll(one));
    }
    return numbers;
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
