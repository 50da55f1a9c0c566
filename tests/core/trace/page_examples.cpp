// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/trace/page_examples.h"

#include "core/base/files.h"
#include "tests/support/test_data.h"

#include <array>
#include <cstdio>
#include <sstream>
#include <sys/wait.h>
#include <utility>

namespace ponderscope::testing {
namespace {

std::pair<int, std::string> python(const std::string& program) {
    const TemporaryFolder folder;
    const std::filesystem::path script = folder / "example.py";
    write_file_atomically(script, program);
    FILE* pipe = ::popen(("python3 " + script.string() + " 2>&1").c_str(), "r");
    if (pipe == nullptr) {
        return {-1, "no python3"};
    }
    std::string output;
    std::array<char, 4096> buffer{};
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
        output.append(buffer.data(), n);
    }
    const int status = ::pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

} // namespace

std::string schema_page() {
    return read_file(source_tree() / "resources/docs/trace-schema.md");
}

std::vector<std::string> page_examples(const std::string& language) {
    std::vector<std::string> blocks;
    std::istringstream lines(schema_page());
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
        if (inside && line == "```") {
            inside = false;
        } else if (inside) {
            blocks.back() += line + "\n";
        } else if (line == "```" + language) {
            inside = true;
            blocks.emplace_back();
        }
    }
    return blocks;
}

bool python_has(const std::string& module) {
    return python("import " + module + "\n").first == 0;
}

std::vector<PythonExample> run_python_examples(const std::filesystem::path& trace) {
    std::vector<PythonExample> all;
    for (const std::string& program : page_examples("python")) {
        bool can_run = true;
        for (const char* module : {"numpy", "pandas"}) {
            if (program.find(std::string("import ") + module) != std::string::npos && !python_has(module)) {
                std::printf("skipped an example: %s is not installed\n", module);
                can_run = false;
            }
        }
        if (can_run) {
            auto [code, output] = python("TRACE = \"" + trace.string() + "\"\n" + program);
            all.push_back({program, code, std::move(output)});
        }
    }
    return all;
}

} // namespace ponderscope::testing
