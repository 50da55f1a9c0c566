// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/figure/spec.h"
#include "views/heatmap/step_map.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope::figure {

/// Replaces a number in \p run by a name, if one of \p runs (all runs of the trace) has this number.
RunName by_name(const RunName& run, const std::vector<RunInfo>& runs);

/// The rows of one run in a figure, for tokens [first, last) of its sequence.
struct RunRows {
    RunName name;
    RunInfo info;
    SequenceInfo sequence;
    std::int64_t first = 0;
    std::int64_t last = 0;
    TokenColumns rows; ///< rows of the tokens, and the row before them, which the first token may show
    std::string text;  ///< text of the whole sequence; empty for runs with ids only
    std::function<std::string(std::int32_t)>
        bytes_of_id; ///< bytes of each id in the trace's vocabulary; "": unknown id

    /// Index in `rows` of the row that a token shows; none for the first token under Attribution::predicted.
    [[nodiscard]] std::optional<std::size_t> shown(std::int64_t token, Attribution attribution) const;
    [[nodiscard]] std::size_t local(std::int64_t token) const {
        return static_cast<std::size_t>(token - rows.first);
    }
    [[nodiscard]] std::int64_t count() const { return last - first; }
    /// The run's displayed name. For a partial run, ends in "(partial)".
    [[nodiscard]] std::string label() const;
};

/// Reads the rows for \p spec. InputError: the run, sequence, tokens or signal do not exist.
RunRows load_rows(const FigureSpec& spec, const RunName& name);
/// An annotation of the tokens in RunRows, [token - first]: numbers, or indices in `classes`; NaN: none.
struct TokenAnnotations {
    bool category = false;
    std::vector<std::string> classes;
    std::vector<double> values;
};
TokenAnnotations load_annotation(const FigureSpec& spec, const RunRows& run);
/// The map of the step signal of \p spec over the tokens of `run.rows`.
StepMap load_step_map(const FigureSpec& spec, const RunRows& run);

} // namespace ponderscope::figure
