// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/stats/bootstrap.h"
#include "core/stats/data_table.h"
#include "core/stats/token_groups.h"
#include "core/trace/records.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// What is compared: two or more runs (or one, for its interval), or a part of their tokens.
struct ComparisonRequest {
    struct Run {
        std::filesystem::path trace;
        std::string run; ///< name or number; empty: the only one
    };
    std::vector<Run> runs;                ///< the others are compared with the first
    std::optional<std::int64_t> sequence; ///< nothing: all of them
    std::optional<std::array<std::int64_t, 2>>
        tokens;             ///< targets [first, last) of that sequence (of each, without one)
    std::int64_t block = 0; ///< tokens in a block of the bootstrap; 0: chosen from the data
    std::int64_t replicates = 10'000;
};

/// NLL of several runs over exactly the same tokens: tokens that all runs scored. methods.md 11: means in
/// nats, 95 % intervals by a paired bootstrap over clusters or blocks. Bounds are NaN if they are unknown.
struct RunComparison {
    struct Run {
        RunInfo info;
        std::string label; ///< the name; "(partial)" after it when the run was cut off; the trace before it
                           ///< when names repeat
        Estimate nll;      ///< nats a token
        Estimate perplexity;
        Estimate bits_per_byte; ///< NaN without a text
        Estimate difference;    ///< the first run's mean NLL minus this run's; NaN for the first
        Estimate correlation;   ///< Pearson's r of the tokens' NLL with the first run's; NaN for the first
        double mean_steps = 0;  ///< over the compared tokens
        double mean_flops = 0;
        std::vector<float> token_nll; ///< of each compared token
    };
    /// The position of a compared token: the prediction that row made, of token row + 1.
    struct Place {
        std::int32_t sequence = 0;
        std::int32_t row = 0;
        friend auto operator<=>(const Place&,
                                const Place&) = default; // NOLINT(modernize-use-nullptr): none is meant
    };
    std::vector<Run> runs;
    std::vector<Place> places;   ///< ascending; as long as every token_nll
    TokenLayout layout;          ///< of the places
    Resampling resampling;       ///< the same for all runs
    std::int64_t replicates = 0; ///< of the bootstrap; 0: intervals are Student's, over the same units
    std::vector<std::string>
        notices; ///< sentences for the user: partial runs, few blocks, tokens that one run lacks
};

/// The same of some of its places alone, ascending: means over them with intervals from the same clusters or
/// blocks, in which they are as many as they happen to be (a ratio; core/stats/significance.h unit_mean).
/// Steps, FLOPs, bits a byte and correlations are NaN: the comparison does not hold what they are made of.
/// Places that it does not have are left out.
RunComparison only_places(const RunComparison& comparison, const std::vector<RunComparison::Place>& places);

/// A row for each run: as CSV, in the compare panel and in figures.
DataTable table_of(const RunComparison& comparison);

/// Reads and compares; opens readers of its own, so any thread will do. InputError: no such run, runs of
/// different texts, no token in common. Cancelled by \p stop.
RunComparison compare_runs(const ComparisonRequest& request, const ProgressSink& progress = {},
                           const std::stop_token& stop = {});

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
/// runs' NLL: by the NLL of one run, the other run would win among hard tokens by chance). A and B are the
/// first two runs of the comparison. Types are those of the predicted token. \p request: what the comparison
/// was made of. InputError: no second run.
Winners winners_of(const RunComparison& comparison, const ComparisonRequest& request, const std::string& by,
                   const std::stop_token& stop = {});

} // namespace ponderscope
