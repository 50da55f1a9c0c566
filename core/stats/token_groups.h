// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/stats/bootstrap.h"
#include "core/stats/significance.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ponderscope {

/// What sort of token the bytes are: "word" (begins with a space, or a letter after nothing), "word part",
/// "number", "punctuation", "white space", "piece of a character", "empty". One for each token; the first
/// that fits in that order of questions: empty, white space, piece of a character, number, punctuation, word.
std::string token_class(std::string_view bytes);

/// The tokens of one type or class, by the token at which the steps were spent.
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
    /// of tokens that stand in few clusters has no small p, however many they are. NaN for fewer than two
    /// tokens and where there are no others.
    double p = 0;
    double q = 0; ///< the same under false-discovery control over all groups of the table
};

struct TokenGroups {
    std::vector<TokenGroup> types;   ///< by count, most first; equal counts by id
    std::vector<TokenGroup> classes; ///< likewise, by name
    std::int64_t scored = 0;
    Resampling resampling; ///< the units of the tests
};

struct GroupingOptions {
    std::int64_t least = 2; ///< types with fewer tokens are left out, and are no tests
    DiscoveryControl control = DiscoveryControl::benjamini_hochberg;
    BootstrapOptions bootstrap; ///< which units are taken as independent: `unit`, `block`
};

/// One pass over \p steps and \p nll (NaN: no target) of tokens \p ids. All of one length. \p layout: of the
/// tokens with a target. InputError otherwise.
TokenGroups group_tokens(std::span<const std::int32_t> ids, std::span<const std::int32_t> steps,
                         std::span<const float> nll, const TokenLayout& layout, std::int64_t max_steps,
                         const std::vector<std::string>& bytes_by_id, const GroupingOptions& options = {});

/// The same for a recorded run.
TokenGroups group_tokens(const TraceReader& trace, const RunInfo& run, const GroupingOptions& options = {},
                         const ProgressSink& progress = {}, const std::stop_token& stop = {});

/// Two-sided p that the mean of \p values is the same in a group and outside it, by sign flips of the units'
/// score contributions. \p centred: of all tokens, less their mean, summed a unit; \p in_group: the same over
/// the tokens of the group, for the units that have some; \p share: of the tokens that are in the group.
double group_difference_p(std::span<const double> centred,
                          std::span<const std::pair<std::size_t, double>> in_group, double share);

} // namespace ponderscope
