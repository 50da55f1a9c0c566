// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/token_groups.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/tools/placed_rows.h"

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Classes ("easy", "carry 2", "a name") of parts of texts. Parts are given in bytes (valid for every
/// tokenizer) or tokens.
struct Labels {
    std::filesystem::path file;
    bool by_bytes = true;
    std::vector<PlacedRow> rows;      ///< `entry` is an index in `classes`
    std::vector<std::string> classes; ///< in the order of first occurrence

    /// The labels that were recorded with the texts of a run; there may be none. `file` is the trace.
    static Labels recorded(const TraceReader& trace, const RunInfo& run);
    /// The classes of an annotation. A numeric annotation gives at most five classes ("2 to 5") with about
    /// equally many tokens. Equal numbers stay in one class. `file` is the file of the annotations.
    static Labels annotated(const AnnotationReader& annotations, const AnnotationInfo& annotation);
};

/// The scored tokens of a run with their classes, in the order of sequences and positions.
struct LabelledTokens {
    std::vector<std::string> classes;
    std::vector<std::int32_t> label; ///< index in `classes`; -1: none
    std::vector<double> steps;
    std::vector<double> nll; ///< nats
    TokenLayout layout;
    std::int64_t max_steps = 0;
    std::int64_t unlabelled = 0;
};

/// InputError: labels for a sequence that the run lacks, bytes beyond its text, overlapping labels, bytes for
/// a run without text, or no labelled token.
LabelledTokens label_tokens(const TraceReader& trace, const RunInfo& run, const Labels& labels,
                            LabelPlace place = LabelPlace::prediction, const std::stop_token& stop = {});

/// Steps and NLL of a class with intervals. Tokens of a class depend on each other, so the units of the tests
/// are clusters or blocks.
struct LabelledClass {
    TokenGroup group; ///< p and q as in token_groups.h: p over labelled tokens, q over all classes
    Estimate steps;
    Estimate nll;
    Estimate steps_difference; ///< mean steps minus mean steps of the labelled tokens in other classes
};
std::vector<LabelledClass> compare_classes(const LabelledTokens& tokens,
                                           const BootstrapOptions& options = {});

} // namespace ponderscope
