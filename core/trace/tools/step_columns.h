// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/tools/annotations.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace ponderscope {

/// A number of each token, computed from signals by step, as typed by a user: "entropy@2", a signal at a
/// step; "nll@0-nll@last", the gain of the steps between; "answer_flips", a signal without steps. `last` is
/// the last step that ran at the token; steps count from 0.
struct StepColumn {
    struct Term {
        std::string signal;
        std::optional<std::int64_t> step; ///< nothing: the signal has one value a token
    };
    static constexpr std::int64_t last_step = -1;
    Term of;
    std::optional<Term> minus;

    /// InputError: not such a column.
    static StepColumn parse(const std::string& text);
};

/// The column of a run as an annotation of that name. Values are at the predicted token: row t of the trace
/// is at token t + 1; the first token has no value. NaN if the step did not run or the signal has no value.
/// InputError: the run has no such signal. Cancelled by \p stop.
Annotation annotation_by_step(const TraceReader& trace, const RunInfo& run, const std::string& name,
                              const StepColumn& column, const std::stop_token& stop = {});

/// How the tokens of run B differ from those of run A: "3 sequences where that has 2". Empty: they do not.
std::string difference_of_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                                 const RunInfo& run_b);
/// InputError unless run B reads the same tokens as run A.
void require_same_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                         const RunInfo& run_b);

} // namespace ponderscope
