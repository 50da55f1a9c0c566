// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/compare/run_comparison.h"
#include "views/figure/chart.h"

#include <QString>

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Whose NLL is lower where: the compared tokens in groups, with the mean difference B - A of each.
struct Winners {
    struct Row {
        QString name;
        std::int64_t tokens = 0;
        double difference = 0; ///< mean NLL, A - B, nats; negative: A wins
        double low = 0;        ///< 95 % interval of it, by Student's distribution over the clusters or blocks
        double high = 0;       ///< that have such tokens; NaN for fewer than two
        double b_lower = 0;    ///< share of the tokens
        double q = 0; ///< that the difference is 0, by sign flips of those, under false-discovery control
    };
    QString a;
    QString b;
    std::string by;
    std::vector<Row> rows;
};

/// \p by: "class", "type" (the 20 most frequent), "position" or "difficulty" (fifths of the mean of both
/// runs' NLL: by one run's alone, the other would win among its hard tokens for no reason but chance).
/// \p second: index of run B within the comparison; A is the first. Types are those of the predicted token.
/// \p request: what the comparison was made of. \p only: its places that count, ascending; empty: all.
/// InputError: no second run.
Winners winners_of(const RunComparison& comparison, const ComparisonRequest& request, const std::string& by,
                   std::size_t second = 1, const std::stop_token& stop = {},
                   const std::vector<RunComparison::Place>& only = {});

figure::Chart winners_chart(const Winners& winners);

/// How many tokens have which NLL in the first run and in \p second.
figure::Chart token_density_chart(const RunComparison& comparison, std::size_t second = 1);

} // namespace ponderscope
