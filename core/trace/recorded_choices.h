// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// The halting rule of a run whose method this build does not know. The rule compares a per-step signal of
/// the run with a threshold.
struct RecordedRule {
    std::string signal;
    bool stops_below = true; ///< a token stops if the signal is below theta; false: if it is at least theta
    double theta = 0;        ///< never NaN
    bool operator==(const RecordedRule&) const = default;
};

/// Describes a generation that continues another run: its parent run and the position of the branch.
struct Branch {
    std::string of;          ///< name of the parent run when the generation began
    std::string text_digest; ///< RunInfo::text_digest of that run
    std::int64_t sequence = 0;
    std::int64_t at = 0;                ///< the tokens before this position come from the parent run
    std::optional<std::int32_t> forced; ///< id that the user put at the position; absent: the model chose
    bool operator==(const Branch&) const = default;
};

/// Choices of a run besides its policy (RunInfo::choices), in the form of the options of `ponderscope
/// record`. Empty: the method has no such choice, or the recording program did not store it. The text is
/// untrusted; unknown keys are ignored.
struct RecordedChoices {
    std::string kv;                        ///< "full", "per_step", "shared", "skip"
    std::string initial_state;             ///< "random:SEED", "zero", or a file name
    std::string initial_state_digest;      ///< digest of the states in that file
    std::optional<double> threshold;       ///< threshold of the method's own rule; NaN: no token stops
    std::optional<std::int64_t> exit_step; ///< replaces the threshold: all tokens stop at this step
    std::optional<RecordedRule> rule;      ///< replaces the method's own rule
    std::string patches;                   ///< JSON array; empty: none
    /// The planned length of each sequence: the tokens of its prompt plus the limit on new tokens. Empty
    /// unless a generation ended early.
    std::vector<std::int64_t> planned_lengths = {};
    std::optional<Branch> branch = std::nullopt;

    /// The planned length of a sequence, in tokens. 0: not stored; the recorded length is the planned one.
    [[nodiscard]] std::int64_t planned_length(std::int64_t sequence) const {
        const auto i = static_cast<std::size_t>(sequence);
        return i < planned_lengths.size() ? planned_lengths[i] : 0;
    }
};
nlohmann::json to_json(const Branch& branch);
RecordedChoices recorded_choices(std::string_view choices);
RecordedChoices recorded_choices(const RunInfo& run);

/// The parsed choices, for display; null: unknown, damaged or nested too deeply.
nlohmann::json choices_json(std::string_view choices);

/// The notices of a run, in sentences: about its device, its texts and its tokenizer.
std::vector<std::string> notices_of(const RunInfo& run);

/// How a run's model differs from its checkpoint: patched states, ablated sources. Equal for runs with the
/// same changes; empty: no change.
std::string changes_of(const RunInfo& run);

/// Empty: \p run can be rerun. Otherwise one sentence: its states were patched, and a rerun does not repeat
/// patches.
std::string why_no_rerun(const RunInfo& run);

/// The KV policy of a rerun of \p run under another halting policy. It is the run's own KV policy, except
/// that `full` becomes `per_step`: under `full` every step runs, so a rerun would change nothing.
std::string kv_of_rerun(const RunInfo& run);

} // namespace ponderscope
