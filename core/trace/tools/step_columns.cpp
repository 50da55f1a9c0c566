// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/step_columns.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/base/utf8.h"
#include "core/base/words.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// Tokens read at once. All signals of a book would not fit into memory.
constexpr std::int64_t slice_tokens = 1 << 16;

[[noreturn]] void no_column(const std::string& text) {
    throw InputError(
        ErrorId::usage_value,
        "expected a signal at a step, such as nll@0, or a difference, such as nll@0-nll@last, found \"" +
            printable(text) + "\".");
}

StepColumn::Term parse_term(const std::string& text, const std::string& all) {
    const std::size_t at = text.find('@');
    StepColumn::Term term{text.substr(0, at), std::nullopt};
    if (term.signal.empty() || !std::all_of(term.signal.begin(), term.signal.end(), [](char c) {
            return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        })) {
        no_column(all);
    }
    if (at == std::string::npos) {
        return term;
    }
    const std::string step = text.substr(at + 1);
    term.step = step == "last" ? StepColumn::last_step : parse_count(step);
    if (step != "last" && term.step < 0) {
        no_column(all);
    }
    return term;
}

const SignalInfo& signal_of(const std::vector<SignalInfo>& signals, const TraceReader& trace,
                            const RunInfo& run, const StepColumn::Term& term) {
    const std::vector<std::string> axes =
        term.step ? std::vector<std::string>{"token", "step"} : std::vector<std::string>{"token"};
    std::string there;
    for (const SignalInfo& one : signals) {
        if (one.axes == axes) {
            if (one.name == term.signal) {
                return one;
            }
            there += (there.empty() ? "" : ", ") + one.name;
        }
    }
    throw InputError(ErrorId::trace_signal, trace.path(),
                     "a signal " + term.signal + (term.step ? " by step" : " with one value a token") +
                         " in run \"" + run.name + "\"",
                     there.empty() ? "none" : "only " + there,
                     !there.empty() ? "name one of these"
                     : term.step    ? "record it with --record steps"
                                    : "name a step, as in " + term.signal + "@last");
}

/// Values of rows [begin, end). \p last_steps: the last step of each row's token.
std::vector<double> rows_of(const TraceReader& trace, const RunInfo& run, std::int64_t sequence,
                            const SignalInfo& signal, const StepColumn::Term& term, std::int64_t begin,
                            std::int64_t end, const std::vector<std::int32_t>& last_steps) {
    const auto count = static_cast<std::size_t>(end - begin);
    std::vector<double> values(count, not_a_number);
    const std::optional<SignalChunk> chunk = trace.signal(run.id, sequence, signal.name, begin, end);
    if (!chunk || chunk->shape.empty()) {
        return values;
    }
    const bool whole = !is_real(chunk->dtype);
    const std::vector<float> all = to_floats(*chunk);
    const auto steps = static_cast<std::size_t>(term.step && chunk->shape.size() > 1 ? chunk->shape[1] : 1);
    const auto value = [&](std::size_t row, std::size_t step) {
        const auto found = static_cast<double>(all[row * steps + step]);
        const bool nothing = found == did_not_run || (found == 0 && signal.of_target);
        return whole && term.step && nothing ? not_a_number : found;
    };
    for (std::size_t i = 0; i < count && (i + 1) * steps <= all.size(); ++i) {
        if (!term.step) {
            values[i] = value(i, 0);
        } else if (*term.step != StepColumn::last_step) {
            values[i] = static_cast<std::size_t>(*term.step) < steps
                            ? value(i, static_cast<std::size_t>(*term.step))
                            : not_a_number;
        } else {
            // The last value up to the token's last step. Later steps may have run (kv = full), and a signal
            // may lack the last step.
            const auto ran = static_cast<std::size_t>(std::max(last_steps[i], 0)) + 1;
            for (std::size_t step = std::min(ran, steps); step-- > 0 && std::isnan(values[i]);) {
                values[i] = value(i, step);
            }
        }
    }
    return values;
}

} // namespace

StepColumn StepColumn::parse(const std::string& text) {
    const std::size_t minus = text.find('-');
    StepColumn column{parse_term(text.substr(0, minus), text), std::nullopt};
    if (minus != std::string::npos) {
        column.minus = parse_term(text.substr(minus + 1), text);
    }
    return column;
}

Annotation annotation_by_step(const TraceReader& trace, const RunInfo& run, const std::string& name,
                              const StepColumn& column, const std::stop_token& stop) {
    const std::vector<SignalInfo> signals = trace.signal_infos(run.id);
    const SignalInfo& signal = signal_of(signals, trace, run, column.of);
    const SignalInfo& other = column.minus ? signal_of(signals, trace, run, *column.minus) : signal;
    Annotation made;
    made.name = name;
    for (const SequenceInfo& sequence : trace.sequences(run.id)) {
        std::vector<double>& values = made.values.emplace_back();
        values.resize(sequence.tokens > 0 ? 1 : 0, not_a_number);
        for (std::int64_t begin = 0; begin + 1 < sequence.tokens; begin += slice_tokens) {
            throw_if_stopped(stop);
            const std::int64_t end = std::min(begin + slice_tokens, sequence.tokens - 1);
            // The stored number of tokens is untrusted: allocate memory only for tokens that exist.
            const TokenColumns tokens = trace.tokens(run.id, sequence.number, begin, end + 1);
            const auto there = static_cast<std::int64_t>(tokens.size());
            if (there != end - begin + 1) {
                throw InputError(ErrorId::trace_damaged, trace.path(),
                                 std::to_string(sequence.tokens) + " tokens in sequence " +
                                     std::to_string(sequence.number) + " of run \"" + run.name + "\"",
                                 "only " + std::to_string(begin + there),
                                 "take the trace from its source again");
            }
            values.resize(static_cast<std::size_t>(end) + 1, not_a_number);
            const std::vector<double> of =
                rows_of(trace, run, sequence.number, signal, column.of, begin, end, tokens.steps);
            const std::vector<double> minus = column.minus ? rows_of(trace, run, sequence.number, other,
                                                                     *column.minus, begin, end, tokens.steps)
                                                           : std::vector<double>(of.size(), 0.0);
            for (std::size_t i = 0; i < of.size(); ++i) {
                const double value = of[i] - minus[i];
                values[static_cast<std::size_t>(begin) + i + 1] = std::isfinite(value) ? value : not_a_number;
            }
        }
    }
    return made;
}

std::string difference_of_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                                 const RunInfo& run_b) {
    const std::vector<SequenceInfo> sequences_a = trace_a.sequences(run_a.id);
    const std::vector<SequenceInfo> sequences_b = trace_b.sequences(run_b.id);
    if (sequences_a.size() != sequences_b.size()) {
        return std::to_string(sequences_b.size()) + " sequences where that has " +
               std::to_string(sequences_a.size());
    }
    for (std::size_t s = 0; s < sequences_a.size(); ++s) {
        const std::int64_t length = sequences_a[s].tokens;
        if (length != sequences_b[s].tokens) {
            return std::to_string(sequences_b[s].tokens) + " tokens in sequence " + std::to_string(s) +
                   " where that has " + std::to_string(length);
        }
    }
    for (std::size_t s = 0; s < sequences_a.size(); ++s) {
        const std::int64_t length = sequences_a[s].tokens;
        for (std::int64_t begin = 0; begin < length; begin += slice_tokens) {
            const std::int64_t end = std::min(begin + slice_tokens, length);
            if (trace_a.tokens(run_a.id, sequences_a[s].number, begin, end).id !=
                trace_b.tokens(run_b.id, sequences_b[s].number, begin, end).id) {
                return "other tokens in sequence " + std::to_string(s);
            }
        }
    }
    return {};
}

void require_same_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                         const RunInfo& run_b) {
    if (const std::string found = difference_of_tokens(trace_a, run_a, trace_b, run_b); !found.empty()) {
        throw InputError(ErrorId::trace_signal, trace_b.path(),
                         "a run over the same tokens as \"" + run_a.name + "\"", found,
                         "compare runs of one text and one tokenizer");
    }
}

} // namespace ponderscope
