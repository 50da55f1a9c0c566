// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/cli/run_program.h"

#include "core/base/files.h"
#include "tests/support/test_data.h"

#include <cstdlib>

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

} // namespace ponderscope::testing
