// SPDX-License-Identifier: GPL-3.0-or-later
// `tasks`: accuracy on recorded tasks, with its cost.
#include "core/stats/tasks.h"
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/stats/data_table.h"
#include "core/stats/paired.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>

namespace ponderscope::cli {
namespace {

/// A run with its tasks. A run without tasks has the estimates of its text instead.
struct TaskedRun {
    std::string reference; ///< TRACE#RUN
    RunInfo run;
    std::vector<TaskSample> samples;
    std::vector<TaskReport> reports;
    std::optional<RunEstimate> text;
    [[nodiscard]] const TaskSample* find(const std::string& task) const { ///< nullptr: none
        const auto found = std::ranges::find(samples, task, &TaskSample::task);
        return found == samples.end() ? nullptr : &*found;
    }
};

struct TasksVerb : ReportOptions {
    std::vector<std::string> references;
    bool list = false;
    bool latex = false;

    void run();
    void print(const TaskedRun& run, const TaskedRun& first) const;
};

std::vector<TaskedRun> read_tasked_runs(const std::vector<std::string>& references,
                                        const BootstrapOptions& options) {
    std::vector<TaskedRun> all;
    for (const OpenedRun& opened : open_runs(references)) {
        TaskedRun& one = all.emplace_back(TaskedRun{opened.reference, opened.run, {}, {}, {}});
        one.samples = read_tasks(*opened.reader, one.run, options.stop);
        for (const TaskSample& sample : one.samples) {
            one.reports.push_back(report_task(sample, options));
        }
        if (one.samples.empty() && one.run.scored_tokens > 0) {
            one.text = estimate_run(*opened.reader, one.run, options);
        }
    }
    if (all.empty()) {
        throw InputError(ErrorId::trace_run, references.front(), "a trace with a run", "a trace without runs",
                         "record a run into it");
    }
    return all;
}

/// A task in one row.
DataTable numbers_of(const TaskSample& sample, const TaskReport& report) {
    using enum CellFormat;
    DataTable row;
    row.add({"task", "", text}, report.task);
    row.add({"documents", "documents", count}, report.documents);
    row.add({"acc", "accuracy", share, 1}, report.accuracy);
    row.add({"acc_norm", sample.has_options() ? "accuracy by length" : "", share, 1}, report.accuracy_norm);
    row.add({"perplexity", "perplexity, right", number, 2}, report.perplexity);
    row.add({"steps", "steps", number, 3}, report.steps);
    row.add({"context_steps", "  contexts", number, 3}, report.context_steps);
    row.add({"right_steps", "  right options", number, 3}, report.right_steps);
    row.add({"wrong_steps", "  wrong options", number, 3}, report.wrong_steps);
    row.add({"flops", "FLOPs a document", number, 0}, report.flops);
    return row;
}

DataTable steps_of(const TaskReport& report) {
    using enum CellFormat;
    DataTable table{{},
                    {{"step", "read out at step", count},
                     {"accuracy", "accuracy", share, 1},
                     {"", "became right", count},
                     {"", "became wrong", count}},
                    {}};
    for (std::size_t k = 0; k < report.accuracy_by_step.size(); ++k) {
        table.rows.push_back({static_cast<std::int64_t>(k), report.accuracy_by_step[k],
                              static_cast<std::int64_t>(report.flips[k].became_right.size()),
                              static_cast<std::int64_t>(report.flips[k].became_wrong.size())});
    }
    return table;
}

/// The comparison of two runs on their common documents, as one row.
DataTable pair_row(const TaskComparison& pair) {
    using enum CellFormat;
    DataTable row;
    row.add({"documents", "", count}, pair.flips.tokens);
    row.add({"difference", "accuracy, A - B", share, 1}, pair.flips.difference);
    row.add({"mcnemar_p", "  McNemar p", p}, pair.flips.mcnemar);
    row.add({"both_right", "", count}, pair.flips.both_right);
    row.add({"both_wrong", "", count}, pair.flips.both_wrong);
    row.add({"", "  only A right", count}, pair.flips.only_a);
    row.add({"", "  only B right", count}, pair.flips.only_b);
    return row;
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
    nlohmann::json task = json_of(numbers_of(sample, report)).front();
    nlohmann::json& steps = task["by_step"] = json_of(steps_of(report));
    for (std::size_t k = 0; k < steps.size(); ++k) {
        steps[k]["became_right"] = json_of_documents(sample, report.flips[k].became_right);
        steps[k]["became_wrong"] = json_of_documents(sample, report.flips[k].became_wrong);
    }
    return task;
}

nlohmann::json json_of_pair(const TaskSample& first, const TaskComparison& pair) {
    nlohmann::json row = json_of(pair_row(pair)).front();
    row["only_a_right"] = json_of_documents(first, pair.only_a);
    row["only_b_right"] = json_of_documents(first, pair.only_b);
    return row;
}

/// Prints "   only A right: 3, 17, 20", if there are documents.
void print_documents(const std::string& title, const TaskSample& sample,
                     const std::vector<std::size_t>& documents) {
    for (const std::size_t& d : documents) {
        std::cout << (&d == &documents.front() ? "   " + title + ": " : ", ")
                  << visible(sample.documents[d].name);
    }
    std::cout << (documents.empty() ? "" : "\n");
}

void TasksVerb::print(const TaskedRun& run, const TaskedRun& first) const {
    for (std::size_t t = 0; t < run.samples.size(); ++t) {
        const TaskSample& sample = run.samples[t];
        const TaskReport& report = run.reports[t];
        std::cout << "   " << visible(report.task) << "\n" << list_of(numbers_of(sample, report), 0, "   ");
        if (!report.accuracy_by_step.empty()) {
            std::cout << text_of(steps_of(report));
        }
        for (std::size_t k = 0; list && k < report.flips.size(); ++k) {
            print_documents("became right at step " + std::to_string(k), sample,
                            report.flips[k].became_right);
            print_documents("became wrong at step " + std::to_string(k), sample,
                            report.flips[k].became_wrong);
        }
        if (const TaskSample* other = &run == &first ? nullptr : first.find(report.task)) {
            const TaskComparison pair = compare_task(*other, sample, intervals.bootstrap);
            std::cout << list_of(pair_row(pair), 0, "   ");
            if (list) {
                print_documents("only A right", *other, pair.only_a);
                print_documents("only B right", *other, pair.only_b);
            }
        }
    }
}

/// Two tables with booktabs: perplexity, steps and FLOPs of runs over texts; accuracy by task, steps and
/// FLOPs of runs over tasks. A table without rows is left out.
std::string latex_tables(const std::vector<TaskedRun>& runs) {
    using enum CellFormat;
    DataTable texts{{},
                    {{"", "Run", text},
                     {"", "Policy", text},
                     {"", "Perplexity", number, 2},
                     {"", "Steps", number, 2},
                     {"", "FLOPs", si}},
                    {}};
    DataTable tasks{{}, {{"", "Run", text}, {"", "Policy", text}}, {}};
    for (const TaskedRun& run : runs) {
        for (const TaskSample& sample : run.samples) {
            if (std::ranges::find(tasks.columns, sample.task, &TableColumn::title) == tasks.columns.end()) {
                tasks.columns.push_back({"", sample.task, share, 1});
            }
        }
        if (run.text) {
            texts.rows.push_back(
                {run.run.name, run.run.policy, run.text->perplexity, run.text->mean_steps,
                 run.run.flops_sum / static_cast<double>(std::max<std::int64_t>(run.run.tokens, 1))});
        }
    }
    const std::size_t last = tasks.columns.size();
    tasks.columns.push_back({"", "Steps", number, 2});
    tasks.columns.push_back({"", "FLOPs", si});
    for (const TaskedRun& run : runs) {
        if (run.samples.empty()) {
            continue;
        }
        std::vector<Cell> row{run.run.name, run.run.policy};
        for (std::size_t c = row.size(); c < last; ++c) {
            const TaskSample* sample = run.find(tasks.columns[c].title);
            row.push_back(
                sample == nullptr
                    ? Cell()
                    : Cell(run.reports[static_cast<std::size_t>(sample - run.samples.data())].accuracy));
        }
        TaskPart all;
        double documents = 0;
        const auto add = [&all](const TaskPart& part) {
            all.steps += part.steps;
            all.flops += part.flops;
            all.tokens += part.tokens;
        };
        for (const TaskSample& sample : run.samples) {
            for (const TaskDocument& document : sample.documents) {
                add(document.context);
                for (const TaskOption& option : document.options) {
                    add(option.part);
                }
                ++documents;
            }
        }
        row.emplace_back(all.steps / static_cast<double>(all.tokens));
        row.emplace_back(all.flops / documents);
        tasks.rows.push_back(std::move(row));
    }
    return (texts.rows.empty() ? "" : "% Perplexity, mean steps and FLOPs a token.\n" + latex_of(texts)) +
           (tasks.rows.empty() ? "" : "% Accuracy, mean steps and FLOPs a document.\n" + latex_of(tasks));
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
        throw InputError(ErrorId::run_unsuited, runs.front().reference,
                         "a run with tasks (groups TASK/DOCUMENT, labels right N and wrong N)",
                         "a run without tasks",
                         "record the tasks with ponderscope score or lm-evaluation-harness");
    }
    nlohmann::json all = nlohmann::json::array();
    for (const TaskedRun& run : runs) {
        const bool is_first = &run == &runs.front();
        if (!json) {
            std::cout << (runs.size() == 1 ? "" : is_first ? "A  " : "B  ") << visible(run.reference) << "\n";
            print(run, runs.front());
            continue;
        }
        nlohmann::json tasks = nlohmann::json::array();
        for (std::size_t t = 0; t < run.samples.size(); ++t) {
            tasks.push_back(json_of_task(run.samples[t], run.reports[t]));
            if (const TaskSample* other = is_first ? nullptr : runs.front().find(run.samples[t].task)) {
                tasks.back()["against_first"] =
                    json_of_pair(*other, compare_task(*other, run.samples[t], intervals.bootstrap));
            }
        }
        all.push_back({{"run", run.reference}, {"policy", run.run.policy}, {"tasks", std::move(tasks)}});
    }
    if (json) {
        print_json({{"runs", std::move(all)}, {"level", intervals.bootstrap.level}});
        return;
    }
    std::cout
        << fixed(100 * intervals.bootstrap.level, 0)
        << " % intervals over documents. Accuracy at step k: every token read out at step k of this run.\n";
}

} // namespace

void add_tasks(CLI::App& program) {
    auto [app, verb] = add_verb<TasksVerb>(program, "tasks");
    app.add_option("run", verb.references,
                   "TRACE.ponder#RUN, or TRACE.ponder for all its runs; the first is compared with each of "
                   "the others")
        ->required();
    app.add_flag("--list", verb.list, "List the documents whose answer changed");
    app.add_flag("--latex", verb.latex,
                 "Print two LaTeX tables: perplexity of runs over texts, accuracy of runs over tasks");
    verb.add_to(app);
    app.footer("Example:\n  ponderscope tasks out.ponder#full out.ponder#entropy --list");
}

} // namespace ponderscope::cli
