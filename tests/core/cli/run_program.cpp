// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/cli/run_program.h"

#include "core/base/files.h"
#include "tests/support/test_data.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <stdexcept>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

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

ProgramResult run_ponderscope_until(const std::vector<std::string>& arguments, const std::string& marker,
                                    const std::function<void(int process)>& then, int watched) {
    const TemporaryFolder folder;
    std::vector<std::string> words{PONDERSCOPE_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    const std::string out = folder / "out";
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw std::runtime_error("no pipe");
    }
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0600),
               watched == STDERR_FILENO ? STDOUT_FILENO : STDERR_FILENO);
        ::dup2(ends[1], watched);
        ::execv(argv.front(), argv.data());
        ::_exit(127);
    }
    ::close(ends[1]);
    ProgramResult result;
    std::string& said = watched == STDERR_FILENO ? result.err : result.out;
    bool called = false;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
        said.append(buffer, static_cast<std::size_t>(got));
        if (!called && said.find(marker) != std::string::npos) {
            called = true;
            then(child);
        }
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    (watched == STDERR_FILENO ? result.out : result.err) = read_file(out);
    return result;
}

std::string succeed(const std::vector<std::string>& arguments) {
    return ends_with(0, arguments).out;
}

nlohmann::json json_of(const Words& arguments) {
    return nlohmann::json::parse(succeed(arguments + std::vector<std::string>{"--json"}));
}

std::string refused(const std::vector<std::string>& arguments) {
    return ends_with(2, arguments).err;
}

void expect_refused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
    const ProgramResult result = run_ponderscope(arguments);
    EXPECT_EQ(result.code, 2) << ::testing::PrintToString(arguments) << result.out << result.err;
    for (const std::string& part : parts) {
        EXPECT_NE(result.err.find(part), std::string::npos) << "expected '" << part << "' in: " << result.err;
    }
}

} // namespace ponderscope::testing
