// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
#include "core/base/progress.h"
#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// A run and its trace.
struct SeedRun {
    std::shared_ptr<const TraceReader> trace;
    RunInfo run;
};

/// NLL of the tokens that all runs of two methods scored.
struct SeedSample {
    std::vector<std::vector<double>> a, b; ///< [seeds][tokens], nats
    TokenLayout layout;
    Notices notices;
};

/// InputError: a side without runs, runs with different texts or tokenizers, or runs that score different
/// tokens.
SeedSample read_seeds(const std::vector<SeedRun>& a, const std::vector<SeedRun>& b,
                      const ProgressSink& progress = {}, const std::stop_token& stop = {});

/// Two methods, each trained with several seeds. Differences are A - B.
struct SeedComparison {
    std::int64_t tokens = 0;
    std::vector<double> means_a, means_b; ///< mean NLL of each run, nats per token
    Estimate mean_a, mean_b, difference;  ///< means over runs
    double deviation_a = 0;               ///< standard deviation of the runs' means; NaN for one run
    double deviation_b = 0;
    /// The share of the variance of `difference` that comes from the choice of runs. The rest comes from the
    /// choice of clusters (or blocks). NaN if a side has one run.
    double share_of_seeds = 0;
    /// Student's two-sided test. The standard error of the difference includes both kinds of variance, and so
    /// do the degrees of freedom (Satterthwaite 1946). With one run on each side, only clusters contribute.
    double p = 0;
    double degrees = 0;
    bool paired = false;
    Resampling resampling;
    Notices notices;
};

/// The multi-bootstrap (Sellam et al. 2022, arXiv 2106.16163). A replicate draws clusters (or blocks) of the
/// text and, independently, runs of each side, with replacement. Every drawn run is scored on the drawn text.
/// \p paired: run i of A and run i of B share data order or initialisation, so they are drawn together. Both
/// sides then need the same number of runs. With n runs the variance of the replicates is too small by the
/// factor (n - 1) / n. Intervals are widened to correct this, as for few clusters (SmallSample).
///
/// In replicate r, draw j takes run number floor(n · S(S(seed, 2^32 + r), j) / 2^64). S is defined at
/// for_each_replicate. The first draws choose runs of A, the next draws runs of B.
SeedComparison compare_seeds(const SeedSample& sample, bool paired, const BootstrapOptions& options = {});

} // namespace ponderscope
