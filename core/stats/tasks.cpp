// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/tasks.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/stats/paired.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace ponderscope {
namespace {

constexpr std::string_view right_label = "right ";
constexpr std::string_view wrong_label = "wrong ";

/// The label of an option, and the byte of the text where the option begins.
struct OptionLabel {
    bool right = false;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

void add_row(TaskPart& part, const TokenColumns& tokens, std::size_t row) {
    part.steps += tokens.steps[row];
    part.flops += static_cast<double>(tokens.flops[row]);
    ++part.tokens;
}

/// A signal [tokens, K + 1], read at a given step, or at the last step of a token that stopped before.
class ByStep {
public:
    ByStep(const TraceReader& trace, const RunInfo& run, std::int64_t sequence, const char* name) {
        if (const auto chunk = trace.signal(run.id, sequence, name); chunk && chunk->shape.size() == 2) {
            steps_ = chunk->shape[1];
            values_ = to_doubles(*chunk);
        }
    }
    [[nodiscard]] std::int64_t steps() const { return steps_; }
    [[nodiscard]] double at(std::size_t row, std::int64_t k, std::int64_t ran) const {
        return values_[row * static_cast<std::size_t>(steps_) + static_cast<std::size_t>(std::min(k, ran))];
    }

private:
    std::int64_t steps_ = 0;
    std::vector<double> values_;
};

TaskOption read_option(const TraceReader& trace, const RunInfo& run, std::int64_t sequence,
                       const OptionLabel& label, TaskPart& context) {
    TaskOption option;
    option.sequence = sequence;
    option.right = label.right;
    const std::string text = trace.text(run.id, sequence);
    const std::string_view said = std::string_view(text).substr(label.begin, label.end - label.begin);
    const std::size_t begin = std::min(said.find_first_not_of(" \n\t"), said.size());
    option.characters = static_cast<double>(utf8_length(said.substr(begin)));
    const TokenColumns tokens = trace.tokens(run.id, sequence);
    const ByStep nll(trace, run, sequence, signal::nll);
    const ByStep rank(trace, run, sequence, signal::rank);
    option.nll_by_step.assign(static_cast<std::size_t>(nll.steps()), 0);
    option.greedy_by_step.assign(static_cast<std::size_t>(std::min(nll.steps(), rank.steps())), true);
    for (std::size_t row = 0; row + 1 < tokens.size(); ++row) {
        // Tokens that the tokenizer adds have no bytes. They belong to the context.
        if (tokens.begin[row + 1] < label.begin || tokens.end[row + 1] <= label.begin) {
            add_row(context, tokens, row);
            continue;
        }
        option.token = option.part.tokens == 0 ? static_cast<std::int64_t>(row) + 1 : option.token;
        add_row(option.part, tokens, row);
        option.nll += static_cast<double>(tokens.nll[row]);
        option.greedy = option.greedy && tokens.rank[row] == 1;
        for (std::size_t k = 0; k < option.nll_by_step.size(); ++k) {
            option.nll_by_step[k] += nll.at(row, static_cast<std::int64_t>(k), tokens.steps[row]);
        }
        for (std::size_t k = 0; k < option.greedy_by_step.size(); ++k) {
            option.greedy_by_step[k] = option.greedy_by_step[k] &&
                                       rank.at(row, static_cast<std::int64_t>(k), tokens.steps[row]) == 1;
        }
    }
    return option;
}

void require_documents(const std::string& task, std::size_t documents) {
    if (documents < 2) {
        throw InputError(ErrorId::stats_sample,
                         "Task " + task + ": expected at least two documents, found " +
                             std::to_string(documents) +
                             "; intervals are over documents, so record more of them.");
    }
}

} // namespace

bool TaskDocument::is_right(std::int64_t step, bool by_length) const {
    const auto at = static_cast<std::size_t>(std::max<std::int64_t>(step, 0));
    if (options.size() == 1) {
        return step < 0 ? options.front().greedy : options.front().greedy_by_step.at(at);
    }
    const TaskOption* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const TaskOption& option : options) {
        const double nll = step < 0 ? option.nll : option.nll_by_step.at(at);
        const double value = by_length ? nll / option.characters : nll;
        if (value < least) { // the first of equal values, like numpy's argmax
            least = value;
            best = &option;
        }
    }
    return best != nullptr && best->right;
}

bool TaskSample::has_options() const {
    return std::any_of(documents.begin(), documents.end(),
                       [](const TaskDocument& one) { return one.options.size() > 1; });
}

std::vector<TaskSample> read_tasks(const TraceReader& trace, const RunInfo& run,
                                   const std::stop_token& stop) {
    std::map<std::int64_t, OptionLabel> labels;
    for (const auto& [sequence, label] : trace.labels(run.id)) {
        const bool right = label.name.starts_with(right_label);
        if (right || label.name.starts_with(wrong_label)) {
            labels[sequence] = {right, label.begin, label.end};
        }
    }
    std::vector<TaskSample> samples;
    std::map<std::string, std::pair<std::size_t, std::size_t>> places; // by group: index of task and document
    std::map<std::string, std::size_t> tasks;
    for (const SequenceInfo& info : trace.sequences(run.id)) {
        throw_if_stopped(stop);
        const auto label = labels.find(info.number);
        const std::size_t slash = info.group.rfind('/');
        if (label == labels.end() || !info.complete || slash == std::string::npos) {
            continue;
        }
        auto place = places.find(info.group);
        if (place == places.end()) {
            const std::string task = info.group.substr(0, slash);
            const std::size_t at = tasks.emplace(task, samples.size()).first->second;
            if (at == samples.size()) {
                samples.push_back({task, run.max_steps, {}});
            }
            place = places.emplace(info.group, std::pair(at, samples[at].documents.size())).first;
            samples[at].documents.push_back({info.group.substr(slash + 1), {}, {}});
        }
        TaskSample& sample = samples[place->second.first];
        TaskDocument& document = sample.documents[place->second.second];
        TaskPart context;
        document.options.push_back(read_option(trace, run, info.number, label->second, context));
        if (document.options.size() == 1) {
            document.context = context;
        }
    }
    for (TaskSample& sample : samples) {
        const bool options = sample.has_options();
        for (const TaskDocument& document : sample.documents) {
            for (const TaskOption& option : document.options) {
                const std::size_t steps = options ? option.nll_by_step.size() : option.greedy_by_step.size();
                sample.max_steps = std::min(sample.max_steps, static_cast<std::int64_t>(steps) - 1);
            }
        }
    }
    return samples;
}

TaskReport report_task(const TaskSample& sample, const BootstrapOptions& given) {
    require_documents(sample.task, sample.documents.size());
    enum Column : std::size_t {
        right,
        by_length,
        nll,
        context,
        context_tokens,
        of_right,
        right_tokens,
        of_wrong,
        wrong_tokens,
        of_all,
        all_tokens,
        flops,
        first_step
    };
    const auto steps = static_cast<std::size_t>(sample.max_steps + 1);
    UnitSums units;
    units.width = first_step + steps;
    TaskReport report;
    report.task = sample.task;
    report.documents = static_cast<std::int64_t>(sample.documents.size());
    report.flips.resize(steps);
    for (std::size_t d = 0; d < sample.documents.size(); ++d) {
        const TaskDocument& document = sample.documents[d];
        std::vector<double> row(units.width, 0.0);
        row[right] = document.is_right();
        row[by_length] = document.is_right(-1, true);
        row[context] = document.context.steps;
        row[context_tokens] = static_cast<double>(document.context.tokens);
        row[of_all] = row[context];
        row[all_tokens] = row[context_tokens];
        row[flops] = document.context.flops;
        for (const TaskOption& option : document.options) {
            for (const Column part : {option.right ? of_right : of_wrong, of_all}) {
                row[part] += option.part.steps;
                row[part + 1] += static_cast<double>(option.part.tokens);
            }
            row[nll] += option.right ? option.nll : 0;
            row[flops] += option.part.flops;
        }
        bool before = false;
        for (std::size_t k = 0; k < steps; ++k) {
            const bool now = document.is_right(static_cast<std::int64_t>(k));
            row[first_step + k] = now;
            if (k > 0 && now != before) {
                (now ? report.flips[k].became_right : report.flips[k].became_wrong).push_back(d);
            }
            before = now;
        }
        units.sums.insert(units.sums.end(), row.begin(), row.end());
        units.tokens.push_back(1);
    }
    report.accuracy_by_step.resize(steps);
    std::vector<std::pair<Estimate*, Statistic>> wanted{
        {&report.accuracy, mean_of(right)},
        {&report.accuracy_norm, mean_of(by_length)},
        {&report.perplexity, sample.has_options() ? ratio_of(nll, right_tokens) : mean_of(nll)},
        {&report.context_steps, ratio_of(context, context_tokens)},
        {&report.right_steps, ratio_of(of_right, right_tokens)},
        {&report.wrong_steps, ratio_of(of_wrong, wrong_tokens)},
        {&report.steps, ratio_of(of_all, all_tokens)},
        {&report.flops, mean_of(flops)}};
    for (std::size_t k = 0; k < steps; ++k) {
        wanted.emplace_back(&report.accuracy_by_step[k], mean_of(first_step + k));
    }
    BootstrapOptions options = given;
    options.unit = ResamplingUnit::clusters;
    bootstrap(PrefixSums(std::move(units)), wanted, options);
    report.perplexity = exponential(report.perplexity);
    if (!sample.has_options()) {
        report.accuracy_norm = unknown_estimate;
    }
    return report;
}

TaskComparison compare_task(const TaskSample& a, const TaskSample& b, const BootstrapOptions& given) {
    std::map<std::string, const TaskDocument*> others;
    for (const TaskDocument& document : b.documents) {
        others[document.name] = &document;
    }
    TaskComparison comparison{a.task, {}, {}, {}};
    Flips& flips = comparison.flips;
    UnitSums units;
    units.width = 1;
    std::vector<double> differences;
    for (std::size_t d = 0; d < a.documents.size(); ++d) {
        const auto other = others.find(a.documents[d].name);
        if (other == others.end()) {
            continue;
        }
        const bool right_a = a.documents[d].is_right();
        const bool right_b = other->second->is_right();
        ++flips.tokens;
        ++(right_a ? (right_b ? flips.both_right : flips.only_a)
                   : (right_b ? flips.only_b : flips.both_wrong));
        if (right_a != right_b) {
            (right_a ? comparison.only_a : comparison.only_b).push_back(d);
        }
        units.sums.push_back(static_cast<double>(right_a) - static_cast<double>(right_b));
        units.tokens.push_back(1);
    }
    require_documents(a.task, units.units());
    differences = units.sums;
    BootstrapOptions options = given;
    options.unit = ResamplingUnit::clusters;
    bootstrap(PrefixSums(std::move(units)), {{&flips.difference, mean_of(0)}}, options);
    flips.p = sign_flip_p(differences);
    flips.mcnemar = mcnemar_p(flips.only_a, flips.only_b);
    return comparison;
}

} // namespace ponderscope
