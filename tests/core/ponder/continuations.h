// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/core/ponder/every_model.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope::testing {

/// What a prompt's continuation was, with everything that was recorded of each new token.
struct Continuation {
    std::vector<std::int32_t> ids;
    std::vector<WindowResult> readouts;
};

inline std::vector<Continuation> continued(const Engine& engine,
                                           const std::vector<std::vector<std::int32_t>>& prompts,
                                           const GenerateOptions& options,
                                           RecordLevel level = RecordLevel::basic) {
    std::vector<Continuation> result(prompts.size());
    const auto ids = engine.generate(prompts, options, level,
                                     [&](std::int64_t prompt, std::int32_t, const WindowResult& readout) {
                                         result[static_cast<std::size_t>(prompt)].readouts.push_back(readout);
                                         return true;
                                     });
    for (std::size_t i = 0; i < ids.size(); ++i) {
        result[i].ids = ids[i];
    }
    return result;
}

/// Two ways to the same continuation, in fp32 on the CPU \p tolerance apart. Products are rounded by their
/// shape: of two words that are equally likely but for that, either may come first. In half precision, and on
/// another device, a draw at the border between any two words may fall to either, where both ways have the
/// same distribution.
inline void expect_equal(const Continuation& one, const Continuation& other, double tolerance,
                         const std::string& what) {
    const bool may_part = half_precision() || test_device() != "cpu";
    const auto nll = [](const Continuation& of, std::size_t n) { return of.readouts.at(n).tokens.nll.at(0); };
    ASSERT_FALSE(one.ids.empty()) << what;
    bool parted = false;
    // By signal, of all tokens.
    std::map<std::string, std::pair<std::vector<float>, std::vector<float>>> numbers;
    const auto append = [](std::vector<float>& all, const std::vector<float>& more) {
        all.insert(all.end(), more.begin(), more.end());
    };
    for (std::size_t n = 0; n < other.readouts.size(); ++n) {
        ASSERT_LT(n, one.readouts.size()) << what;
        const WindowResult& ours = one.readouts[n];
        const WindowResult& theirs = other.readouts[n];
        EXPECT_EQ(ours.tokens.steps, theirs.tokens.steps) << what << ", new token " << n;
        EXPECT_EQ(ours.tokens.flops, theirs.tokens.flops) << what << ", new token " << n;
        append(numbers["entropy of the output"].first, ours.tokens.entropy);
        append(numbers["entropy of the output"].second, theirs.tokens.entropy);
        for (const auto& [name, chunk] : theirs.signals) {
            if (chunk.dtype == DType::f32) {
                append(numbers[name].first, floats_of(ours, name));
                append(numbers[name].second, floats_of(theirs, name));
            }
        }
        if (one.ids.at(n) != other.ids.at(n)) {
            ASSERT_TRUE(may_part || std::abs(nll(one, n) - nll(other, n)) <= 2e-6F)
                << what << ", new token " << n << ": " << one.ids.at(n) << " and " << other.ids.at(n);
            parted = true;
            break; // from here on they are continuations of two texts
        }
    }
    ASSERT_TRUE(may_part || parted || one.ids.size() == other.ids.size()) << what;
    for (const auto& [name, both] : numbers) {
        if (!magnifies_rounding(name) || !half_precision()) {
            expect_near(both.first, both.second, magnifies_rounding(name) ? 10 * tolerance : tolerance,
                        what + ", " + name);
        }
    }
}

} // namespace ponderscope::testing
