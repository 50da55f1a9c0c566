// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/not_a_number.h"
#include "core/policy/replay.h"
#include "core/policy/thresholds.h"
#include "core/stats/bootstrap.h"
#include "core/stats/data_table.h"
#include "core/trace/records.h"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// Cost and NLL of a policy, from a replay or from a rerun.
struct PolicyOutcome {
    double steps = 0; ///< mean over tokens with a target
    double nll = 0;   ///< nats; mean over tokens with a target
    double flops = 0; ///< mean per token; NaN if the trace has no FLOPs model
    /// Saved share of the FLOPs of `full`, the policy that never halts; NaN: unknown FLOPs.
    double saved = 0;
    /// NLL minus the NLL of `full`, both replayed or both rerun; NaN: no result for `full`
    Estimate difference = {};
    /// NLL minus the NLL of the best blind rule (core/policy/matched.h) at the same FLOPs, or at the same
    /// steps if FLOPs are unknown. Only for replays.
    Estimate against_blind = unknown_estimate;
    Estimate band = unknown_estimate; ///< band of `difference` over all policies of a report (max-t)
    double p = 1;                     ///< two-sided p value of `difference` = 0
    bool on_front = false; ///< on the Pareto front of the report's causal policies; false for a bound
    /// Whether the policy is better than every blind rule: the interval of against_blind is below 0.
    [[nodiscard]] bool thinks_better() const { return against_blind.high < 0; }
};

/// A policy at one setting, with its replay and its rerun.
struct PolicyRow {
    std::string spec;                ///< "entropy:theta=1.37"
    bool causal = true;              ///< false: the policy is a bound
    double threshold = not_a_number; ///< value of the policy's first parameter; NaN: no parameter
    PolicyOutcome replayed;
    std::optional<PolicyOutcome> rerun;
    std::string fault; ///< why a rerun was refused, for example because its text differs
};

/// A table with a row for each policy. For each quantity, the columns of replay and rerun are side by side.
DataTable table_of(std::span<const PolicyRow> rows);
/// The name of a kind in the window: "CALM margin".
std::string title_of(const PolicyKind& kind);
std::string title_of(const std::string& rule); ///< by the kind's name; an unknown name is returned unchanged
/// "A token stops when the entropy of the read-out is below 5.66 nats."
std::string rule_in_words(const PolicyKind& kind, double threshold);

/// A run of a trace.
struct StoredRun {
    std::filesystem::path trace;
    RunInfo run;
};
/// A rerun and the policy that it ran.
struct PolicyRerun {
    std::string policy;
    StoredRun stored;
};

/// A row for each of \p specs, in their order. \p of: the run of the table. \p reruns: the known reruns.
/// Replays are compared with the replay of `full`, reruns with the rerun of `full`. Without a rerun of
/// `full`, reruns are compared with the run itself if all its tokens ran to K. Intervals as in
/// core/stats/front.h: paired, over the tokens with an NLL in all rows. A rerun over other tokens sets
/// PolicyRow::fault. InputError: an invalid spec, or a run without the signals of a spec. options.stop throws
/// Cancelled.
std::vector<PolicyRow> policy_rows(const ReplayTable& table, const StoredRun& of,
                                   const std::vector<std::string>& specs,
                                   const std::vector<PolicyRerun>& reruns, const BootstrapOptions& options);

/// The initial position of a slider over \p values (threshold_values) of a kind. `learned`: the model's own
/// threshold. A bound: the first value. Other kinds: the middle.
std::size_t starting_place(const PolicyKind& kind, const ReplayTable& table,
                           const std::vector<double>& values);
inline constexpr int slider_places = 241;
/// The policies that a table can replay, each at the initial position of its slider.
std::vector<std::string> starting_policies(const ReplayTable& table);

} // namespace ponderscope
