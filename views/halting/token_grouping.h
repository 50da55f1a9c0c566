// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// Tokens put into groups by what they are, where they stand, or how hard they are. A value.
struct TokenGrouping {
    std::vector<QString> names;
    std::vector<std::int32_t> group; ///< of each token; -1: in none
};

/// Kinds of text (core/stats token_class): word, word part, number, punctuation, …; the largest first.
TokenGrouping group_by_class(std::span<const std::int32_t> ids,
                             const std::function<std::string(std::int32_t)>& bytes);
/// The \p most frequent token types; the others are in none.
TokenGrouping group_by_type(std::span<const std::int32_t> ids,
                            const std::function<std::string(std::int32_t)>& bytes, std::size_t most = 20);
/// By place in the sequence, each group twice as long as the one before: 0–15, 16–31, 32–63, …
TokenGrouping group_by_position(std::span<const std::int64_t> positions);
/// Fifths of the values, from the lowest; NaN is in none. Equal values stay together.
TokenGrouping group_by_difficulty(std::span<const double> values);

} // namespace ponderscope
