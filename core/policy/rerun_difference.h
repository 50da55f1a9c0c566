// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Differences between a run under a policy and the policy's replay on another run of the same model and
/// tokens. A replay is exact unless halted tokens change other tokens' context (methods.md 9). Means cover
/// the tokens with a target in both runs.
struct RerunDifference {
    std::int64_t tokens = 0;
    double mean_steps = 0; ///< mean steps of the rerun
    double mean_nll = 0;   ///< mean NLL of the rerun, nats
    double mean_flops = 0; ///< mean FLOPs of the rerun, over all tokens
    double difference = 0; ///< mean NLL, rerun minus replay
    double largest = 0;    ///< the largest absolute difference of one token's NLL
    std::int64_t largest_sequence = -1;
    std::int64_t largest_row = -1;  ///< table row of the token with the largest difference
    std::int64_t steps_changed = 0; ///< number of tokens that stopped at another step
    // Values of the rerun, one for each row of the table:
    std::vector<std::int32_t> steps;
    std::vector<float> nll; ///< nats; NaN without a target
    std::vector<std::int64_t> flops;
};

/// Whether \p candidate is the rerun of \p run with \p policy ("entropy:theta=1.5"): complete, with equal
/// weights, method, K, dtype, scoring, windows, start state, changes (changes_of) and number of tokens.
/// \p kv: name of the KvPolicy; empty: kv_of_rerun(run). Reads no tokens; rerun_difference() compares them.
bool is_rerun_of(const RunInfo& candidate, const RunInfo& run, const std::string& policy,
                 const std::string& kv = {});

/// \p replayed: a replay on the table of \p run. InputError: other tokens, or no token with a target in both.
RerunDifference rerun_difference(const ReplayTable& table, const ReplayResult& replayed,
                                 const TraceReader& trace, const RunInfo& run, const TraceReader& rerun_trace,
                                 const RunInfo& rerun, const std::stop_token& stop = {});

} // namespace ponderscope
