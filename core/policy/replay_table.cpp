// SPDX-License-Identifier: GPL-3.0-or-later
// From a trace to columns.
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/checkpoint/method_info.h"
#include "core/policy/replay.h"
#include "core/stats/layout.h"
#include "core/trace/recorded_choices.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

/// Where a column comes from: a signal over (token, step).
struct Source {
    PolicySignal signal;
    const char* name;
};
constexpr Source sources[] = {
    {PolicySignal::nll, signal::nll},
    {PolicySignal::entropy, signal::entropy},
    {PolicySignal::margin, signal::margin},
    {PolicySignal::argmax, signal::argmax},
    {PolicySignal::kl, signal::kl_previous_current},
    {PolicySignal::cosine, signal::cosine},
    {PolicySignal::latent, signal::latent_difference},
    {PolicySignal::acceleration, signal::acceleration},
};

/// The rule of the run's own method; nullptr where it has none, or this build does not know it.
const OwnRule* own_rule(const RunInfo& run) {
    const MethodInfo* method = method_info(run.method);
    return method != nullptr && method->own_rule.signal != nullptr ? &method->own_rule : nullptr;
}

/// tau as the run says it, in earlier traces as config.json has it; NaN for a method that does not halt. The
/// recorder checked the file; here it is a stranger's text.
double own_threshold(const RunInfo& run) {
    if (own_rule(run) == nullptr) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (const auto threshold = recorded_choices(run).threshold) {
        return *threshold;
    }
    const nlohmann::json config = nlohmann::json::parse(run.config, nullptr, /*allow_exceptions=*/false);
    if (config.is_object() && config.contains("pondering") && config["pondering"].is_object()) {
        const nlohmann::json& section = config["pondering"];
        const auto found = section.find("threshold");
        if (found != section.end() && found->is_number()) {
            return found->get<double>();
        }
    }
    return 1e-4;
}

/// [tokens, width] row-major into columns; \p width may be K where nothing is asked after the last step.
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

/// From what was recorded to what is compared with tau after step k.
void apply(OwnRule::Form form, SignalColumns& columns) {
    const std::int64_t last = columns.max_steps();
    for (std::int64_t k = 0; k < last; ++k) {
        const std::span<float> now = columns.column(PolicySignal::continue_value, k);
        if (form == OwnRule::Form::product_up_to_k && k > 0) {
            const std::span<float> before = columns.column(PolicySignal::continue_value, k - 1);
            for (std::size_t i = 0; i < now.size(); ++i) {
                now[i] = before[i] * now[i]; // fp32, in the order in which the engine multiplies
            }
        }
    }
}

class Loader {
public:
    Loader(const TraceReader& trace, const RunInfo& run, const ProgressSink& progress,
           const std::stop_token& stop)
        : trace_(trace), run_(run), progress_(progress), stop_(stop) {
        table_.run = trace.path().string() + "#" + run.name;
    }

    ReplayTable load() {
        const std::vector<SequenceInfo> sequences = trace_.sequences(run_.id);
        std::size_t total = 0;
        for (const SequenceInfo& sequence : sequences) {
            if (sequence.tokens > std::numeric_limits<std::uint32_t>::max()) {
                throw InputError(table_.run +
                                 ": expected sequences of fewer than 2^32 tokens, found one of " +
                                 std::to_string(sequence.tokens) + ".");
            }
            total += static_cast<std::size_t>(sequence.tokens);
        }
        choose_columns(total);
        // Where an exit only chose the read-out, the steps behind it are there as well.
        all_ran_ = recorded_choices(run_).kv == "full";
        table_.places.reserve(total);
        table_.ran.reserve(total);
        table_.nll.reserve(total);
        std::int64_t read = 0;
        for (const SequenceInfo& sequence : sequences) {
            read_sequence(sequence, read);
        }
        if (table_.columns.has(PolicySignal::continue_value)) {
            apply(form_, table_.columns);
        }
        table_.context.own_threshold = own_threshold(run_);
        plan_costs(sequences);
        if (std::all_of(table_.nll.begin(), table_.nll.end(), [](float nll) { return std::isnan(nll); })) {
            throw InputError(
                table_.run +
                ": expected tokens with a next token, found none; let the recording get further.");
        }
        table_.finish();
        return std::move(table_);
    }

private:
    struct Column {
        PolicySignal signal;
        std::string name;
    };

    [[noreturn]] void misshapen(const std::string& name) const {
        throw InputError(table_.run + ": expected signal " + name +
                         " as tokens by steps, found another shape; "
                         "the trace is damaged, record it again.");
    }

    /// What steps cost, if the trace says it of a run like this one.
    void plan_costs(const std::vector<SequenceInfo>& sequences) {
        std::optional<FlopsModel> flops = FlopsModel::from_json(run_.flops_model);
        if (!flops || flops->layers_as_steps() != table_.layers_as_steps ||
            flops->max_steps() != table_.columns.max_steps() || run_.stride < 1 ||
            run_.stride > run_.context) {
            return;
        }
        table_.flops = std::move(flops);
        for (const SequenceInfo& sequence : sequences) {
            table_.windows.push_back(plan_windows(sequence.tokens, run_.context, run_.stride));
        }
    }

    void choose_columns(std::size_t tokens) {
        std::vector<std::string> names;
        for (const SignalInfo& info : trace_.signals(run_.id)) {
            names.push_back(info.name);
        }
        const auto there = [&](const char* name) {
            return std::find(names.begin(), names.end(), name) != names.end();
        };
        const std::int64_t last = run_.max_steps;
        table_.layers_as_steps = run_.step_unit == "layer";
        if (last == 0 && run_.method == "vanilla") {
            throw InputError(table_.run +
                             ": every token of this run has one step, so there is nothing to choose from; "
                             "record the model with ponderscope record ... --record layers to compare exits "
                             "over its layers, or take a run of a model that ponders.");
        }
        if (!there(signal::nll)) {
            throw InputError(table_.run +
                             ": policies are replayed from the NLL at each step, which this trace lacks; "
                             "record the run again with ponderscope record ... --record steps.");
        } else if (last == 0) {
            throw InputError(
                table_.run +
                ": every token of this run has one step, so there is nothing to choose from; take a run of "
                "a model that ponders, recorded with ponderscope record ... --policy full.");
        }
        constexpr std::int64_t most_steps = 4096;
        if (last < 1 || last > most_steps) {
            throw InputError(table_.run + ": expected from 1 to " + std::to_string(most_steps) +
                             " further steps, found " + std::to_string(last) + ".");
        }
        table_.columns = SignalColumns(last, tokens);
        for (const Source& source : sources) {
            if (there(source.name)) {
                wanted_.push_back({source.signal, source.name});
            }
        }
        if (const OwnRule* rule = own_rule(run_); rule != nullptr && there(rule->signal)) {
            wanted_.push_back({PolicySignal::continue_value, rule->signal});
            form_ = rule->form;
            table_.context.own_rule = rule->stops;
        }
        // Memory only for signals whose first chunk has the size that was promised.
        for (const Column& column : wanted_) {
            const std::optional<SignalChunk> probe =
                run_.sequences > 0 ? trace_.signal(run_.id, 0, column.name, 0, 1) : std::nullopt;
            if (probe) {
                check(*probe, column.name);
            }
            table_.columns.add(column.signal);
        }
    }

    void check(const SignalChunk& chunk, const std::string& name) const {
        const std::int64_t steps = table_.columns.max_steps() + 1;
        if (chunk.shape.size() != 2 || chunk.shape[1] > steps || chunk.shape[1] < steps - 1) {
            misshapen(name);
        }
    }

    void read_sequence(const SequenceInfo& sequence, std::int64_t& read) {
        constexpr std::int64_t page = 1 << 16;
        const auto number = static_cast<std::uint32_t>(sequence.index);
        const auto length = static_cast<std::uint32_t>(sequence.tokens);
        const std::int32_t last = static_cast<std::int32_t>(table_.columns.max_steps());
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
            if (stop_.stop_requested()) {
                throw Cancelled();
            }
            const std::int64_t end = std::min(begin + page, sequence.tokens);
            const std::size_t first = table_.ran.size();
            const TokenColumns tokens = trace_.tokens(run_.id, sequence.index, begin, end);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                const std::int32_t steps = tokens.steps[i];
                if (steps > last) {
                    throw InputError(table_.run + ": expected at most " + std::to_string(last) +
                                     " steps a token, found " + std::to_string(steps) +
                                     "; the trace is damaged, record it again.");
                }
                table_.places.push_back(
                    {number, static_cast<std::uint32_t>(begin) + static_cast<std::uint32_t>(i), length});
                table_.ran.push_back(all_ran_ ? last : steps);
                table_.nll.push_back(tokens.nll[i]);
            }
            for (const Column& column : wanted_) {
                const std::optional<SignalChunk> chunk =
                    trace_.signal(run_.id, sequence.index, column.name, begin, end);
                if (!chunk || chunk->first != begin || chunk->shape.empty() ||
                    chunk->shape[0] != end - begin) {
                    throw InputError(table_.run + ": signal " + column.name + " lacks tokens of sequence " +
                                     std::to_string(sequence.index) +
                                     "; the trace is damaged, record it again.");
                }
                check(*chunk, column.name);
                if (chunk->shape[1] > 0) {
                    transpose(to_floats(*chunk), static_cast<std::size_t>(chunk->shape[1]), table_.columns,
                              column.signal, first);
                }
            }
            read += end - begin;
            if (progress_) {
                progress_({"reading", read, run_.tokens, "tokens"});
            }
        }
        table_.sequences.push_back(sequence.tokens);
        table_.clusters.push_back(clusters_.of(sequence));
    }

    const TraceReader& trace_;
    const RunInfo& run_;
    const ProgressSink& progress_;
    const std::stop_token& stop_;
    ReplayTable table_;
    std::vector<Column> wanted_;
    ClusterNumbers clusters_;
    OwnRule::Form form_ = OwnRule::Form::value_at_k;
    bool all_ran_ = false;
};

} // namespace

ReplayTable ReplayTable::load(const TraceReader& trace, const RunInfo& run, const ProgressSink& progress,
                              const std::stop_token& stop) {
    return Loader(trace, run, progress, stop).load();
}

} // namespace ponderscope
