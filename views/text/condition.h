// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/text/quantity.h"

#include <QString>

#include <cstdint>
#include <optional>
#include <vector>

namespace ponderscope {

/// A condition on tokens, as it is typed: "steps = 3 and nll > 4 or rank >= 100". `and` binds tighter than
/// `or`. Quantities: nll, entropy, rank, steps, probability, flops, id, position; comparisons: = != < <= >
/// >=.
class Condition {
public:
    /// Nothing when the text is no condition (it is text to be found then). Names may be in any case.
    static std::optional<Condition> parse(const QString& text);

    /// Of a token of the window, by the row that it shows; id and position are the token's own. A value that
    /// is not there meets no comparison, not even !=.
    [[nodiscard]] bool holds(const TokenColumns& tokens, std::size_t token, Attribution attribution) const;

private:
    enum class Name : std::uint8_t { nll, entropy, rank, steps, probability, flops, id, position };
    enum class Order : std::uint8_t { equal, unequal, less, at_most, more, at_least };
    struct Comparison {
        Name name;
        Order order;
        double value;
    };
    std::vector<std::vector<Comparison>> any_of_all_; ///< or of and
};

/// Tokens of the window that meet it, ascending, at most \p limit.
std::vector<qint64> find_where(const SequenceData& data, const Condition& condition, Attribution attribution,
                               std::size_t limit = 100'000);

} // namespace ponderscope
