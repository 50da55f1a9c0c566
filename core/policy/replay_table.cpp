// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the columns of a replay table from a trace.
#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/checkpoint/method_info.h"
#include "core/policy/replay.h"
#include "core/stats/layout.h"
#include "core/trace/recorded_choices.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>

namespace ponderscope {
namespace {

/// Per-step signals of the recorder that no policy of policy_kinds() needs. They are loaded only on request
/// (\p also, \p only), unlike signals that a caller recorded.
constexpr std::string_view common_signals[] = {
    signal::max_probability, signal::rank,          signal::kl_current_previous,
    signal::state_norm,      signal::update_cosine, signal::halting_mass,
};

/// The model's own halting rule in a run, even if the run did not apply it.
struct RunRule {
    std::string signal;
    OwnRule::Form form = OwnRule::Form::value_at_k;
    OwnRule::Stops stops = OwnRule::Stops::below;
    double threshold = 0; ///< NaN: the rule never stops a token
};

/// The rule that the run itself describes, else the rule of its method. No value: the method is unknown or
/// has no rule.
std::optional<RunRule> own_rule(const RunInfo& run, const RecordedChoices& chosen) {
    if (chosen.rule) {
        return RunRule{chosen.rule->signal, OwnRule::Form::value_at_k,
                       chosen.rule->stops_below ? OwnRule::Stops::below : OwnRule::Stops::at_least,
                       chosen.rule->theta};
    }
    const MethodInfo* method = method_info(run.method);
    if (method == nullptr || method->own_rule.signal == nullptr) {
        return std::nullopt;
    }
    return RunRule{method->own_rule.signal, method->own_rule.form, method->own_rule.stops,
                   chosen.threshold.value_or(not_a_number)};
}

/// Writes row-major values [tokens, width] to columns. \p width is K instead of K + 1 for a signal without a
/// value at the last step.
void transpose(const std::vector<float>& values, std::size_t width, SignalColumns& columns,
               PolicySignal signal, std::size_t first) {
    const std::size_t tokens = values.size() / width;
    const std::size_t steps = std::min(width, static_cast<std::size_t>(columns.max_steps()) + 1);
    for (std::size_t k = 0; k < steps; ++k) {
        float* to = columns.column(signal, static_cast<std::int64_t>(k)).data() + first;
        for (std::size_t i = 0; i < tokens; ++i) {
            to[i] = values[i * width + k];
        }
    }
}

/// Turns the recorded values into the numbers that the rule compares with tau after step k.
void apply(OwnRule::Form form, SignalColumns& columns) {
    const std::int64_t last = columns.max_steps();
    for (std::int64_t k = 0; k < last; ++k) {
        const std::span<float> now = columns.column(PolicySignal::continue_value, k);
        if (form == OwnRule::Form::product_up_to_k && k > 0) {
            const std::span<float> before = columns.column(PolicySignal::continue_value, k - 1);
            for (std::size_t i = 0; i < now.size(); ++i) {
                now[i] = before[i] * now[i]; // fp32 and the engine's order of products
            }
        }
    }
}

/// Reads the signals of a run into a table.
class TableReader {
public:
    TableReader(const TraceReader& trace, const RunInfo& run, const std::vector<PolicySignal>& only,
                const std::vector<PolicySignal>& also);
    [[nodiscard]] ReplayTable read(const ProgressSink& progress, const std::stop_token& stop);

private:
    struct Column {
        PolicySignal signal;
        std::string name;
    };
    /// Throws an InputError whose message begins with the run's name.
    [[noreturn]] void fail(const std::string& what) const;
    void check(const SignalChunk& chunk, const std::string& name) const;
    void choose_columns(const std::vector<PolicySignal>& only, const std::vector<PolicySignal>& also);
    void plan_costs();
    void read_sequence(const SequenceInfo& sequence, const std::function<void(std::int64_t tokens)>& done);

    const TraceReader& trace_;
    RunInfo run_;
    RecordedChoices chosen_; ///< with kv full, steps after the read-out are recorded, too
    ReplayTable table_;
    std::vector<Column> wanted_;
    OwnRule::Form form_ = OwnRule::Form::value_at_k;
};

TableReader::TableReader(const TraceReader& trace, const RunInfo& run, const std::vector<PolicySignal>& only,
                         const std::vector<PolicySignal>& also)
    : trace_(trace), run_(run), chosen_(recorded_choices(run)) {
    table_.run = trace.name_of(run);
    choose_columns(only, also);
    plan_costs();
}

void TableReader::fail(const std::string& what) const {
    throw InputError(ErrorId::run_unsuited, table_.run + ": " + what);
}

/// Sets the FLOPs model, if the trace has one that fits the run.
void TableReader::plan_costs() {
    std::optional<FlopsModel> flops = FlopsModel::from_json(run_.flops_model);
    if (flops && flops->layers_as_steps() == table_.layers_as_steps && flops->max_steps() == run_.max_steps &&
        run_.stride >= 1 && run_.stride <= run_.context) {
        table_.flops = std::move(flops);
    }
}

void TableReader::choose_columns(const std::vector<PolicySignal>& only,
                                 const std::vector<PolicySignal>& also) {
    std::vector<std::string>& names = table_.by_step;
    for (const SignalInfo& info : trace_.signal_infos(run_.id)) {
        if (info.is_by_step()) {
            names.push_back(info.name);
        }
    }
    const auto there = [&](std::string_view name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    const std::int64_t last = run_.max_steps;
    table_.layers_as_steps = run_.step_unit == "layer";
    if (last == 0 && run_.method == "vanilla") {
        fail("every token of this run has one step, so there is nothing to choose from; "
             "record the model with ponderscope record ... --record layers to compare exits "
             "over its layers, or take a run of a model that ponders.");
    }
    if (!there(signal::nll)) {
        fail("policies are replayed from the NLL at each step, which this trace lacks; "
             "record the run again with ponderscope record ... --record steps.");
    }
    if (last == 0) {
        fail("every token of this run has one step, so there is nothing to choose from; take a run of "
             "a model that ponders, recorded with ponderscope record ... --policy full.");
    }
    constexpr std::int64_t most_steps = 4096;
    if (last < 1 || last > most_steps) {
        fail("expected from 1 to " + std::to_string(most_steps) + " further steps, found " +
             std::to_string(last) + "; choose another run.");
    }
    const std::optional<RunRule> rule = own_rule(run_, chosen_);
    const auto in = [](const auto& list, const auto& one) {
        return std::find(std::begin(list), std::end(list), one) != std::end(list);
    };
    const auto asked = [&](PolicySignal signal) {
        return only.empty() || signal == PolicySignal::nll || in(only, signal);
    };
    for (const std::string& name : names) {
        const PolicySignal signal = policy_signal(name);
        const bool own = !in(common_signals, name) && !(rule && rule->signal == name);
        if (in(also, signal) || (asked(signal) && (!only.empty() || !is_named(signal) || own))) {
            wanted_.push_back({signal, name});
        }
    }
    if (rule) {
        table_.context.own_rule = rule->stops;
        table_.context.own_threshold = rule->threshold;
        if (chosen_.exit_step && !chosen_.rule) {
            table_.context.exit_step = std::min(*chosen_.exit_step, run_.max_steps);
        }
        if (there(rule->signal) && asked(PolicySignal::continue_value)) {
            wanted_.push_back({PolicySignal::continue_value, rule->signal});
            form_ = rule->form;
        }
    }
    // Check the first chunk of each signal before memory is allocated for all tokens.
    for (const Column& column : wanted_) {
        const std::optional<SignalChunk> probe =
            run_.sequences > 0 ? trace_.signal(run_.id, 0, column.name, 0, 1) : std::nullopt;
        if (probe) {
            check(*probe, column.name);
        }
    }
}

void TableReader::check(const SignalChunk& chunk, const std::string& name) const {
    const std::int64_t steps = run_.max_steps + 1;
    if (chunk.shape.size() != 2 || chunk.shape[1] > steps || chunk.shape[1] < steps - 1) {
        fail("expected signal " + name +
             " as tokens by steps, found another shape; the trace is damaged, record it again.");
    }
}

void TableReader::read_sequence(const SequenceInfo& sequence, const std::function<void(std::int64_t)>& done) {
    constexpr std::int64_t page = 1 << 16;
    const auto number = static_cast<std::uint32_t>(sequence.number);
    const auto length =
        static_cast<std::uint32_t>(std::max(chosen_.planned_length(sequence.number), sequence.tokens));
    const auto last = static_cast<std::int32_t>(run_.max_steps);
    for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
        const std::int64_t end = std::min(begin + page, sequence.tokens);
        const std::size_t first = table_.ran.size();
        const TokenColumns tokens = trace_.tokens(run_.id, sequence.number, begin, end);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            const std::int32_t steps = tokens.steps[i];
            if (steps > last) {
                fail("expected at most " + std::to_string(last) + " steps a token, found " +
                     std::to_string(steps) + "; the trace is damaged, record it again.");
            }
            table_.places.push_back(
                {number, static_cast<std::uint32_t>(begin) + static_cast<std::uint32_t>(i), length});
            table_.ran.push_back(chosen_.kv == "full" ? last : steps);
            table_.nll.push_back(tokens.nll[i]);
        }
        for (const Column& column : wanted_) {
            const std::optional<SignalChunk> chunk =
                trace_.signal(run_.id, sequence.number, column.name, begin, end);
            if (!chunk && is_named(column.signal)) { // a signal that a caller recorded may be missing
                for (std::int64_t k = 0; k <= last; ++k) {
                    const std::span<float> values = table_.columns.column(column.signal, k);
                    std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(first), end - begin,
                                std::numeric_limits<float>::quiet_NaN());
                }
                continue;
            }
            if (!chunk || chunk->first != begin || chunk->shape.empty() || chunk->shape[0] != end - begin) {
                fail("signal " + column.name + " lacks tokens of sequence " +
                     std::to_string(sequence.number) + "; the trace is damaged, record it again.");
            }
            check(*chunk, column.name);
            if (chunk->shape[1] > 0) {
                transpose(to_floats(*chunk), static_cast<std::size_t>(chunk->shape[1]), table_.columns,
                          column.signal, first);
            }
        }
        done(end - begin);
    }
    table_.sequences.push_back(sequence.tokens);
}

ReplayTable TableReader::read(const ProgressSink& progress, const std::stop_token& stop) {
    const std::vector<SequenceInfo> sequences = trace_.sequences(run_.id);
    std::size_t total = 0;
    for (const SequenceInfo& sequence : sequences) {
        if (sequence.tokens > std::numeric_limits<std::uint32_t>::max()) {
            fail("expected sequences of fewer than 2^32 tokens, found a sequence of " +
                 std::to_string(sequence.tokens) + " tokens; record the text in parts.");
        }
        total += static_cast<std::size_t>(sequence.tokens);
    }
    table_.columns = SignalColumns(run_.max_steps, total);
    for (const Column& column : wanted_) {
        table_.columns.add(column.signal);
    }
    table_.places.reserve(total);
    table_.ran.reserve(total);
    table_.nll.reserve(total);
    std::int64_t read = 0;
    ClusterNumbers clusters;
    for (const SequenceInfo& sequence : sequences) {
        read_sequence(sequence, [&](std::int64_t tokens) {
            throw_if_stopped(stop);
            read += tokens;
            report_progress(progress, {"reading", read, run_.tokens, "tokens"});
        });
        table_.clusters.push_back(clusters.of(sequence));
        if (table_.flops) {
            table_.windows.push_back(plan_windows(sequence.tokens, run_.context, run_.stride));
        }
    }
    if (table_.columns.has(PolicySignal::continue_value)) {
        apply(form_, table_.columns);
    }
    return std::move(table_);
}

} // namespace

ReplayTable ReplayTable::load(const TraceReader& trace, const RunInfo& run, const ProgressSink& progress,
                              const std::stop_token& stop, const std::vector<PolicySignal>& also,
                              const std::vector<PolicySignal>& only) {
    ReplayTable table = TableReader(trace, run, only, also).read(progress, stop);
    if (std::all_of(table.nll.begin(), table.nll.end(), [](float nll) { return std::isnan(nll); })) {
        throw InputError(
            ErrorId::run_unscored,
            table.run +
                ": expected tokens with a next token, found none; wait until the recording has more tokens.");
    }
    table.finish();
    return table;
}

} // namespace ponderscope
