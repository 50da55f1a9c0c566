// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// The examples of resources/docs/trace-schema.md, run as a user would run them.
namespace ponderscope::testing {

std::string schema_page();
/// Fenced blocks of one language.
std::vector<std::string> page_examples(const std::string& language);

bool python_has(const std::string& module);

struct PythonExample {
    std::string program;
    int code = 0;
    std::string output; ///< what it printed, errors included
};
/// Every Python example whose packages are there, over \p trace; what is skipped is said.
std::vector<PythonExample> run_python_examples(const std::filesystem::path& trace);

} // namespace ponderscope::testing
