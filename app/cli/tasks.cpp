// SPDX-License-Identifier: GPL-3.0-or-later
// Accuracy on recorded tasks beside what it cost.
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/progress_option.h"
#include "app/cli/report.h"
#include "app/cli/task_tables.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/trace/reader.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <iostream>
#include <memory>
#include <utility>

namespace ponderscope::cli {
namespace {

struct TasksVerb {
    std::vector<std::string> references;
    IntervalOptions intervals;
    ProgressOption progress;
    bool list = false;
    bool json = false;
    bool latex = false;

    void run();
    void print(const TaskedRun& run, const TaskedRun& first) const;
};

std::string percent(const Estimate& estimate) {
    if (std::isnan(estimate.value)) {
        return "-";
    }
    return fixed(100 * estimate.value, 1) + " % [" + fixed(100 * estimate.low, 1) + ", " +
           fixed(100 * estimate.high, 1) + "]";
}

/// "3, 17, 20" of documents, each with the first sequence that it is in.
std::string names_of_documents(const TaskSample& sample, const std::vector<std::size_t>& documents) {
    std::string text;
    for (const std::size_t d : documents) {
        text += (text.empty() ? "" : ", ") + visible(sample.documents[d].name);
    }
    return text;
}

nlohmann::json json_of_documents(const TaskSample& sample, const std::vector<std::size_t>& documents) {
    nlohmann::json list = nlohmann::json::array();
    for (const std::size_t d : documents) {
        list.push_back({{"document", sample.documents[d].name},
                        {"sequence", sample.documents[d].options.front().sequence}});
    }
    return list;
}

nlohmann::json json_of_task(const TaskSample& sample, const TaskReport& report) {
    nlohmann::json steps = nlohmann::json::array();
    for (std::size_t k = 0; k < report.accuracy_by_step.size(); ++k) {
        steps.push_back({{"step", k},
                         {"accuracy", json_of(report.accuracy_by_step[k])},
                         {"became_right", json_of_documents(sample, report.flips[k].became_right)},
                         {"became_wrong", json_of_documents(sample, report.flips[k].became_wrong)}});
    }
    return {{"task", report.task},
            {"documents", report.documents},
            {"acc", json_of(report.accuracy)},
            {"acc_norm", json_of(report.accuracy_norm)},
            {"perplexity", json_of(report.perplexity)},
            {"steps", json_of(report.steps)},
            {"context_steps", json_of(report.context_steps)},
            {"right_steps", json_of(report.right_steps)},
            {"wrong_steps", json_of(report.wrong_steps)},
            {"flops", json_of(report.flops)},
            {"by_step", std::move(steps)}};
}

nlohmann::json json_of_pair(const TaskSample& first, const TaskComparison& pair) {
    const Flips& flips = pair.flips;
    return {{"documents", flips.tokens},
            {"both_right", flips.both_right},
            {"only_a_right", json_of_documents(first, pair.only_a)},
            {"only_b_right", json_of_documents(first, pair.only_b)},
            {"both_wrong", flips.both_wrong},
            {"difference", json_of(flips.difference)},
            {"mcnemar_p", number_or_null(flips.mcnemar)}};
}

void TasksVerb::print(const TaskedRun& run, const TaskedRun& first) const {
    for (std::size_t t = 0; t < run.samples.size(); ++t) {
        const TaskSample& sample = run.samples[t];
        const TaskReport& report = run.reports[t];
        const auto line = [](const std::string& name, const std::string& value) {
            std::cout << "   " << padded(name, 24) << value << "\n";
        };
        std::cout << "   " << visible(report.task) << ": " << with_separators(report.documents)
                  << " documents\n";
        line("  accuracy", percent(report.accuracy));
        if (sample.has_options()) {
            line("  accuracy by length", percent(report.accuracy_norm));
        }
        line("  perplexity, right", interval(report.perplexity, 2));
        line("  steps", interval(report.steps, 3));
        line("    contexts", interval(report.context_steps, 3));
        line("    right options", interval(report.right_steps, 3));
        if (!std::isnan(report.wrong_steps.value)) {
            line("    wrong options", interval(report.wrong_steps, 3));
        }
        line("  FLOPs a document", interval(report.flops, 0));
        for (std::size_t k = 0; k < report.accuracy_by_step.size(); ++k) {
            const StepFlips& flips = report.flips[k];
            line("  accuracy at step " + std::to_string(k),
                 percent(report.accuracy_by_step[k]) +
                     (k == 0 ? ""
                             : ", became right " + std::to_string(flips.became_right.size()) + ", wrong " +
                                   std::to_string(flips.became_wrong.size())));
            if (list && !flips.became_right.empty()) {
                line("    became right", names_of_documents(sample, flips.became_right));
            }
            if (list && !flips.became_wrong.empty()) {
                line("    became wrong", names_of_documents(sample, flips.became_wrong));
            }
        }
        const TaskSample* const other = &run == &first ? nullptr : first.find(report.task);
        if (other == nullptr) {
            continue;
        }
        const TaskComparison pair = compare_task(*other, sample, intervals.bootstrap);
        line("  accuracy, A - B", percent(pair.flips.difference) + ", McNemar p " +
                                      fixed(pair.flips.mcnemar, 4) + "; only A right " +
                                      std::to_string(pair.flips.only_a) + ", only B right " +
                                      std::to_string(pair.flips.only_b));
        if (list) {
            line("    only A right", names_of_documents(*other, pair.only_a));
            line("    only B right", names_of_documents(*other, pair.only_b));
        }
    }
}

void TasksVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    const std::vector<TaskedRun> runs = read_tasked_runs(references, intervals.bootstrap);
    printer.finish();
    if (latex) {
        std::cout << latex_tables(runs);
        return;
    }
    if (runs.front().samples.empty()) {
        throw InputError(runs.front().reference,
                         "a run with tasks (groups TASK/DOCUMENT, labels right N and wrong N)", "none",
                         "record one with ponderscope score or lm-evaluation-harness");
    }
    nlohmann::json all = nlohmann::json::array();
    for (const TaskedRun& run : runs) {
        if (!json) {
            std::cout << (runs.size() == 1        ? ""
                          : &run == &runs.front() ? "A  "
                                                  : "B  ")
                      << visible(run.reference) << "\n";
            print(run, runs.front());
            continue;
        }
        nlohmann::json tasks = nlohmann::json::array();
        for (std::size_t t = 0; t < run.samples.size(); ++t) {
            tasks.push_back(json_of_task(run.samples[t], run.reports[t]));
            const TaskSample* const other =
                &run == &runs.front() ? nullptr : runs.front().find(run.samples[t].task);
            if (other != nullptr) {
                tasks.back()["against_first"] =
                    json_of_pair(*other, compare_task(*other, run.samples[t], intervals.bootstrap));
            }
        }
        all.push_back({{"run", run.reference}, {"policy", run.run.policy}, {"tasks", std::move(tasks)}});
    }
    if (json) {
        const nlohmann::json report{{"runs", std::move(all)}, {"level", intervals.bootstrap.level}};
        std::cout << report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        return;
    }
    std::cout
        << fixed(100 * intervals.bootstrap.level, 0)
        << " % intervals over documents. Accuracy at step k: every token read out at step k of this run.\n";
}

} // namespace

void add_tasks(CLI::App& program) {
    auto verb = std::make_shared<TasksVerb>();
    CLI::App* app = add_verb(program, "tasks");
    app->add_option("run", verb->references,
                    "TRACE.ponder#RUN, or TRACE.ponder for all its runs; the first is compared with each of "
                    "the others")
        ->required();
    app->add_flag("--list", verb->list, "List the documents whose answer changed");
    app->add_flag("--latex", verb->latex,
                  "Print two LaTeX tables: perplexity of runs over texts, accuracy of runs over tasks");
    verb->intervals.add_to(*app);
    verb->progress.add_to(*app);
    app->add_flag("--json", verb->json, "Print the result as JSON");
    app->footer("Example:\n  ponderscope tasks out.ponder#full out.ponder#entropy --list");
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
