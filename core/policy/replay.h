// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/policy/flops_model.h"
#include "core/policy/policy.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// The data of one run for replays, in memory: recorded signals as columns; tokens in the order of sequences
/// and positions. Immutable after loading, so any number of threads may replay. Takes 4 (K + 1) bytes per
/// token and signal.
struct ReplayTable {
    std::string run;                     ///< the run's name in messages: TRACE.ponder#RUN
    SignalColumns columns;               ///< all tokens; K = columns.max_steps()
    std::vector<TokenPlace> places;      ///< [tokens]
    std::vector<std::int32_t> ran;       ///< [tokens] K_t: the last recorded step, an upper bound for replays
    std::vector<float> nll;              ///< [tokens] NLL in the recorded run; NaN without a target
    std::vector<std::int64_t> sequences; ///< number of tokens of each sequence
    std::vector<std::int64_t> clusters;  ///< cluster of each sequence; empty: each sequence is a cluster
    std::optional<FlopsModel> flops;     ///< absent if the trace has none
    std::vector<std::vector<WindowSpan>> windows; ///< windows of each sequence, if `flops` has a value
    std::vector<std::string> by_step;             ///< names of the run's signals over tokens and steps
    bool layers_as_steps = false;                 ///< steps are blocks (methods.md 9)
    bool halted = false;   ///< some token stopped before K, so replays are limited to K_t
    PolicyContext context; ///< facts about this run for the policies

    [[nodiscard]] std::size_t tokens() const { return ran.size(); }

    /// Loads the run's signals that policies use, the signals of its method, and \p also. \p only: loads only
    /// these signals and the NLL. InputError: no token with a target, no per-step NLL, or a signal with a
    /// wrong shape. \p stop throws Cancelled.
    static ReplayTable load(const TraceReader& trace, const RunInfo& run, const ProgressSink& progress = {},
                            const std::stop_token& stop = {}, const std::vector<PolicySignal>& also = {},
                            const std::vector<PolicySignal>& only = {});
    /// Computes `halted` and `context.learned_rate` from the other members.
    void finish();

    /// InputError: the run lacks a signal of the policy. The message says how to record it.
    void require(const PolicySpec& spec) const;
    /// Whether the kind can be replayed on this table; for menus.
    [[nodiscard]] bool can(const PolicyKind& kind) const;
    /// The kinds that can be replayed on this table: those of policy_kinds(), and for each signal
    /// that was loaded by name one rule that stops below theta and one that stops at theta or above.
    [[nodiscard]] std::vector<const PolicyKind*> kinds() const;
    /// The number of a kind, which selects its colour: the index in policy_kinds(). Rules over a signal have
    /// larger numbers.
    [[nodiscard]] std::size_t number_of(const PolicyKind& kind) const;
};

/// The result of a policy that reads the recorded signals, without the model. It is an estimate, which views
/// label as replay. A rerun differs if halted tokens change the context of other tokens (methods.md 9).
struct ReplayResult {
    std::vector<std::int32_t> steps; ///< [tokens]
    std::vector<float> nll; ///< [tokens], nats, for the read-out at the chosen step; NaN without a target
    std::vector<std::int64_t> flops; ///< [tokens]; empty if the trace has no FLOPs model

    // Over the tokens with a target:
    std::int64_t scored = 0;
    double mean_steps = 0;
    double mean_nll = 0;                 ///< nats
    std::vector<std::int64_t> histogram; ///< [K + 1] tokens that stopped at k
    // Over all tokens:
    double mean_flops = 0; ///< NaN if the trace has no FLOPs model
};

/// Replays a policy in one pass over the columns: milliseconds for 100,000 tokens. Throws the errors of
/// require() and make_policy().
ReplayResult replay(const ReplayTable& table, const PolicySpec& spec);
/// Fills in the rest of \p result from the recorded read-outs at the steps in `result.steps` ([tokens]).
/// \p by_head: choosing the steps needed the head.
void read_replay(const ReplayTable& table, bool by_head, ReplayResult& result);
/// replay() that reuses the memory of \p result; for sliders.
void replay(const ReplayTable& table, const PolicySpec& spec, ReplayResult& result);

} // namespace ponderscope
