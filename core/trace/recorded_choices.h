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

/// The run's own halting rule, for models without a method here: a signal of the run by step against a
/// threshold.
struct RecordedRule {
    std::string signal;
    bool stops_below = true; ///< a token stops if the signal is below theta; false: has reached it
    double theta = 0;        ///< a number
    bool operator==(const RecordedRule&) const = default;
};

/// Choices of a run beside its policy (RunInfo::choices), in the form of the options of `ponderscope record`.
/// Empty: the method has no such choice, or the program that wrote the run did not store it. The text is
/// untrusted: unknown keys are ignored.
struct RecordedChoices {
    std::string kv;                        ///< "full", "per_step", "shared", "skip"
    std::string initial_state;             ///< "random:SEED", "zero", the name of a file
    std::string initial_state_digest;      ///< of the states in that file
    std::optional<double> threshold;       ///< of the method's own rule; NaN: it never stops
    std::optional<std::int64_t>
        exit_step; ///< the step at which that rule stops every token, at any threshold
    std::optional<RecordedRule> rule;      ///< in the place of the method's own rule
    std::string patches;                   ///< JSON array; empty: none
    /// For each sequence, tokens of the prompt plus the largest number of new tokens. Empty unless a
    /// generation ended early.
    std::vector<std::int64_t> planned_lengths = {};

    /// The planned length of a sequence by its number; 0: the tokens that it has.
    [[nodiscard]] std::int64_t planned_length(std::int64_t sequence) const {
        const auto i = static_cast<std::size_t>(sequence);
        return i < planned_lengths.size() ? planned_lengths[i] : 0;
    }
};
RecordedChoices recorded_choices(std::string_view choices);
RecordedChoices recorded_choices(const RunInfo& run);

/// The parsed choices, to show them; null: unknown, damaged or nested too deeply.
nlohmann::json choices_json(std::string_view choices);

/// How the model of a run differs from its checkpoint: patched states, ablated sources. Equal for equally
/// changed runs; empty: no change.
std::string changes_of(const RunInfo& run);

/// Why \p run cannot be rerun, one sentence: its states were patched, which a rerun does not repeat. Empty:
/// it can.
std::string why_no_rerun(const RunInfo& run);

/// The kv of a rerun of \p run with another policy: the run's own, except `full`, under which every step runs
/// and a rerun would change nothing; then exits are taken, `per_step`.
std::string kv_of_rerun(const RunInfo& run);

} // namespace ponderscope
