// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
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
    double p =
        0; ///< Welch's t-test that its mean steps are those of the others; NaN for fewer than two tokens
    double q = 0; ///< the same under false-discovery control over all groups of the table
};

struct TokenGroups {
    std::vector<TokenGroup> types;   ///< by count, most first; equal counts by id
    std::vector<TokenGroup> classes; ///< likewise, by name
    std::int64_t scored = 0;
};

/// One pass over \p steps and \p nll (NaN: no target) of tokens \p ids. All of one length (InputError). Types
/// with fewer than \p least tokens are left out, and are no tests. Tokens of one type stand mostly far apart,
/// so the test takes them as independent; a class's do not, so its p is a hint.
TokenGroups group_tokens(std::span<const std::int32_t> ids, std::span<const std::int32_t> steps,
                         std::span<const float> nll, std::int64_t max_steps,
                         const std::vector<std::string>& bytes_by_id, std::int64_t least = 2);

/// The same for a recorded run.
TokenGroups group_tokens(const TraceReader& trace, const RunInfo& run, std::int64_t least = 2,
                         const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
