// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/rerun_difference.h"

#include "core/base/error.h"
#include "core/trace/recorded_choices.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// True also if either text is empty: the program that wrote the run did not store it.
bool same_if_known(const std::string& one, const std::string& other) {
    return one.empty() || other.empty() || one == other;
}

bool same_start(const RecordedChoices& one, const RecordedChoices& other) {
    return one.initial_state_digest.empty() || other.initial_state_digest.empty()
               ? same_if_known(one.initial_state, other.initial_state)
               : one.initial_state_digest == other.initial_state_digest; // the file's name does not matter
}

} // namespace

bool is_rerun_of(const RunInfo& candidate, const RunInfo& run, const std::string& policy,
                 const std::string& kv) {
    const RecordedChoices chosen = recorded_choices(candidate);
    const RecordedChoices own = recorded_choices(run);
    const std::string wanted = kv.empty() ? kv_of_rerun(run) : kv;
    // If no token stops, only shared differs: there, later tokens see the last step at every step.
    const bool alike = policy == "full" && chosen.kv != "shared" && wanted != "shared";
    return candidate.policy == policy && candidate.checkpoint_digest == run.checkpoint_digest &&
           candidate.method == run.method && candidate.depth_mixing == run.depth_mixing &&
           candidate.scoring == run.scoring && candidate.dtype == run.dtype &&
           candidate.context == run.context && candidate.stride == run.stride &&
           candidate.max_steps == run.max_steps && candidate.step_unit == run.step_unit &&
           (alike || same_if_known(chosen.kv, wanted)) && same_start(chosen, own) &&
           changes_of(candidate) == changes_of(run) && candidate.tokens == run.tokens && candidate.complete;
}

RerunDifference rerun_difference(const ReplayTable& table, const ReplayResult& replayed,
                                 const TraceReader& trace, const RunInfo& run, const TraceReader& rerun_trace,
                                 const RunInfo& rerun, const std::stop_token& stop) {
    const auto other_tokens = [&](const std::string& found, ErrorId id = ErrorId::compare_tokens) {
        throw InputError(id, rerun_trace.path(), "a rerun over the tokens of run \"" + run.name + "\"",
                         "run \"" + rerun.name + "\" " + found, "rerun the policy on the same text");
    };
    const std::vector<SequenceInfo> sequences = trace.sequences(run.id);
    const std::vector<SequenceInfo> again = rerun_trace.sequences(rerun.id);
    if (sequences.size() < table.sequences.size() || again.size() < table.sequences.size()) {
        other_tokens("with " + std::to_string(again.size()) + " sequences");
    }
    constexpr std::int64_t slice = 1 << 16;
    RerunDifference result;
    double flops = 0;
    std::int64_t all = 0;
    std::size_t at = 0; // row of the table
    for (std::size_t s = 0; s < table.sequences.size(); ++s) {
        for (std::int64_t begin = 0; begin < table.sequences[s]; begin += slice) {
            throw_if_stopped(stop);
            const std::int64_t end = std::min(begin + slice, table.sequences[s]);
            const TokenColumns before = trace.tokens(run.id, sequences[s].number, begin, end);
            const TokenColumns after = rerun_trace.tokens(rerun.id, again[s].number, begin, end);
            if (before.id != after.id) {
                other_tokens("over other tokens");
            }
            for (std::size_t i = 0; i < after.size() && at < table.tokens(); ++i, ++at) {
                flops += static_cast<double>(after.flops[i]);
                result.steps.push_back(after.steps[i]);
                result.nll.push_back(after.nll[i]);
                result.flops.push_back(after.flops[i]);
                ++all;
                const auto mine = static_cast<double>(replayed.nll[at]);
                const auto exact = static_cast<double>(after.nll[i]);
                if (!std::isfinite(mine) || !std::isfinite(exact)) {
                    continue;
                }
                ++result.tokens;
                result.mean_nll += exact;
                result.mean_steps += after.steps[i];
                result.difference += exact - mine;
                result.steps_changed += after.steps[i] != replayed.steps[at] ? 1 : 0;
                if (std::abs(exact - mine) > result.largest || result.largest_row < 0) {
                    result.largest = std::abs(exact - mine);
                    result.largest_sequence = sequences[s].number;
                    result.largest_row = begin + static_cast<std::int64_t>(i);
                }
            }
        }
    }
    if (at != table.tokens()) {
        other_tokens("with fewer tokens");
    }
    if (result.tokens == 0) {
        other_tokens("without a token that both scored", ErrorId::run_unscored);
    }
    const auto count = static_cast<double>(result.tokens);
    result.mean_nll /= count;
    result.mean_steps /= count;
    result.difference /= count;
    result.mean_flops = flops / static_cast<double>(std::max<std::int64_t>(all, 1));
    return result;
}

} // namespace ponderscope
