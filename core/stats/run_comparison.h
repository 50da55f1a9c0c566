// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
#include "core/base/progress.h"
#include "core/stats/bootstrap.h"
#include "core/stats/data_table.h"
#include "core/stats/paired.h"
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

/// The runs to compare, the tokens to use, and options. A single run gets only its interval.
struct ComparisonRequest {
    struct Run {
        std::filesystem::path trace;
        std::string run; ///< name or number; empty: the only run
    };
    std::vector<Run> runs;                             ///< the first run is the reference
    std::optional<std::int64_t> sequence;              ///< absent: all sequences
    std::optional<std::array<std::int64_t, 2>> tokens; ///< targets [first, last) of each compared sequence
    std::int64_t block = 0; ///< tokens per block of the bootstrap; 0: chosen from the data
    std::int64_t replicates = 10'000;
};

/// NLL of several runs over the tokens that all of them scored: means in nats, with 95 % intervals by a
/// paired bootstrap over clusters or blocks (methods.md section 11). Bounds are NaN if they are unknown.
struct RunComparison {
    struct Run {
        RunInfo info;
        std::string label; ///< "NAME" or "NAME (partial)"; the trace's name precedes repeated names
        Estimate nll;      ///< nats a token
        Estimate perplexity;
        Estimate bits_per_byte; ///< NaN without a text
        Estimate difference;  ///< mean NLL of the first run minus mean NLL of this run; NaN for the first run
        Estimate correlation; ///< Pearson's r between the NLLs of this run and the first; NaN for the first
        double mean_steps = 0; ///< over the compared tokens
        double mean_flops = 0;
        std::vector<float> token_nll; ///< NLL of each compared token
    };
    using Place = PairedSample::Place;
    std::vector<Run> runs;
    std::vector<Place> places;   ///< ascending; one for each compared token
    TokenLayout layout;          ///< layout of the compared places
    Resampling resampling;       ///< the same for all runs
    std::int64_t replicates = 0; ///< bootstrap replicates; 0: Student's intervals over the same units
    Notices notices;             ///< partial runs, few blocks, tokens that one run lacks
};

/// Restricts a comparison to \p places, given in ascending order. The intervals keep the clusters or blocks
/// of \p comparison. Units have different numbers of selected tokens, so means are ratios (unit_mean in
/// core/stats/significance.h). Steps, FLOPs, bits per byte and correlations become NaN, because \p comparison
/// lacks their data. Unknown places are ignored.
RunComparison only_places(const RunComparison& comparison, const std::vector<RunComparison::Place>& places);

/// A table with a row for each run, for CSV, the Compare panel and figures.
DataTable table_of(const RunComparison& comparison);

/// Reads and compares the runs with its own readers, so any thread may call it. InputError: an unknown run,
/// runs of different texts, no common token. \p stop throws Cancelled.
RunComparison compare_runs(const ComparisonRequest& request, const ProgressSink& progress = {},
                           const std::stop_token& stop = {});

/// Groups of the compared tokens, with the mean difference of the runs in each group.
struct Winners {
    struct Row {
        TokenGrouping::Group group;
        std::int64_t tokens = 0;
        Estimate difference; ///< mean NLL, A - B, nats, with Student's interval over the units
        double b_lower = 0;  ///< share of tokens with a lower NLL in B
        double p = 0;        ///< p of "the difference is 0": sign flips of the units; NaN without an interval
        double q = 0;        ///< q-value over all rows (false_discovery_q)
    };
    std::string a, b; ///< labels of the runs
    std::string by;
    std::vector<Row> rows;
};

/// \p by: "class", "type" (the 20 most frequent types), "position" or "difficulty" (fifths of the mean of
/// both runs' NLL). If one run's NLL alone formed the groups, the other run would look better on hard tokens
/// by chance. A and B are the first two runs of the comparison. A type is the predicted token's id. \p
/// request: the request of the comparison. InputError: there is no second run.
Winners winners_of(const RunComparison& comparison, const ComparisonRequest& request, const std::string& by,
                   const std::stop_token& stop = {});

} // namespace ponderscope
