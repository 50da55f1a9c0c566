// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/source.h"

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"

#include <algorithm>

namespace ponderscope::figure {
namespace {

SequenceInfo find_sequence(const TraceReader& reader, const RunInfo& run, std::int64_t index) {
    const std::vector<SequenceInfo> sequences = reader.sequences(run.id);
    if (const auto found = std::ranges::find(sequences, index, &SequenceInfo::number);
        found != sequences.end()) {
        return *found;
    }
    if (sequences.empty()) {
        throw InputError(ErrorId::run_unsuited, reader.path(), "a run with a sequence",
                         "run \"" + run.name + "\" without sequences", "record the run again");
    }
    throw InputError(
        ErrorId::trace_signal, reader.path(),
        "a sequence from 0 to " + std::to_string(sequences.back().number) + " in run \"" + run.name + "\"",
        "sequence " + std::to_string(index), "change \"sequence\" in the figure's specification");
}

} // namespace

RunName by_name(const RunName& run, const std::vector<RunInfo>& runs) {
    for (const RunInfo& info : runs) {
        if (run.numbered && std::to_string(info.id) == run.run) {
            return {run.trace, info.name};
        }
    }
    return run;
}

std::optional<std::size_t> RunRows::shown(std::int64_t token, Attribution attribution) const {
    const std::int64_t row = (attribution == Attribution::predicted ? token - 1 : token) - rows.first;
    if (row < 0 || row >= static_cast<std::int64_t>(rows.size())) {
        return std::nullopt;
    }
    return static_cast<std::size_t>(row);
}

std::string RunRows::label() const {
    return info.complete ? info.name : info.name + " (partial)";
}

RunRows load_rows(const FigureSpec& spec, const RunName& name) {
    const auto reader = std::make_shared<TraceReader>(TraceReader::open(name.trace));
    RunRows run;
    run.name = name;
    run.info = find_run(*reader, name.run);
    run.sequence = find_sequence(*reader, run.info, spec.sequence.value_or(0));
    run.first = spec.tokens ? (*spec.tokens)[0] : 0;
    run.last = spec.tokens ? (*spec.tokens)[1] : run.sequence.tokens;
    if (run.last > run.sequence.tokens || run.first >= run.last) {
        throw InputError(ErrorId::run_unsuited, name.trace,
                         "a range within the " + std::to_string(run.sequence.tokens) +
                             " tokens of sequence " + std::to_string(run.sequence.number) + " of run \"" +
                             run.info.name + "\"",
                         "[" + std::to_string(run.first) + ", " + std::to_string(run.last) + ")",
                         "change \"tokens\" in the figure's specification");
    }
    run.rows =
        reader->tokens(run.info.id, run.sequence.number, std::max<std::int64_t>(0, run.first - 1), run.last);
    if (static_cast<std::int64_t>(run.rows.size()) != run.last - run.rows.first) {
        throw InputError(
            ErrorId::trace_damaged, name.trace, std::to_string(run.last - run.rows.first) + " tokens",
            std::to_string(run.rows.size()) + " tokens", "the trace is damaged; record the run again");
    }
    run.text = reader->text(run.info.id, run.sequence.number);
    run.bytes_of_id = [reader, id = run.info.id](std::int32_t token) {
        return reader->token_bytes(id, token);
    };
    return run;
}

TokenAnnotations load_annotation(const FigureSpec& spec, const RunRows& run) {
    const auto annotations = AnnotationReader::beside(run.name.trace);
    AnnotationInfo info = find_annotation(annotations, run.name.trace, run.info, spec.annotation);
    std::vector<double> values = annotations->values(info, run.sequence.number, run.first, run.last);
    return {info.category, std::move(info.classes), std::move(values)};
}

StepMap load_step_map(const FigureSpec& spec, const RunRows& run) {
    const TraceReader reader = TraceReader::open(run.name.trace);
    std::optional<SignalInfo> known;
    std::string possible;
    for (const SignalInfo& info : reader.signal_infos(run.info.id)) {
        if (info.axes == std::vector<std::string>{"token", "step"}) {
            possible += (possible.empty() ? "" : ", ") + info.name;
            if (info.name == spec.signal) {
                known = info;
            }
        }
    }
    if (!known) {
        throw InputError(ErrorId::run_unsuited, run.name.trace,
                         possible.empty() ? "a run with signals by step"
                                          : "one of the signals by step: " + possible,
                         "\"" + spec.signal + "\" in run \"" + run.info.name + "\"",
                         possible.empty() ? "record the run again with --record steps"
                                          : "change \"signal\" in the figure's specification");
    }
    const std::int64_t begin = run.rows.first;
    const std::optional<SignalChunk> chunk =
        reader.signal(run.info.id, run.sequence.number, spec.signal, begin, run.last);
    if (!chunk) {
        throw InputError(ErrorId::trace_damaged, run.name.trace,
                         "signal \"" + spec.signal + "\" for " + std::to_string(run.last - begin) + " tokens",
                         "no values", "the trace is partial or damaged; record the run again");
    }
    auto rows = std::make_shared<SequenceData>();
    rows->tokens = run.rows;
    return {std::move(rows), *chunk, *known, spec.attribution};
}

} // namespace ponderscope::figure
