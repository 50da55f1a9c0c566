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

/// The data of one run that replays need, in memory: recorded signals as columns, tokens in the order of
/// sequences and positions. Loaded once a run and immutable then, so any number of threads may replay from
/// it. Takes 4 (K + 1) bytes a token and signal.
struct ReplayTable {
    std::string run;                ///< as messages call it: TRACE.ponder#RUN
    SignalColumns columns;          ///< of all tokens; K = columns.max_steps()
    std::vector<TokenPlace> places; ///< [tokens]
    std::vector<std::int32_t> ran;  ///< [tokens] K_t: a replay cannot go beyond the steps that were recorded
    std::vector<float> nll;         ///< [tokens] of the run itself; NaN without a target
    std::vector<std::int64_t> sequences; ///< tokens of each; they add up
    std::vector<std::int64_t> clusters;  ///< of each sequence (core/stats/layout.h); empty: each its own
    std::optional<FlopsModel> flops;     ///< absent if the trace has none
    std::vector<std::vector<WindowSpan>> windows; ///< of each sequence, with `flops`
    std::vector<std::string> by_step;             ///< signals over tokens and steps that the run has
    bool layers_as_steps = false;                 ///< steps are blocks (methods.md 9)
    bool halted = false;   ///< some token stopped before K: choices are min(rule, K_t), and say so
    PolicyContext context; ///< facts about this run for policies

    [[nodiscard]] std::size_t tokens() const { return ran.size(); }

    /// Reads the signals that policies use and the run has, the run's own included, and \p also. \p only:
    /// these alone, and the NLL. InputError: a run without tokens with a target, without per-step NLL, with
    /// signals of a wrong shape; Cancelled by \p stop.
    static ReplayTable load(const TraceReader& trace, const RunInfo& run, const ProgressSink& progress = {},
                            const std::stop_token& stop = {}, const std::vector<PolicySignal>& also = {},
                            const std::vector<PolicySignal>& only = {});
    /// Fills in `halted` and `context.learned_rate` from the rest.
    void finish();

    /// InputError: a signal of the policy is missing; the message says how to record it.
    void require(const PolicySpec& spec) const;
    /// Whether it can be replayed here; for menus.
    [[nodiscard]] bool can(const PolicyKind& kind) const;
    /// The kinds that can be replayed here: policy_kinds(), and rules in both directions for each signal that
    /// was read by name.
    [[nodiscard]] std::vector<const PolicyKind*> kinds() const;
    /// The number of a kind, which selects its colour: its place in policy_kinds(), of rules over a signal
    /// behind these.
    [[nodiscard]] std::size_t number_of(const PolicyKind& kind) const;
};

/// The steps of a policy from the recorded signals, without the model. An estimate: the rerun differs if
/// halted tokens change the context of others (methods.md 9), so results are labelled as replay.
struct ReplayResult {
    std::vector<std::int32_t> steps; ///< [tokens]
    std::vector<float> nll; ///< [tokens], nats, of the read-out at the chosen step; NaN without a target
    std::vector<std::int64_t> flops; ///< [tokens]; empty if the trace does not say what steps cost

    // Over the tokens with a target:
    std::int64_t scored = 0;
    double mean_steps = 0;
    double mean_nll = 0; ///< nats
    double perplexity = 0;
    std::vector<std::int64_t> histogram; ///< [K + 1] tokens that stopped at k
    // Over all tokens:
    double mean_flops = 0; ///< NaN if the trace does not say
};

/// One pass over the columns: milliseconds for 100,000 tokens. Throws as require() and make_policy.
ReplayResult replay(const ReplayTable& table, const PolicySpec& spec);
/// Fills in \p result from the recorded read-outs at given steps, [tokens] in `result.steps`. \p by_head: the
/// choice of steps needed the head.
void read_replay(const ReplayTable& table, bool by_head, ReplayResult& result);
/// The same with reused memory, for sliders.
void replay(const ReplayTable& table, const PolicySpec& spec, ReplayResult& result);

} // namespace ponderscope
