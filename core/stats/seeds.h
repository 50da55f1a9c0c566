// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// A run as it lies in a trace.
struct SeedRun {
    std::shared_ptr<const TraceReader> trace;
    RunInfo run;
};

/// NLL of the tokens that all runs of two methods scored, a vector a run (a seed).
struct SeedSample {
    std::vector<std::vector<double>> a, b; ///< [seeds][tokens], nats
    TokenLayout layout;
    std::vector<std::string> notices;
};

/// InputError: no run on a side, runs of different texts or tokenizers, runs that do not score the same
/// tokens.
SeedSample read_seeds(const std::vector<SeedRun>& a, const std::vector<SeedRun>& b,
                      const ProgressSink& progress = {}, const std::stop_token& stop = {});

/// Two methods, each trained several times (from several seeds). Differences are A - B.
struct SeedComparison {
    std::int64_t tokens = 0;
    std::vector<double> means_a, means_b; ///< mean NLL of each run, nats a token
    Estimate mean_a, mean_b, difference;  ///< of the mean over runs
    double deviation_a = 0;               ///< standard deviation of the runs' means; NaN for one run
    double deviation_b = 0;
    /// How much of the variance of the difference comes from runs, by its parts: of clusters (or blocks), and
    /// of the runs of both sides. NaN if a side has one run.
    double share_of_seeds = 0;
    /// Student's two-sided test with the difference's standard error from both parts, and the degrees of
    /// freedom that the parts leave (Satterthwaite 1946). Of one run a side: over clusters alone.
    double p = 0;
    double degrees = 0;
    bool paired = false;
    Resampling resampling;
    std::vector<std::string> notices;
};

/// The multi-bootstrap (Sellam et al. 2022, arXiv 2106.16163): a replicate draws clusters (or blocks) of the
/// text and, apart from them, runs of each side with replacement; every drawn run is scored on the drawn
/// text. \p paired: run i of A and run i of B have something in common (data order, initialisation) and are
/// drawn together; both sides then need as many. Replicates of few runs vary too little by (n - 1) / n:
/// intervals make up for it as for few clusters, with the degrees of freedom above.
///
/// Draw j of the runs of replicate r: the upper 64 bits of n · S(S(seed, 2^32 + r), j), A's first, then B's.
SeedComparison compare_seeds(const SeedSample& sample, bool paired, const BootstrapOptions& options = {});

} // namespace ponderscope
