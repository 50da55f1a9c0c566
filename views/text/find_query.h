// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/text/quantity.h"

#include <QString>
#include <QStringList>

#include <cstdint>
#include <optional>
#include <vector>

namespace ponderscope {

/// The result of a query in a sequence: text, "#id", a /pattern/, "token 100" or a condition.
struct Found {
    std::vector<qint64> tokens; ///< ascending
    bool alone = false;         ///< true: the query tests single tokens, so it can filter
    QString problem;            ///< error in the query; else empty
    QString hint;               ///< why a text that looks like a condition was not found; else empty
};
Found find_in(const SequenceData& data, const QString& query, Attribution attribution);

/// A condition on tokens, as typed: "steps = 3 and nll > 4 or rank >= 100". `and` binds tighter than
/// `or`. Quantities: nll, entropy, rank, steps, probability, flops, id, position, and the annotations of the
/// tokens by name; comparisons: = != < <= > >=. Of a category = and != alone, with a class, in quotes unless
/// it is a word or a number: part_of_speech = "proper noun".
class Condition {
public:
    /// std::nullopt if the text is no condition (it is then text to be found). Names may be in any case. \p
    /// annotations: the annotations of the tested tokens.
    static std::optional<Condition> parse(const QString& text,
                                          const std::vector<TokenAnnotation>& annotations = {});

    /// Names of the quantities that a condition can use, without annotations.
    static QStringList names();

    /// The error in a text that is meant as a condition (it begins with a name of a quantity or annotation
    /// and a comparison), a sentence; empty if the text is valid or is meant as something else. \p
    /// isCondition: an unknown name at its beginning is an error as well, and no sign of another meaning.
    static QString problem(const QString& text, const std::vector<TokenAnnotation>& annotations = {},
                           bool isCondition = false);

    /// Whether a token of the window meets the condition, by the row that it shows; id, position and
    /// annotations are the token's own. A missing value meets no comparison, not even !=.
    [[nodiscard]] bool holds(const SequenceData& data, std::size_t token, Attribution attribution) const;

private:
    enum class Of : std::uint8_t { quantity, id, position, annotation };
    enum class Order : std::uint8_t { equal, unequal, less, at_most, more, at_least };
    struct Comparison {
        Of of;
        Order order;
        double value;               ///< of a category the number of the class; -1: no token is of that class
        std::size_t annotation = 0; ///< into those of the tokens
        Quantity quantity = Quantity::nll;
    };
    static std::optional<Comparison> compared(const QString& name, Order order, const QString& value,
                                              const std::vector<TokenAnnotation>& annotations);
    std::vector<std::vector<Comparison>> any_of_all_; ///< or of and
};

/// Tokens of the window that meet the condition, ascending, at most \p limit.
std::vector<qint64> find_where(const SequenceData& data, const Condition& condition, Attribution attribution,
                               std::size_t limit = 100'000);

} // namespace ponderscope
