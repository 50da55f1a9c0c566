// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/test_data.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include <stdlib.h>

namespace ponderscope::testing {

std::filesystem::path source_tree() {
    return PONDERSCOPE_SOURCE_TREE;
}

std::filesystem::path test_data() {
    if (const char* set = std::getenv("PONDERSCOPE_TEST_DATA"); set != nullptr && *set != '\0') {
        return set;
    }
    const std::filesystem::path beside = source_tree().parent_path() / "shared" / "data";
    return std::filesystem::is_directory(beside) ? beside : std::filesystem::path();
}

std::filesystem::path golden_case(const std::string& name) {
    for (const std::filesystem::path& folder : {test_data() / "golden", source_tree() / "tests" / "golden"}) {
        if (std::filesystem::exists(folder / name / "case.json")) {
            return folder / name;
        }
    }
    return {};
}

std::vector<std::filesystem::path> golden_cases() {
    std::set<std::string> names;
    for (const std::filesystem::path& folder : {test_data() / "golden", source_tree() / "tests" / "golden"}) {
        std::error_code none;
        for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
            if (std::filesystem::exists(entry.path() / "case.json")) {
                names.insert(entry.path().filename().string());
            }
        }
    }
    std::vector<std::filesystem::path> cases;
    for (const std::string& name : names) {
        cases.push_back(golden_case(name));
    }
    return cases;
}

namespace {

std::string setting(const char* name, const char* otherwise) {
    const char* const set = std::getenv(name);
    return set != nullptr && *set != '\0' ? set : otherwise;
}

} // namespace

std::string test_device() {
    return setting("PONDERSCOPE_TEST_DEVICE", "cpu");
}

std::string test_accelerator() {
    return test_device().starts_with("cuda") ? test_device() : "hostgpu";
}

std::string test_dtype() {
    return setting("PONDERSCOPE_TEST_DTYPE", "float32");
}

bool half_precision() {
    return test_dtype() != "float32";
}

double within(double tolerance) {
    if (!half_precision()) {
        return test_device() == "cpu" ? tolerance : 10 * tolerance;
    }
    const double rounding = test_dtype() == "float16" ? 0x1p-11 : 0x1p-8;
    return std::max(10 * tolerance, 64 * rounding);
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

TemporaryFolder::TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ponderscope-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw std::runtime_error("no temporary folder in " + std::filesystem::temp_directory_path().string());
    }
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

} // namespace ponderscope::testing
