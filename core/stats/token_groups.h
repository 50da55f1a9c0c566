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
#include <utility>
#include <vector>

namespace ponderscope {

/// The class of a token by its bytes: "word" (begins with a space, or with a letter at the beginning of a
/// text), "word part", "number", "punctuation", "white space", "piece of a character", "empty". One for each
/// token; the first that fits in that order of questions: empty, white space, piece of a character, number,
/// punctuation, word.
std::string token_class(std::string_view bytes);

/// The tokens of one type or class, grouped by the token that ran the steps, unless the options say
/// otherwise.
struct TokenGroup {
    std::int32_t id = -1;   ///< token id; -1 for a class
    std::string name;       ///< bytes of the token, or the class
    std::int64_t count = 0; ///< tokens with a target
    double mean_steps = 0;
    double mean_nll = 0;        ///< nats
    double dropped = 0;         ///< share that stops before the last step K
    double steps_elsewhere = 0; ///< mean steps of all other tokens; NaN without any
    /// Two-sided, that its mean steps are those of the others: sign flips of the clusters' (or blocks') score
    /// contributions Σ (x - mean x)(steps - mean steps), x = 1 for the group's tokens, 0 for others. A group
    /// in few clusters has no small p, even with many tokens. NaN for fewer than two tokens, and without
    /// other tokens.
    double p = 0;
    double q = 0; ///< the same under false-discovery control over all groups of the table
};

struct TokenGroups {
    std::vector<TokenGroup> types;   ///< by count, most first; equal counts by id
    std::vector<TokenGroup> classes; ///< likewise, by name
    std::int64_t scored = 0;
    Resampling resampling; ///< the units of the tests
    std::int64_t units =
        0; ///< clusters or blocks that the tests take as independent: no more than most_test_units
    bool joined = false; ///< there were more, and neighbours were taken together
};

/// The most units in the tests of token types, which take time for each type and unit. Beyond this number,
/// neighbouring clusters or blocks are joined.
inline constexpr std::int64_t most_test_units = 1024;

struct GroupingOptions {
    std::int64_t least = 2; ///< types with fewer tokens are left out, and are no tests
    DiscoveryControl control = DiscoveryControl::benjamini_hochberg;
    BootstrapOptions bootstrap;           ///< which units are taken as independent: `unit`, `block`
    LabelPlace types = LabelPlace::token; ///< of a run: types of the token itself or of the predicted token
};

/// The groups of a run's tokens. \p max_steps: its last step. \p bytes_by_id: of its vocabulary.
TokenGroups group_tokens(const ScoredTokens& tokens, std::int64_t max_steps,
                         const std::vector<std::string>& bytes_by_id, const GroupingOptions& options = {});
/// Bytes of a run's tokens, by id.
std::vector<std::string> vocabulary_by_id(const TraceReader& trace, const RunInfo& run);

/// Two-sided p that the mean of \p values is the same in a group and outside it, by sign flips of the units'
/// score contributions. \p centred: of all tokens, less their mean, summed a unit; \p in_group: the same over
/// the tokens of the group, for the units that have some; \p share: of the tokens that are in the group.
double group_difference_p(std::span<const double> centred,
                          std::span<const std::pair<std::size_t, double>> in_group, double share);

/// Groups of tokens by type, position or difficulty.
struct TokenGrouping {
    struct Group {
        std::int32_t id = -1;     ///< of a token type
        std::string name;         ///< bytes of a type, or a class
        double low = 0, high = 0; ///< of positions (both included) or nats
    };
    std::vector<Group> groups;
    std::vector<std::int32_t> group; ///< of each token; -1: in none
};

/// Classes (token_class), the largest first.
TokenGrouping group_by_class(std::span<const std::int32_t> ids,
                             const std::function<std::string(std::int32_t)>& bytes);
/// The \p most frequent token types. Other tokens are in no group.
TokenGrouping group_by_type(std::span<const std::int32_t> ids,
                            const std::function<std::string(std::int32_t)>& bytes, std::size_t most = 20);
/// By position in the sequence; each group is twice as long as the group before: 0–15, 16–31, 32–63, …
TokenGrouping group_by_position(std::span<const std::int64_t> positions);
/// Fifths of the values, from the lowest. NaN is in none. Equal values stay together.
TokenGrouping group_by_difficulty(std::span<const double> values);

} // namespace ponderscope
