// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/policy/flops_model.h"
#include "core/policy/policy.h"
#include "core/trace/reader.h"
#include "core/trace/recorded_choices.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// What replays of one run need, in memory: recorded signals as columns, tokens in the order of sequences and
/// positions. Loaded once a run and immutable then, so any number of threads may replay from it. Takes
/// 4 (K + 1) bytes a token and signal.
struct ReplayTable {
    std::string run;                ///< as messages call it: TRACE.ponder#RUN
    SignalColumns columns;          ///< of all tokens; K = columns.max_steps()
    std::vector<TokenPlace> places; ///< [tokens]
    std::vector<std::int32_t> ran;  ///< [tokens] K_t: a replay cannot go beyond the steps that were recorded
    std::vector<float> nll;         ///< [tokens] of the run itself; NaN without a target
    std::vector<std::int64_t> sequences; ///< tokens of each; they add up
    std::vector<std::int64_t> clusters;  ///< of each sequence (core/stats/layout.h); empty: each its own
    std::optional<FlopsModel> flops;     ///< absent in traces that do not hold it
    std::vector<std::vector<WindowSpan>> windows; ///< of each sequence, with `flops`
    std::vector<std::string> by_step;             ///< signals over tokens and steps that the run has
    bool layers_as_steps = false;                 ///< steps are blocks (methods.md 9)
    bool halted = false;   ///< some token stopped before K: choices are min(rule, K_t), and say so
    PolicyContext context; ///< what policies are told about this run

    [[nodiscard]] std::size_t tokens() const { return ran.size(); }

    /// Reads the signals that policies use and the run has, the run's own included, and \p also. InputError:
    /// a run without tokens with a target, without per-step NLL, with signals of a wrong shape; Cancelled by
    /// \p stop.
    static ReplayTable load(const TraceReader& trace, const RunInfo& run, const ProgressSink& progress = {},
                            const std::stop_token& stop = {}, const std::vector<PolicySignal>& also = {});
    /// Fills in `halted` and `context.learned_rate` from the rest.
    void finish();

    /// InputError, one sentence that says what to record and how, when a policy's signals are not there.
    void require(const PolicySpec& spec) const;
    /// Whether it can be replayed here; for menus.
    [[nodiscard]] bool can(const PolicyKind& kind) const;
    /// The kinds that can be replayed here: those of policy_kinds(), and rules in both directions over the
    /// signals that were read by name.
    [[nodiscard]] std::vector<const PolicyKind*> kinds() const;
    /// The number of a kind, which is that of its colour: its place in policy_kinds(), of rules over a signal
    /// behind these.
    [[nodiscard]] std::size_t number_of(const PolicyKind& kind) const;
};

/// Reads a run as tables of its parts, for runs that are longer than memory. Threads may share it, each with
/// a reader of its own. The trace outlives it.
class ReplayReader {
public:
    /// \p only: the signals that will be read, where the run has them; empty: all that policies use, the
    /// run's own included, and \p also. InputError: a run that nothing can be replayed from.
    ReplayReader(const TraceReader& trace, const RunInfo& run, const std::vector<PolicySignal>& only = {},
                 const std::vector<PolicySignal>& also = {});

    [[nodiscard]] const RunInfo& run() const { return run_; }
    [[nodiscard]] const std::vector<SequenceInfo>& sequences() const { return sequences_; }
    [[nodiscard]] const std::vector<std::int64_t>& clusters() const {
        return clusters_;
    } ///< of each sequence
    /// Tokens before each sequence, and all of them.
    [[nodiscard]] std::vector<std::size_t> tokens_before() const;
    /// A table without tokens: what policies can be asked of the run.
    [[nodiscard]] const ReplayTable& none() const { return none_; }
    /// The mean steps of the model's own rule, which only all tokens tell; tables that are read say it then.
    void set_learned_rate(double steps) { none_.context.learned_rate = steps; }

    /// Sequences [first, end): `places` number them as the run does, all else of the table is theirs alone.
    [[nodiscard]] ReplayTable read(const TraceReader& reader, std::size_t first, std::size_t end,
                                   const ProgressSink& progress = {}, const std::stop_token& stop = {}) const;

private:
    struct Column {
        PolicySignal signal;
        std::string name;
    };
    [[noreturn]] void misshapen(const std::string& name) const;
    void check(const SignalChunk& chunk, const std::string& name) const;
    void choose_columns(const TraceReader& trace, const std::vector<PolicySignal>& only,
                        const std::vector<PolicySignal>& also);
    void plan_costs();
    void read_sequence(const TraceReader& reader, const SequenceInfo& sequence, ReplayTable& table,
                       const std::function<void(std::int64_t tokens)>& done) const;

    RunInfo run_;
    RecordedChoices chosen_; ///< kv full: an exit only chose the read-out, and the steps behind it are there
    std::vector<SequenceInfo> sequences_;
    std::vector<std::int64_t> clusters_;
    ReplayTable none_;
    std::vector<Column> wanted_;
    OwnRule::Form form_ = OwnRule::Form::value_at_k;
};

/// What a policy would have done, by the recorded signals, without the model. An estimate: where other
/// tokens' halting changes the context the rerun differs (methods.md 9), so results are labelled as replay.
struct ReplayResult {
    std::vector<std::int32_t> steps; ///< [tokens]
    std::vector<float> nll; ///< [tokens], nats, of the read-out at the chosen step; NaN without a target
    std::vector<std::int64_t> flops; ///< [tokens]; empty where the trace does not say what steps cost

    // Over the tokens with a target:
    std::int64_t scored = 0;
    double mean_steps = 0;
    double mean_nll = 0; ///< nats
    double perplexity = 0;
    std::vector<std::int64_t> histogram; ///< [K + 1] tokens that stopped at k
    // Over all tokens:
    double mean_flops = 0; ///< NaN where the trace does not say

    /// Fills in the means from `scored`, `histogram`, and sums: of NLL over the tokens with a target, of
    /// FLOPs over all \p tokens (NaN where the trace does not say).
    void finish(double nll_sum, double flops_sum, std::int64_t tokens);
};

/// One pass over the columns: milliseconds for 100,000 tokens. Throws as require() and make_policy.
ReplayResult replay(const ReplayTable& table, const PolicySpec& spec);
/// What the recorded read-outs say of given steps, [tokens] in `result.steps`: fills in the rest. \p by_head:
/// whoever chose them ran the head to decide.
void read_replay(const ReplayTable& table, bool by_head, ReplayResult& result);
/// The same into a result whose memory is used again: for sliders.
void replay(const ReplayTable& table, const PolicySpec& spec, ReplayResult& result);

} // namespace ponderscope
