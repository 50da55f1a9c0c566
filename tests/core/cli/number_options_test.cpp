// SPDX-License-Identifier: GPL-3.0-or-later
// Every option that takes a number says which numbers it takes and what it found.
#include "tests/core/cli/run_program.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace ponderscope {
namespace {

using testing::ProgramResult;
using testing::run_ponderscope;

void expect_number_refusal(const std::vector<std::string>& arguments, const std::vector<std::string>& words) {
    const ProgramResult result = run_ponderscope(arguments);
    EXPECT_EQ(result.code, 2) << result.err;
    EXPECT_LT(result.err.size(), 200U) << result.err;
    for (const std::string& word : words) {
        EXPECT_NE(result.err.find(word), std::string::npos) << word << " in: " << result.err;
    }
}

TEST(NumberOptions, SayWhatTheyExpectAndWhatTheyFound) {
    // Every option of a number says what it expects and what it found.
    const std::vector<std::pair<std::string, std::vector<std::string>>> numbers{
        {"record",
         {"--steps", "--limit-tokens", "--context", "--stride", "--batch", "--generate", "--temperature",
          "--top-k", "--top-p", "--seed"}},
        {"generate", {"--tokens", "--temperature", "--top-k", "--top-p", "--seed"}},
        {"policy", {"--batch", "--block", "--replicates", "--level", "--seed"}},
        {"referee", {"--steps", "--settings"}},
        {"stats", {"--least", "--rows"}},
        {"check", {"--most"}},
        {"page", {"--sequence", "--max-tokens"}},
        {"lineage", {"--tokens"}},
    };
    for (const auto& [verb, options] : numbers) {
        for (const std::string& option : options) {
            expect_number_refusal({verb, option, "abc"}, {option + ": expected a ", "found abc."});
        }
    }
    for (const char* const value : {"-1", "1x", "nan", "1e400", "1.5", "18446744073709551616"}) {
        for (const char* const option : {"--seed", "--rows", "--block"}) {
            expect_number_refusal(
                {"stats", option, value},
                {std::string(option) + ": expected a whole number", std::string("found ") + value});
        }
    }
    for (const char* const value : {"-1", "nan", "1e400", "inf"}) {
        expect_number_refusal({"policy", "--level", value}, {"--level: expected a number from 0.5 to 0.9999",
                                                             std::string("found ") + value});
    }
    expect_number_refusal({"record", "--context", "0"}, {"--context", "from 1 on", "found 0."});
    expect_number_refusal({"record", "--batch", "4097"}, {"--batch", "from 1 to 4096", "found 4097."});
}

} // namespace
} // namespace ponderscope
