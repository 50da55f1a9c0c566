// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_comparison.h"
#include "core/stats/token_grouping.h"

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Which run predicts which tokens better: the compared tokens in groups, with the mean difference of each.
struct Winners {
    struct Row {
        TokenGrouping::Group group;
        std::int64_t tokens = 0;
        Estimate difference; ///< mean NLL, A - B, nats; negative: A wins. Student's interval over the units
        double b_lower = 0;  ///< share of the tokens whose NLL is lower in B
        double q = 0; ///< that the difference is 0, by sign flips of the units, under false-discovery control
    };
    std::string a, b; ///< labels of the runs
    std::string by;
    std::vector<Row> rows;
};

/// \p by: "class", "type" (the 20 most frequent), "position" or "difficulty" (fifths of the mean of both
/// runs' NLL: by the NLL of one run, the other run would win among the hard tokens by chance alone).
/// \p second: index of run B within the comparison; A is the first. Types are those of the predicted token.
/// \p request: what the comparison was made of. \p only: its places that count, ascending; empty: all.
/// InputError: no second run.
Winners winners_of(const RunComparison& comparison, const ComparisonRequest& request, const std::string& by,
                   std::size_t second = 1, const std::stop_token& stop = {},
                   const std::vector<RunComparison::Place>& only = {});

} // namespace ponderscope
