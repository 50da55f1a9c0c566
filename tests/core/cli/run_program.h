// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <unistd.h>

namespace ponderscope::testing {

/// The words of a command line; + puts more behind them.
struct Words : std::vector<std::string> {
    using vector::vector;
    friend Words operator+(Words words, const std::vector<std::string>& more) {
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }
};

struct ProgramResult {
    int code = -1; ///< exit code; 128 + signal when it was killed
    std::string out;
    std::string err;
};

/// Runs `ponderscope ARGUMENTS...` and waits for it. \p limits: set with ulimit in a shell around it, e.g.
/// "-f 64".
ProgramResult run_ponderscope(const std::vector<std::string>& arguments, const std::string& limits = "");

/// Runs it until \p marker was written to the descriptor \p watched (or until it ends), calls \p then with
/// its process id, and waits for it.
ProgramResult run_ponderscope_until(const std::vector<std::string>& arguments, const std::string& marker,
                                    const std::function<void(int process)>& then,
                                    int watched = STDERR_FILENO);

/// The same where it must end well: what it prints. Anything else is thrown.
std::string succeed(const std::vector<std::string>& arguments);
/// The same with --json: what it says.
nlohmann::json json_of(const Words& arguments);
/// And where it must refuse its input (exit code 2): the sentence on stderr.
std::string refused(const std::vector<std::string>& arguments);
/// The same, and the sentence has each of \p parts, such as the id "[usage.value]".
void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts);

} // namespace ponderscope::testing
