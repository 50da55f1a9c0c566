// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace ponderscope {

/// An expression of the user that gives each token a number: "entropy@2" (a signal at step 2),
/// "nll@0-nll@last" (the gain between two steps), "answer_flips" (a signal without steps). `last` is the last
/// step that ran for the token. Steps are numbered from 0.
struct StepColumn {
    struct Term {
        std::string signal;
        std::optional<std::int64_t> step; ///< absent: the signal has one value for each token
    };
    static constexpr std::int64_t last_step = -1;
    Term of;
    std::optional<Term> minus;

    /// InputError: not a valid expression.
    static StepColumn parse(const std::string& text);
};

/// Computes the column of a run as an annotation called \p name. Token t + 1 gets the value from row t of the
/// trace, which predicts this token. The value is NaN for the first token, or if the step did not run, or if
/// the signal has no value. InputError: the run lacks the signal. \p stop throws Cancelled.
Annotation annotation_by_step(const TraceReader& trace, const RunInfo& run, const std::string& name,
                              const StepColumn& column, const std::stop_token& stop = {});

/// How run B's tokens differ from run A's: "3 sequences where that has 2" (B has 3, A has 2). Empty: equal.
std::string difference_of_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                                 const RunInfo& run_b);
/// InputError: the runs have different tokens.
void require_same_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                         const RunInfo& run_b);

} // namespace ponderscope
