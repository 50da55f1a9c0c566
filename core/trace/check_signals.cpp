// SPDX-License-Identifier: GPL-3.0-or-later
// TraceChecker: the table of signals and their packed values.
#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/trace/check_impl.h"
#include "core/trace/digests.h"
#include "core/trace/packed_values.h"
#include "core/trace/reader.h"
#include "core/trace/schema.h"
#include "core/trace/signal_sums.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace ponderscope {
namespace {

std::optional<std::vector<std::string>> axes_of(const std::string& text) {
    const nlohmann::json axes = nlohmann::json::parse(text, nullptr, false);
    if (!axes.is_array() || axes.empty()) {
        return std::nullopt;
    }
    std::vector<std::string> names;
    for (const nlohmann::json& axis : axes) {
        if (!axis.is_string() || !schema::is_name(axis.get<std::string>())) {
            return std::nullopt;
        }
        names.push_back(axis.get<std::string>());
    }
    return names.front() == "token" ? std::optional(names) : std::nullopt;
}

/// Whole numbers above 0; empty for anything else.
std::vector<std::int64_t> shape_of(const std::string& text) {
    const nlohmann::json shape = nlohmann::json::parse(text, nullptr, false);
    std::vector<std::int64_t> lengths;
    if (shape.is_array()) {
        for (const nlohmann::json& length : shape) {
            if (!length.is_number_unsigned() || length < 1 || length > (std::int64_t{1} << 40)) {
                return {};
            }
            lengths.push_back(length.get<std::int64_t>());
        }
    }
    return lengths;
}

/// Every method records these when a step is read out: what is behind a token's last step cannot be a value.
bool is_of_steps_that_ran(const std::string& name) {
    static const std::set<std::string> names{signal::nll,
                                             signal::entropy,
                                             signal::max_probability,
                                             signal::margin,
                                             signal::rank,
                                             signal::argmax,
                                             signal::kl_previous_current,
                                             signal::kl_current_previous,
                                             signal::cosine,
                                             signal::latent_difference,
                                             signal::candidate_ids,
                                             signal::candidate_probabilities,
                                             signal::state,
                                             signal::layer_entropy,
                                             signal::layer_argmax};
    return names.contains(name);
}

} // namespace

std::vector<TraceChecker::Signal> TraceChecker::check_signal_table(const Run& run) {
    std::vector<Signal> signals;
    Statement rows = database_.prepare("SELECT id, name, axes FROM signal WHERE run = ? ORDER BY id");
    rows.bind(1, run.id);
    while (rows.step()) {
        const std::string name = rows.text(1);
        const std::string place = run.place + ", signal " + printable(name, 60);
        if (!schema::is_name(name)) {
            fault(place, "its name is not made of letters, digits, _ . and -");
        }
        auto axes = axes_of(rows.text(2));
        if (!axes) {
            fault(place, "axes is " + printable(rows.text(2), 80) +
                             " and no JSON array of names that begins with token");
            continue;
        }
        signals.push_back({rows.integer(0), name, std::move(*axes)});
    }
    for (const Signal& signal : signals) {
        if (is_summed(signal.name)) {
            check_sums(run, signal);
        }
    }
    return signals;
}

/// Of a signal whose values are added up.
void TraceChecker::check_sums(const Run& run, const Signal& signal) {
    const std::string place = run.place + ", signal " + printable(signal.name, 60);
    Statement row = database_.prepare("SELECT shape, data, crc32 FROM signal_sum WHERE signal = ?");
    row.bind(1, signal.id);
    if (!row.step()) {
        return;
    }
    const std::optional<SignalSums> sums = SignalSums::from(row.text(0), row.blob(1), row.integer(2));
    if (!sums || sums->shape.size() + 1 != signal.axes.size()) {
        fault(place, "its sums have shape " + printable(row.text(0), 80) + " along " +
                         std::to_string(signal.axes.size() - 1) + " axes and " +
                         std::to_string(row.blob(1).size()) +
                         " bytes, which are not those that were written");
        return;
    }
    Statement tokens = database_.prepare("SELECT tokens FROM run WHERE id = ?");
    tokens.bind(1, run.id);
    const std::int64_t most = tokens.step() ? tokens.integer(0) : 0;
    if (std::any_of(sums->counts.begin(), sums->counts.end(),
                    [&](std::int64_t count) { return count < 0 || count > most; })) {
        fault(place, "its sums are of more values than the run has tokens");
    }
}

void TraceChecker::check_chunks(const Run& run, const Sequence& sequence, const Signal& signal,
                                const std::vector<std::int32_t>& steps) {
    const std::string place = sequence.place + ", signal " + printable(signal.name, 60);
    const bool trimmed = ends_in_zeros(signal.axes);
    Statement rows = database_.prepare("SELECT first_token, tokens, dtype, shape, length(data), data, crc32 "
                                       "FROM chunk WHERE sequence = ? AND signal = ? ORDER BY first_token");
    rows.bind(1, sequence.id).bind(2, signal.id);
    std::int64_t next = 0;
    std::optional<DType> known;
    std::vector<std::int64_t> known_shape;
    bool any = false;
    while (rows.step()) {
        any = true;
        if (stop_.stop_requested()) {
            throw Cancelled();
        }
        SignalChunk chunk;
        chunk.first = rows.integer(0);
        const std::int64_t tokens = rows.integer(1);
        const std::string where = place + ", chunk from token " + std::to_string(chunk.first);
        if (chunk.first != next) {
            fault(where, "token " + std::to_string(next) + " is due");
            return;
        }
        const std::optional<StoredType> type = stored_type_from_name(rows.text(2));
        if (!type) {
            fault(where, "dtype is \"" + printable(rows.text(2), 40) + "\"");
            return;
        }
        chunk.shape = shape_of(rows.text(3));
        if (chunk.shape.size() != signal.axes.size() || chunk.shape.front() != tokens) {
            fault(where, "shape is " + printable(rows.text(3), 80) + " for " + std::to_string(tokens) +
                             " tokens along " + std::to_string(signal.axes.size()) + " axes");
            return;
        }
        std::optional<SignalChunk> values = stored_chunk(rows.text(2), chunk.shape, rows.blob(5));
        if (!values) {
            fault(where, "data has " + std::to_string(rows.integer(4)) + " bytes and shape " + rows.text(3) +
                             " of " + rows.text(2) + " takes " +
                             (type->compressed ? "others than it expands to" : "another number"));
            return;
        }
        chunk.dtype = type->dtype;
        chunk.data = std::move(values->data);
        const std::vector<std::int64_t> one(chunk.shape.begin() + 1, chunk.shape.end() - (trimmed ? 1 : 0));
        if (known && (*known != chunk.dtype || known_shape != one)) {
            fault(where, "its type or shape is not that of the chunks before it");
            return;
        }
        known = chunk.dtype;
        known_shape = one;
        next += tokens;
        if (next > sequence.tokens) {
            break; // said below
        }
        check_digest(where, "its data is", digest_in(rows, 6), crc32_of(rows.blob(5)));
        check_values(run, where, signal, chunk, steps);
        ++result_.chunks;
    }
    if (any && next != sequence.tokens) {
        fault(place,
              "its chunks hold " + std::to_string(next) + " tokens of " + std::to_string(sequence.tokens));
    }
}

/// Whole numbers and NaN where steps ran and did not, and the words that candidates are.
void TraceChecker::check_values(const Run& run, const std::string& place, const Signal& signal,
                                const SignalChunk& chunk, const std::vector<std::int32_t>& steps) {
    const bool real = is_real(chunk.dtype);
    if (signal.axes.size() < 2 || signal.axes[1] != "step") {
        return;
    }
    const auto steps_there = chunk.shape[1];
    if (steps_there > run.max_steps + 1) {
        fault(place, "its axis step has " + std::to_string(steps_there) +
                         " places and the run's max_steps is " + std::to_string(run.max_steps));
        return;
    }
    const std::vector<double> values = to_doubles(chunk);
    const auto of_step = static_cast<std::int64_t>(values.size()) / (chunk.shape[0] * steps_there);
    // In what ends in zeros, the key that every slot has says it.
    const std::int64_t stride = ends_in_zeros(signal.axes) ? chunk.shape.back() : 1;
    const auto ran = [&](double value) { return real ? !std::isnan(value) : value != did_not_run; };
    const bool words = signal.name == signal::candidate_ids && !real;
    bool empty_behind = false;
    std::int64_t number_behind = -1; // the first token with one
    for (std::int64_t t = 0; t < chunk.shape[0]; ++t) {
        const auto token = static_cast<std::size_t>(chunk.first + t);
        const std::int64_t last = token < steps.size() && !run.all_ran ? steps[token] : run.max_steps;
        for (std::int64_t k = 0; k < steps_there; ++k) {
            for (std::int64_t i = 0; i < of_step; i += stride) {
                const double value = values[static_cast<std::size_t>((t * steps_there + k) * of_step + i)];
                const bool is_there = ran(value);
                if (words && k <= last && is_there) {
                    check_word(run, place, static_cast<std::int64_t>(value));
                }
                if (k <= last && !real && !is_there) {
                    fault(place, "token " + std::to_string(token) + " ran step " + std::to_string(k) +
                                     ", where its value says that it did not");
                    return;
                }
                if (k > last && is_there && number_behind < 0) {
                    number_behind = static_cast<std::int64_t>(token);
                }
                empty_behind = empty_behind || (k > last && !is_there);
            }
        }
    }
    // What a router says up front of all steps is a number everywhere.
    if (number_behind >= 0 && (empty_behind || is_of_steps_that_ran(signal.name))) {
        fault(place, "token " + std::to_string(number_behind) + " has a value behind its last step, where " +
                         (real ? "NaN" : "-1") + " is due");
    }
}

} // namespace ponderscope
