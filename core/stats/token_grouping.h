// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// Tokens put into groups by what they are, where they stand, or how hard they are.
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
/// By position in the sequence, each group twice as long as the one before: 0–15, 16–31, 32–63, …
TokenGrouping group_by_position(std::span<const std::int64_t> positions);
/// Fifths of the values, from the lowest. NaN is in none. Equal values stay together.
TokenGrouping group_by_difficulty(std::span<const double> values);

} // namespace ponderscope
