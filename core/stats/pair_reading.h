// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/paired.h"
#include "core/stats/scan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// Whether the tokens of two runs of one text are partners: of one tokenizer by its digest, or else with the
/// same ids and spans as far as both go. Older traces have a digest of the tokenizer's file, which differs
/// where the tokenizer does not.
bool have_same_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                      const RunInfo& run_b);

/// Two runs of one text, to be read as often as is asked for. The readers outlive it.
class PairReading {
public:
    /// InputError: what pair_runs (paired.h) refuses before it reads tokens.
    PairReading(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                const RunInfo& run_b, const ProgressSink& progress = {}, const std::stop_token& stop = {},
                int threads = 0);

    [[nodiscard]] const SequenceScan& scan() const { return scan_; }
    /// InputError where the tokens differ.
    [[nodiscard]] ReadPage<PairedSample> pages() const;
    [[nodiscard]] std::int64_t most_tokens() const { return most_tokens_; } ///< that both may have scored
    /// Numbers of clusters are below this; some may turn out to have no token.
    [[nodiscard]] std::int64_t most_clusters() const { return most_clusters_; }
    /// Clusters with tokens that both scored, as far as the traces' totals tell.
    [[nodiscard]] std::int64_t likely_clusters() const { return likely_clusters_; }
    /// All of it in memory, as pair_runs gives it.
    [[nodiscard]] PairedSample sample() const;
    /// Sets what is said of \p count tokens that both scored. InputError: none.
    void finish(PairedSample& sample, std::int64_t count) const;

private:
    [[nodiscard]] std::string both() const;

    RunInfo run_a_, run_b_;
    std::string name_a_, name_b_;
    std::vector<SequenceInfo> sequences_a_, sequences_b_;
    std::vector<std::int64_t> cluster_; ///< of each common sequence
    std::int64_t most_tokens_ = 0;
    std::int64_t most_clusters_ = 0;
    std::int64_t likely_clusters_ = 0;
    SequenceScan scan_;
};

} // namespace ponderscope
