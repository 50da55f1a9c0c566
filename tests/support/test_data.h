// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ponderscope::testing {

/// Reference data made by others: PONDERSCOPE_TEST_DATA, or ../shared/data beside the source tree. Empty when
/// there is none.
std::filesystem::path test_data();

/// A reference case by its folder's name: of test_data(), with all its intermediates, or as tests/golden
/// ships it. Empty where neither has it.
std::filesystem::path golden_case(const std::string& name);
/// Every reference case that is there, sorted by name.
std::vector<std::filesystem::path> golden_cases();

/// Where tests of the engine run: PONDERSCOPE_TEST_DEVICE (cpu) and PONDERSCOPE_TEST_DTYPE (float32).
std::string test_device();
/// Where tests of what only a device does run: the GPU that PONDERSCOPE_TEST_DEVICE names, else the tests'
/// own device ("hostgpu").
std::string test_accelerator();
std::string test_dtype();
bool half_precision();
/// How far apart two ways to the same number may be there, where fp32 on the CPU allows \p tolerance: on the
/// CPU a row's result does not depend on the other rows, elsewhere products of other shapes add in another
/// order, and half precision keeps of what is on the way no more than its own digits.
double within(double tolerance);

/// The source tree, for sample_models and resources.
std::filesystem::path source_tree();

/// The names of the files and folders in a folder, sorted.
std::vector<std::string> names_in(const std::filesystem::path& folder);

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

/// First line of a test that needs a reference case; skips, saying so, where it is absent.
#define PONDERSCOPE_REQUIRE_GOLDEN(name)                                                                     \
    do {                                                                                                     \
        if (::ponderscope::testing::golden_case(name).empty()) {                                             \
            GTEST_SKIP()                                                                                     \
                << "the reference case " << (name)                                                           \
                << " is not among those in tests/golden; set PONDERSCOPE_TEST_DATA to run this test";        \
        }                                                                                                    \
    } while (false)

/// First line of a test that needs reference data; skips, saying so, where it is absent.
#define PONDERSCOPE_REQUIRE_TEST_DATA(relative)                                                              \
    do {                                                                                                     \
        if (::ponderscope::testing::test_data().empty() ||                                                   \
            !std::filesystem::exists(::ponderscope::testing::test_data() / (relative))) {                    \
            GTEST_SKIP() << "reference data " << (relative)                                                  \
                         << " is absent; set PONDERSCOPE_TEST_DATA to run this test";                        \
        }                                                                                                    \
    } while (false)
