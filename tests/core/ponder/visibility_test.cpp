// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/visibility.h"

#include "core/base/splitmix.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ponderscope {
namespace {

/// Tokens of several sequences, each with the last step that it runs.
struct Tokens {
    std::vector<std::int64_t> lengths;
    std::vector<std::int64_t> last_step; ///< K_t
    [[nodiscard]] std::vector<std::int64_t> sequence() const {
        std::vector<std::int64_t> numbers;
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            numbers.insert(numbers.end(), static_cast<std::size_t>(lengths[i]), static_cast<std::int64_t>(i));
        }
        return numbers;
    }
};

Tokens random_tokens(std::uint64_t seed, std::int64_t max_steps) {
    Tokens tokens;
    std::uint64_t n = 0;
    const std::uint64_t sequences = 1 + bounded(splitmix64(seed, n++), 4);
    for (std::uint64_t i = 0; i < sequences; ++i) {
        tokens.lengths.push_back(static_cast<std::int64_t>(1 + bounded(splitmix64(seed, n++), 7)));
        for (std::int64_t t = 0; t < tokens.lengths.back(); ++t) {
            tokens.last_step.push_back(static_cast<std::int64_t>(
                bounded(splitmix64(seed, n++), static_cast<std::uint64_t>(max_steps) + 1)));
        }
    }
    return tokens;
}

using Slot = std::pair<std::int64_t, std::int64_t>; // token, step

/// methods.md section 2, word for word.
std::set<Slot> defined(VisibilityRule rule, const Tokens& tokens, Slot query) {
    const std::vector<std::int64_t> sequence = tokens.sequence();
    std::set<Slot> seen;
    const auto [t, k] = query;
    for (std::int64_t other = 0; other < static_cast<std::int64_t>(sequence.size()); ++other) {
        const auto o = static_cast<std::size_t>(other);
        if (sequence[o] != sequence[static_cast<std::size_t>(t)]) {
            continue;
        }
        for (std::int64_t step = 0; step <= tokens.last_step[o]; ++step) {
            bool sees = false;
            switch (rule) {
            case VisibilityRule::per_step:
                sees = other <= t && step == std::min(k, tokens.last_step[o]);
                break;
            case VisibilityRule::interleaved:
                sees = other < t || (other == t && step <= k);
                break;
            case VisibilityRule::two_dimensional:
                sees = other <= t && step <= k;
                break;
            }
            if (sees) {
                seen.insert({other, step});
            }
        }
    }
    return seen;
}

std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> read_ranges(const at::Tensor& ranges) {
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> result;
    const auto view = ranges.accessor<std::int32_t, 3>();
    for (std::int64_t i = 0; i < ranges.size(0); ++i) {
        result.emplace_back();
        for (std::int64_t j = 0; j < ranges.size(1); ++j) {
            result.back().emplace_back(view[i][j][0], view[i][j][1]);
        }
    }
    return result;
}

at::Tensor integers(const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::kLong);
}

/// Runs steps as the engine does and checks after each what its queries see. \p chunks: tokens of each
/// sequence are given in that many runs, as a generation does.
void check_steps(VisibilityRule rule, const Tokens& tokens, std::int64_t max_steps, bool segment_each_step) {
    const std::vector<std::int64_t> sequence = tokens.sequence();
    const auto total = static_cast<std::int64_t>(sequence.size());
    std::vector<std::int64_t> first_row;
    std::vector<std::int64_t> position;
    for (std::int64_t t = 0; t < total; ++t) {
        const bool begins =
            t == 0 || sequence[static_cast<std::size_t>(t)] != sequence[static_cast<std::size_t>(t - 1)];
        first_row.push_back(begins ? t : first_row.back());
        position.push_back(t - first_row.back());
    }
    StepRowPlanner planner(rule, {total, integers(first_row), integers(sequence), integers(position)},
                           segment_each_step);
    std::map<std::int64_t, Slot> owner; // row -> the slot whose K/V lie there
    for (std::int64_t k = 0; k <= max_steps; ++k) {
        if (segment_each_step && k > 0 && rule == VisibilityRule::per_step) {
            for (std::int64_t row = 0; row < total; ++row) {
                owner[planner.segment(k) + row] = owner[planner.segment(k - 1) + row];
            }
        }
        std::vector<std::int64_t> active;
        for (std::int64_t t = 0; t < total; ++t) {
            if (tokens.last_step[static_cast<std::size_t>(t)] >= k) {
                active.push_back(t);
            }
        }
        if (active.empty()) {
            break;
        }
        const bool all = static_cast<std::int64_t>(active.size()) == total;
        const StepRows rows = planner.next(all ? at::Tensor() : integers(active));
        ASSERT_EQ(rows.rows.size(0), static_cast<std::int64_t>(active.size()));
        for (std::size_t i = 0; i < active.size(); ++i) {
            owner[rows.rows[static_cast<std::int64_t>(i)].item<std::int64_t>()] = {active[i], k};
        }
        const auto ranges = read_ranges(rows.ranges);
        for (std::size_t i = 0; i < active.size(); ++i) {
            std::set<Slot> seen;
            std::int64_t count = 0;
            for (const auto& [begin, end] : ranges[i]) {
                for (std::int64_t row = begin; row < end; ++row) {
                    ASSERT_TRUE(owner.contains(row)) << "row " << row << " was never written";
                    seen.insert(owner[row]);
                    ++count;
                }
            }
            EXPECT_EQ(static_cast<std::int64_t>(seen.size()), count) << "ranges overlap";
            EXPECT_EQ(seen, defined(rule, tokens, {active[i], k})) << "token " << active[i] << " step " << k;
        }
    }
}

TEST(Visibility, StepsSeeWhatIsDefined) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        check_steps(VisibilityRule::per_step, random_tokens(seed, 3), 3, false);
        check_steps(VisibilityRule::per_step, random_tokens(seed + 100, 3), 3, true);
        check_steps(VisibilityRule::two_dimensional, random_tokens(seed + 200, 4), 4, true);
    }
}

TEST(Visibility, InterleavedSeesWhatIsDefined) {
    for (std::uint64_t seed = 300; seed < 340; ++seed) {
        const Tokens tokens = random_tokens(seed, 3);
        std::vector<std::int64_t> slots;
        for (const std::int64_t last : tokens.last_step) {
            slots.push_back(last + 1);
        }
        const InterleavedRows rows = interleaved_rows(integers(slots), integers(tokens.sequence()));
        const auto ranges = read_ranges(rows.ranges);
        std::vector<Slot> owner;
        for (std::int64_t i = 0; i < rows.tokens.size(0); ++i) {
            owner.emplace_back(rows.tokens[i].item<std::int64_t>(), rows.steps[i].item<std::int64_t>());
        }
        for (std::size_t i = 0; i < owner.size(); ++i) {
            std::set<Slot> seen;
            for (const auto& [begin, end] : ranges[i]) {
                for (std::int64_t row = begin; row < end; ++row) {
                    seen.insert(owner.at(static_cast<std::size_t>(row)));
                }
            }
            EXPECT_EQ(seen, defined(VisibilityRule::interleaved, tokens, owner[i]));
        }
    }
}

} // namespace
} // namespace ponderscope
