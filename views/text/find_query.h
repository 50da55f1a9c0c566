// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/token_subset.h"
#include "views/text/quantity.h"

#include <QString>
#include <QStringList>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <vector>

namespace ponderscope {

/// The result of a query in a sequence: text, a /pattern/ or a condition.
struct Found {
    std::vector<qint64> tokens; ///< ascending
    bool alone = false; ///< the query tests single tokens (a condition), so all other tokens may be pale
    QString problem;    ///< error in the query; else empty
    QString hint;       ///< why a text that resembles a condition has no hits; else empty
};
Found find_in(const SequenceData& data, const QString& query, Attribution attribution);

/// A condition on tokens, as typed: "steps = 3 and nll > 4 or rank >= 100". `and` binds more tightly than
/// `or`. Quantities: nll, entropy, rank, steps, probability, flops, id, position, and the names of the
/// tokens' annotations. Comparisons: = != < <= > >=. A category allows only = and != with a class. Quotes
/// enclose a class that is neither a word nor a number: part_of_speech = "proper noun".
class Condition {
public:
    /// std::nullopt: the query is plain text, not a condition. Names are case-insensitive. \p annotations:
    /// the annotations of the tested tokens.
    ///
    /// \p problem receives the error in one sentence if the text begins like a condition (a known name and a
    /// comparison) but is not valid. It becomes empty if the text is plain text. \p isCondition: the text is
    /// certainly a condition, so an unknown first name is also an error.
    static std::optional<Condition> parse(const QString& text,
                                          const std::vector<TokenAnnotation>& annotations = {},
                                          QString* problem = nullptr, bool isCondition = false);

    /// Whether a token meets the condition. Values are from the row that the token shows. Id, position and
    /// annotations are the token's own. A missing value meets no comparison, not even !=.
    [[nodiscard]] bool holds(const SequenceData& data, std::size_t token, Attribution attribution) const;

private:
    enum class Of : std::uint8_t { quantity, id, position, annotation };
    using Test = bool (*)(double recorded, double typed);
    struct Comparison {
        Of of;
        Test test;
        double value; ///< a number; for a category, the index of the class; -1: no token has this class
        std::size_t annotation = 0; ///< index in the tokens' annotations
        Quantity quantity = Quantity::nll;
    };
    static std::optional<Comparison> compared(const QString& name, const QString& sign, const QString& value,
                                              const std::vector<TokenAnnotation>& annotations);
    std::vector<std::vector<Comparison>> any_of_all_; ///< disjunction of conjunctions
};

/// Tokens that meet the condition, ascending, at most \p limit.
std::vector<qint64> find_where(const SequenceData& data, const Condition& condition, Attribution attribution,
                               std::size_t limit = 100'000);

/// The hits of a query in all sequences of a run.
struct FoundInRun {
    std::map<qint64, qint64> counts; ///< number of found tokens for each sequence with hits
    std::map<std::int64_t, std::vector<std::int64_t>> rows; ///< TokenSubset::rows
    bool more = false;                                      ///< `rows` has only a part of the hits

    [[nodiscard]] qint64 size() const;
};

/// Reads the run once, sequence by sequence, with its own reader. Call it on a separate thread. \p tell gets
/// the number of searched sequences, at most 100 times. Throws the errors of TraceReader, and Cancelled.
FoundInRun find_in_run(const RunKey& run, const QString& query, Attribution attribution,
                       const std::function<void(qint64 done)>& tell, const std::stop_token& stop);

} // namespace ponderscope
