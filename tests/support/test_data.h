// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>

namespace ponderscope::testing {

/// Reference data made by others: PONDERSCOPE_TEST_DATA, or ../shared/data beside the source tree. Empty when there is none.
std::filesystem::path test_data();

/// The source tree, for sample_models and resources.
std::filesystem::path source_tree();

/// A fresh empty folder, removed when the object dies.
class TemporaryFolder {
public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

} // namespace ponderscope::testing

/// First line of a test that needs reference data; skips, saying so, where it is absent.
#define PONDERSCOPE_REQUIRE_TEST_DATA(relative)                                                                        \
    do {                                                                                                               \
        if (::ponderscope::testing::test_data().empty() ||                                                             \
            !std::filesystem::exists(::ponderscope::testing::test_data() / (relative))) {                              \
            GTEST_SKIP() << "reference data " << (relative)                                                            \
                         << " is absent; set PONDERSCOPE_TEST_DATA to run this test";                                  \
        }                                                                                                              \
    } while (false)
