// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"
#include "core/stats/row_layout.h"
#include "core/stats/scan.h"

#include <cstdint>
#include <functional>
#include <optional>
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

/// What policies would have done on a run: a value a row each.
struct ScoredReplays {
    RowLayout rows; ///< tokens with a target in every replay, or clusters of them
    std::vector<ScoredSetting> settings;
    std::vector<ReplayResult> totals; ///< without the values of tokens
    bool halted = false;              ///< as ReplayTable's
};

/// A run that policies are replayed on as often as they need: a table in memory, whose rows are tokens; or
/// the trace, read each time by several threads, whose rows are clusters, so that it may be of any length.
/// Results do not depend on the number of threads.
class ReplayScan {
public:
    /// \p columns, \p also: as ReplayReader's. The trace outlives it.
    ReplayScan(const TraceReader& trace, const RunInfo& run, const std::vector<PolicySignal>& columns,
               const BootstrapOptions& options, const std::vector<PolicySignal>& also = {});
    /// The table outlives it.
    ReplayScan(const ReplayTable& table) : table_(&table) {} // NOLINT(google-explicit-constructor)

    /// Whether sums of clusters are all that intervals by these options need, over each of so many equal
    /// parts of the clusters. Of a trace.
    [[nodiscard]] bool suffices(std::int64_t parts = 1) const;
    [[nodiscard]] const ReplayReader& reader() const { return *reader_; } ///< of a trace
    /// The table, or one without tokens: what policies can be asked of the run.
    [[nodiscard]] const ReplayTable& about() const { return table_ != nullptr ? *table_ : reader_->none(); }
    /// Tokens before each sequence, and all of them.
    [[nodiscard]] std::vector<std::size_t> tokens_before() const;
    /// Lets policies know the mean steps of the model's own rule, by replaying it where the run has one. Of a
    /// trace: a table knows them.
    void find_learned_rate();

    /// Fills in a result of the tokens of a table.
    using Replay = std::function<void(const ReplayTable&, ReplayResult&)>;
    struct Setting {
        std::string policy;
        Replay replay;
        static Setting of(const PolicySpec& spec);
    };
    /// InputError: no token with a target, and what replays throw; Cancelled.
    [[nodiscard]] ScoredReplays replays(std::span<const Setting> settings) const;
    /// Shows all tokens once: tables of the run's parts, in any order and by several threads. What is
    /// returned is called in the order of sequences, one at a time. \p first: sequence of the table's first
    /// token.
    void each(const std::function<Commit(const ReplayTable& table, std::size_t first)>& visit) const;

private:
    [[nodiscard]] ScoredReplays replays_of_table(std::span<const Setting> settings) const;

    const ReplayTable* table_ = nullptr;
    std::optional<ReplayReader> reader_; ///< without a table, as all below
    std::optional<SequenceScan> scan_;
    BootstrapOptions options_;
    std::int64_t clusters_ = 0;
};

} // namespace ponderscope
