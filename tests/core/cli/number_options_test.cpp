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
            expect_number_refusal({verb, option, "abc"}, {option + ": ", " abc", "[usage.value]"});
        }
    }
    for (const char* const value : {"-1", "1x", "nan", "1e400", "1.5", "18446744073709551616"}) {
        for (const char* const option : {"--seed", "--rows", "--block"}) {
            expect_number_refusal({"stats", option, value},
                                  {std::string(option) + ": ", std::string(" ") + value, "[usage.value]"});
        }
    }
    for (const char* const value : {"-1", "nan", "1e400", "inf"}) {
        expect_number_refusal({"policy", "--level", value},
                              {"--level: ", "0.5", "0.9999", std::string(" ") + value, "[usage.value]"});
    }
    expect_number_refusal({"record", "--context", "0"}, {"--context", " 1 ", " 0", "[usage.value]"});
    expect_number_refusal({"record", "--batch", "4097"},
                          {"--batch", " 1 ", " 4096", " 4097", "[usage.value]"});
}

} // namespace
} // namespace ponderscope
