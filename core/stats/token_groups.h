// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/scan.h"
#include "core/stats/significance.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// The class of a token by its bytes: "word" (begins with a space, or with a letter at the beginning of a
/// text), "word part", "number", "punctuation", "white space", "piece of a character", "empty". Each token
/// gets the first class that fits, tested in this order: empty, white space, piece of a character, number,
/// punctuation, word.
std::string token_class(std::string_view bytes);

/// The tokens of one type (token id, see GroupingOptions::types) or of one class.
struct TokenGroup {
    std::int32_t id = -1;   ///< token id; -1 for a class
    std::string name;       ///< bytes of the token, or the class
    std::int64_t count = 0; ///< tokens with a target
    double mean_steps = 0;
    double mean_nll = 0;        ///< nats
    double dropped = 0;         ///< share of tokens that stop before the last step K
    double steps_elsewhere = 0; ///< mean steps of all other tokens; NaN if there are none
    /// Two-sided p of "the group's mean steps equal the others'". The test flips the signs of sums, one for
    /// each cluster (or block): Σ (x - mean x)(steps - mean steps), where x is 1 for the group's tokens and 0
    /// for others. A group in few clusters never has a small p, even with many tokens. NaN for fewer than two
    /// tokens, or without other tokens.
    double p = 0;
    double q = 0; ///< q-value over all groups of the table (false_discovery_q)
};

struct TokenGroups {
    std::vector<TokenGroup> types;   ///< most frequent first; equal counts by id
    std::vector<TokenGroup> classes; ///< most frequent first; equal counts by name
    std::int64_t scored = 0;
    Resampling resampling;  ///< the units of the tests
    std::int64_t units = 0; ///< independent clusters or blocks of the tests, at most most_test_units
    bool joined = false;    ///< the tests join neighbouring clusters or blocks
};

/// The largest number of units in the tests of token types. If there are more, neighbouring clusters or
/// blocks are joined, because the time grows with types and units.
inline constexpr std::int64_t most_test_units = 1024;

struct GroupingOptions {
    std::int64_t least = 2;               ///< types with fewer tokens are left out and not tested
    BootstrapOptions bootstrap;           ///< `unit` and `block` choose the independent units
    LabelPlace types = LabelPlace::token; ///< the type of the token, or of the predicted token
};

/// Tokens with their group (-1: none), steps, NLL and unit. All spans have the same length.
struct GroupedTokens {
    std::span<const std::int32_t> group;
    std::span<const double> steps, nll;
    std::span<const std::size_t> units;
};
/// Compares groups 0..groups-1 over the tokens that have a group. Leaves name and q unset. \p least: groups
/// with fewer tokens get no p.
std::vector<TokenGroup> tested_groups(const GroupedTokens& tokens, std::size_t groups, std::int64_t max_steps,
                                      std::int64_t least);

/// The groups of a run's tokens. \p max_steps: the run's last step. \p bytes_by_id: the run's vocabulary.
TokenGroups group_tokens(const ScoredTokens& tokens, std::int64_t max_steps,
                         const std::vector<std::string>& bytes_by_id, const GroupingOptions& options = {});
/// Bytes of a run's tokens, by id.
std::vector<std::string> vocabulary_by_id(const TraceReader& trace, const RunInfo& run);

/// Groups of tokens by type, position or difficulty.
struct TokenGrouping {
    struct Group {
        std::int32_t id = -1;     ///< for a token type
        std::string name;         ///< bytes of a type, or name of a class
        double low = 0, high = 0; ///< range of positions (both included) or of nats
    };
    std::vector<Group> groups;
    std::vector<std::int32_t> group; ///< for each token; -1: no group
};

/// Classes (token_class), the largest first.
TokenGrouping group_by_class(std::span<const std::int32_t> ids,
                             const std::function<std::string(std::int32_t)>& bytes);
/// The \p most frequent token types. Other tokens are in no group.
TokenGrouping group_by_type(std::span<const std::int32_t> ids,
                            const std::function<std::string(std::int32_t)>& bytes, std::size_t most = 20);
/// By position in the sequence: 0–15, 16–31, 32–63, 64–127, … (powers of two).
TokenGrouping group_by_position(std::span<const std::int64_t> positions);
/// Fifths of the values, the lowest first. Equal values stay together, so there may be fewer than five
/// groups. NaN and infinity are in no group.
TokenGrouping group_by_fifths(std::span<const double> values);

} // namespace ponderscope
