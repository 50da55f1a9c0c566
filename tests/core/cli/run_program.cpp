// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/cli/run_program.h"

#include "core/base/files.h"
#include "tests/support/test_data.h"

#include <cstdlib>
#include <stdexcept>

#include <sys/wait.h>

namespace ponderscope::testing {
namespace {

std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) {
        if (c == '\'') {
            result += "'\\''";
        } else {
            result += c;
        }
    }
    return result + "'";
}

ProgramResult ends_with(int code, const std::vector<std::string>& arguments) {
    ProgramResult result = run_ponderscope(arguments);
    if (result.code != code) {
        std::string line = "ponderscope";
        for (const std::string& argument : arguments) {
            line += " " + quoted(argument);
        }
        throw std::runtime_error(line + " ended with " + std::to_string(result.code) + ", not " +
                                 std::to_string(code) + ": " + result.err);
    }
    return result;
}

} // namespace

ProgramResult run_ponderscope(const std::vector<std::string>& arguments, const std::string& limits) {
    const TemporaryFolder folder;
    std::string command = limits.empty() ? "" : "ulimit " + limits + "; ";
    command += quoted(PONDERSCOPE_PROGRAM);
    for (const std::string& argument : arguments) {
        command += " " + quoted(argument);
    }
    command += " >" + quoted(folder / "out") + " 2>" + quoted(folder / "err") + " </dev/null";
    const int status = std::system(command.c_str());
    ProgramResult result;
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.out = read_file(folder / "out");
    result.err = read_file(folder / "err");
    return result;
}

std::string succeed(const std::vector<std::string>& arguments) {
    return ends_with(0, arguments).out;
}

std::string refused(const std::vector<std::string>& arguments) {
    return ends_with(2, arguments).err;
}

} // namespace ponderscope::testing
