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

/// Cost and NLL of a policy, by replay or by rerun.
struct PolicyOutcome {
    double steps = 0; ///< mean over tokens with a target
    double nll = 0;   ///< nats, likewise
    double flops = 0; ///< mean of a token; NaN if the trace does not say what steps cost
    /// share of the FLOPs of full; NaN in the same cases, and for a rerun without a full run
    double saved = 0;
    /// NLL minus the NLL of full (a replay for a replay, a rerun for a rerun); NaN: there is no full
    Estimate difference = {};
    /// NLL minus the NLL of the best blind rule (core/policy/matched.h) at the same FLOPs, or at the same
    /// steps if FLOPs are unknown; of replays alone.
    Estimate against_blind = unknown_estimate;
    Estimate band =
        unknown_estimate;  ///< of `difference`, holds for all policies of a report together (max-t)
    double p = 1;          ///< two-sided, that `difference` is 0
    bool on_front = false; ///< no other policy of the report is as cheap and as good
    /// Better than every rule that does not look at the token: the interval is below 0.
    [[nodiscard]] bool thinks_better() const { return against_blind.high < 0; }
};

/// A policy at one setting, its replay and its rerun beside each other.
struct PolicyRow {
    std::string spec;                ///< "entropy:theta=1.37"
    bool causal = true;              ///< false: a bound
    double threshold = not_a_number; ///< of its first parameter; NaN: it has none
    PolicyOutcome replayed;
    std::optional<PolicyOutcome> rerun;
    std::string fault; ///< why a run that looks like its rerun is none: it read another text
};

/// A row each: replay and rerun of each quantity beside each other.
DataTable table_of(std::span<const PolicyRow> rows);
/// "CALM margin": as the window names a kind.
std::string title_of(const PolicyKind& kind);
std::string title_of(const std::string& rule); ///< of a kind by its name; else the name itself
/// "A token stops when the entropy of the read-out is below 5.66 nats."
std::string rule_in_words(const PolicyKind& kind, double threshold);

/// A run of a trace.
struct StoredRun {
    std::filesystem::path trace;
    RunInfo run;
};
/// A rerun and the policy that it computed.
struct PolicyRerun {
    std::string policy;
    StoredRun stored;
};

/// A row for each of \p specs, in their order. \p of: the run of the table. \p reruns: the known reruns. All
/// rows are compared with the rerun of `full`, or with the run itself if none of its tokens stopped.
/// Intervals as core/stats/front.h: paired, over the tokens that all have. InputError: a spec that is none or
/// that the run lacks signals for, traces that do not fit; Cancelled by options.stop.
std::vector<PolicyRow> policy_rows(const ReplayTable& table, const StoredRun& of,
                                   const std::vector<std::string>& specs,
                                   const std::vector<PolicyRerun>& reruns, const BootstrapOptions& options);

/// The first position of a slider over \p values (threshold_values) of a kind: at the threshold of the
/// model's own rule, or in the middle.
std::size_t starting_place(const PolicyKind& kind, const ReplayTable& table,
                           const std::vector<double>& values);
inline constexpr int slider_places = 241;
/// The policies that a table can be replayed with, each at the first position of its slider.
std::vector<std::string> starting_policies(const ReplayTable& table);

} // namespace ponderscope
