// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/test_data.h"

#include <cstdlib>
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
