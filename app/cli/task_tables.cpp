// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/task_tables.h"

#include "app/cli/console.h"
#include "core/base/error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace ponderscope::cli {
namespace {

std::string latex_text(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
        if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) {
            escaped += '\\';
            escaped += c;
        } else if (c == '\\') {
            escaped += "\\textbackslash{}";
        } else if (c == '~' || c == '^') {
            escaped += std::string("\\") + c + "{}";
        } else {
            escaped += c;
        }
    }
    return escaped;
}

std::string with_interval(const Estimate& estimate, int decimals, double scale = 1) {
    return std::isnan(estimate.value) ? "--"
                                      : "$" + fixed(scale * estimate.value, decimals) + "\\,[" +
                                            fixed(scale * estimate.low, decimals) + ", " +
                                            fixed(scale * estimate.high, decimals) + "]$";
}

std::string power_of_ten(double value) {
    const int exponent = value > 0 ? static_cast<int>(std::floor(std::log10(value))) : 0;
    return "$" + fixed(value / std::pow(10.0, exponent), 2) + "\\cdot 10^{" + std::to_string(exponent) + "}$";
}

std::string table(const std::string& caption, const std::string& columns, const std::string& head,
                  const std::string& rows) {
    return "\\begin{table}\n\\caption{" + caption + "}\n\\begin{tabular}{" + columns + "}\n\\toprule\n" +
           head + " \\\\\n\\midrule\n" + rows + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

} // namespace

const TaskSample* TaskedRun::find(const std::string& task) const {
    const auto found = std::find_if(samples.begin(), samples.end(),
                                    [&](const TaskSample& sample) { return sample.task == task; });
    return found == samples.end() ? nullptr : &*found;
}

std::vector<TaskedRun> read_tasked_runs(const std::vector<std::string>& references,
                                        const BootstrapOptions& options) {
    std::vector<TaskedRun> all;
    for (const std::string& text : references) {
        const RunReference reference = parse_run_reference(text);
        const TraceReader reader = TraceReader::open(reference.trace);
        std::vector<RunInfo> runs = reader.runs();
        if (!reference.run.empty()) {
            runs = {find_run(reader, reference.run)};
        }
        for (RunInfo& run : runs) {
            TaskedRun& one = all.emplace_back();
            one.reference = reference.trace.string() + "#" + run.name;
            one.samples = read_tasks(reader, run, options.stop);
            for (const TaskSample& sample : one.samples) {
                one.reports.push_back(report_task(sample, options));
            }
            if (one.samples.empty() && run.scored_tokens > 0) {
                one.text = estimate_run(reader, run, options);
            }
            one.run = std::move(run);
        }
    }
    if (all.empty()) {
        throw InputError(references.front(), "a trace with a run", "one without", "record a run into it");
    }
    return all;
}

std::string latex_tables(const std::vector<TaskedRun>& runs) {
    std::string texts;
    std::vector<std::string> tasks;
    for (const TaskedRun& run : runs) {
        if (run.text) {
            texts += latex_text(run.run.name) + " & " + latex_text(run.run.policy) + " & " +
                     with_interval(run.text->perplexity, 2) + " & " + with_interval(run.text->mean_steps, 2) +
                     " & " +
                     power_of_ten(run.run.flops_sum /
                                  static_cast<double>(std::max<std::int64_t>(run.run.tokens, 1))) +
                     " \\\\\n";
        }
        for (const TaskSample& sample : run.samples) {
            if (std::find(tasks.begin(), tasks.end(), sample.task) == tasks.end()) {
                tasks.push_back(sample.task);
            }
        }
    }
    std::string head = "Run & Policy";
    for (const std::string& task : tasks) {
        head += " & " + latex_text(task);
    }
    std::string rows;
    for (const TaskedRun& run : runs) {
        if (run.samples.empty()) {
            continue;
        }
        rows += latex_text(run.run.name) + " & " + latex_text(run.run.policy);
        double steps = 0;
        double tokens = 0;
        double flops = 0;
        double documents = 0;
        for (const std::string& task : tasks) {
            const TaskSample* const sample = run.find(task);
            rows += " & " +
                    (sample == nullptr
                         ? std::string("--")
                         : with_interval(
                               run.reports[static_cast<std::size_t>(sample - run.samples.data())].accuracy, 1,
                               100));
        }
        for (const TaskSample& sample : run.samples) {
            for (const TaskDocument& document : sample.documents) {
                const auto add = [&](const TaskPart& part) {
                    steps += part.steps;
                    tokens += static_cast<double>(part.tokens);
                    flops += part.flops;
                };
                add(document.context);
                for (const TaskOption& option : document.options) {
                    add(option.part);
                }
                ++documents;
            }
        }
        rows += " & $" + fixed(steps / tokens, 2) + "$ & " + power_of_ten(flops / documents) + " \\\\\n";
    }
    std::string result;
    if (!texts.empty()) {
        result += table("Perplexity, mean steps and FLOPs a token.", "llrrr",
                        "Run & Policy & Perplexity & Steps & FLOPs", texts);
    }
    if (!rows.empty()) {
        result += table("Accuracy (\\%), mean steps and FLOPs a document.",
                        "ll" + std::string(tasks.size() + 2, 'r'), head + " & Steps & FLOPs", rows);
    }
    return result;
}

} // namespace ponderscope::cli
