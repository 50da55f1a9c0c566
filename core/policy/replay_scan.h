// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"
#include "core/stats/row_layout.h"
#include "core/stats/scan.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// A policy at one setting over the scored tokens of a run: a value a row of a RowLayout each.
struct ScoredSetting {
    std::string policy; ///< "entropy:theta=1.37"; how it came about, where no policy says it
    std::vector<double> steps;
    std::vector<double> nll;   ///< nats
    std::vector<double> flops; ///< empty: not known
};

/// What policies would have done on a run, as sums of its clusters.
struct ClusterReplays {
    RowLayout rows; ///< clusters with tokens that have a target in every replay
    std::vector<ScoredSetting> settings;
    std::vector<ReplayResult> totals; ///< without the values of tokens
    bool halted = false;              ///< as ReplayTable's
};

/// A run that policies are replayed on as often as they need, read each time by several threads: of its
/// tokens nothing is kept but sums of each cluster, so that it may be of any length. Results do not depend on
/// the number of threads.
class ReplayScan {
public:
    /// \p columns, \p also: as ReplayReader's. The trace outlives it.
    ReplayScan(const TraceReader& trace, const RunInfo& run, const std::vector<PolicySignal>& columns,
               const BootstrapOptions& options, const std::vector<PolicySignal>& also = {});

    /// Whether sums of clusters are all that intervals by these options need, over each of so many equal
    /// parts of the clusters.
    [[nodiscard]] bool suffices(std::int64_t parts = 1) const;
    [[nodiscard]] const ReplayReader& reader() const { return reader_; }
    /// Lets policies know the mean steps of the model's own rule, by replaying it where the run has one.
    void find_learned_rate();

    /// Fills in a result of the tokens of a table.
    using Replay = std::function<void(const ReplayTable&, ReplayResult&)>;
    struct Setting {
        std::string policy;
        Replay replay;
    };
    /// InputError: no token with a target, and what replays throw; Cancelled.
    [[nodiscard]] ClusterReplays replays(std::span<const Setting> settings) const;
    /// Shows all tokens once: tables of the run's parts, in any order and by several threads. What is
    /// returned is called in the order of sequences, one at a time. \p first: sequence of the table's first
    /// token.
    void each(const std::function<Commit(const ReplayTable& table, std::size_t first)>& visit) const;

private:
    ReplayReader reader_;
    SequenceScan scan_;
    BootstrapOptions options_;
    std::int64_t clusters_ = 0;
};

} // namespace ponderscope
