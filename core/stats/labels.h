// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/token_groups.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// Classes that somebody gave to parts of a text ("easy", "carry 2", "a name"), as a table says them: by
/// bytes, which suits every tokenizer, or by tokens.
struct Labels {
    struct Row {
        std::string document;       ///< title or number (from 0) of a sequence; empty: the only one
        std::int64_t sequence = -1; ///< its number where that is known; else -1, and `document` says it
        std::uint64_t begin = 0;    ///< bytes [begin, end) of its text; or the token, begin = its position
        std::uint64_t end = 0;
        std::int32_t label = 0; ///< into `classes`
        std::int64_t line = 0;  ///< of the file, for messages
    };
    std::filesystem::path file;
    bool by_bytes = true;
    std::vector<Row> rows;
    std::vector<std::string> classes; ///< in the order in which they first occur

    /// CSV with a header: document,begin,end,class or sequence,token,class in any order; `label` is another
    /// name of class, `document` and `sequence` mean the same and may be absent where there is one sequence.
    /// Fields in double quotes may hold commas. InputError with the line for everything else.
    static Labels read(const std::filesystem::path& csv);
    /// Those that were recorded with the texts of a run; none: no rows. `file` is the trace.
    static Labels recorded(const TraceReader& trace, const RunInfo& run);
};

/// To which token a label's bytes belong: the one that is predicted from them (what was hard is what had to
/// be said), or the one at which they stand.
enum class LabelPlace : std::uint8_t { prediction, token };

/// The scored tokens of a run with their classes, in the order of sequences and positions.
struct LabelledTokens {
    std::vector<std::string> classes;
    std::vector<std::int32_t> label; ///< into `classes`; -1: none
    std::vector<double> steps;
    std::vector<double> nll; ///< nats
    TokenLayout layout;
    std::int64_t max_steps = 0;
    std::int64_t unlabelled = 0;
};

/// InputError: labels of a sequence that the run does not have, bytes beyond its text, labels that overlap,
/// bytes for a run without text, no token with a label.
LabelledTokens label_tokens(const TraceReader& trace, const RunInfo& run, const Labels& labels,
                            LabelPlace place = LabelPlace::prediction, const std::stop_token& stop = {});

/// What a class is like, with intervals; its tokens stand together, so tests are over clusters or blocks.
struct LabelledClass {
    TokenGroup group; ///< p as token_groups.h says, over the labelled tokens; q over the classes
    Estimate steps;
    Estimate nll;
    Estimate steps_difference; ///< to the tokens of all other classes, unlabelled ones left out
};
std::vector<LabelledClass> compare_classes(const LabelledTokens& tokens, const BootstrapOptions& options = {},
                                           DiscoveryControl control = DiscoveryControl::benjamini_hochberg);

} // namespace ponderscope
