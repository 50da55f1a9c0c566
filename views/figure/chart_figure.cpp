// SPDX-License-Identifier: GPL-3.0-or-later
// Charts as figures: what is read, and how they stand on a page.
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/policy/matched_reruns.h"
#include "core/policy/replay.h"
#include "core/policy/rerun_difference.h"
#include "core/trace/tools/summary.h"
#include "views/common/format.h"
#include "views/compare/compare_charts.h"
#include "views/depth/depth_charts.h"
#include "views/experts/expert_charts.h"
#include "views/figure/chart_drawing.h"
#include "views/figure/figure.h"
#include "views/figure/parts.h"
#include "views/halting/halting_charts.h"
#include "views/halting/step_charts.h"
#include "views/policy/front_chart.h"
#include "views/policy/policy_charts.h"
#include "views/training/training_charts.h"

#include <algorithm>

namespace ponderscope::figure {
namespace {

constexpr int thresholds_a_front = 25;
constexpr double height_of_width = 0.62;
constexpr double plot_of_height = 0.62; ///< at least, of a page without many names

Chart front_of(const FigureSpec& spec, FigureData& data, const ProgressSink& progress,
               const std::stop_token& stop) {
    for (const std::string& name : spec.policies) {
        if (find_policy_kind(name) == nullptr) {
            throw InputError("\"policies\": expected some of " + joined(policy_kinds(), &PolicyKind::name) +
                             ", or signal:name=NAME for a signal of the run; found \"" + name + "\".");
        }
    }
    const ReplayTable table = replay_of(spec, data, progress, stop);
    const RunName& first = spec.runs.front();
    const RunInfo info = find_run(TraceReader::open(first.trace), first.run);
    std::vector<PolicyFront> fronts = policy_fronts(table, spec.policies, thresholds_a_front, stop);
    if (spec.bands) {
        add_bands(fronts, table, bootstrap_of(spec, stop));
        if (table.tokens() > most_banded) {
            data.notices.push_back("\"bands\": none, as the run is longer than " +
                                   std::to_string(most_banded) + " tokens.");
        }
    }
    std::vector<RunPoint> points;
    for (const RunName& name : spec.runs) {
        const TraceReader one = TraceReader::open(name.trace);
        const RunInfo run = find_run(one, name.run);
        if (run.text_digest != info.text_digest) {
            throw InputError(name.trace, "run \"" + run.name + "\" over the text of \"" + info.name + "\"",
                             "another text", "compare runs of the same text");
        }
        const int ink = static_cast<int>(points.size());
        points.push_back(
            {QString::fromStdString(run.name), ink, mean_steps(run), mean_nll(run), mean_flops(run),
             run.seconds > 0 && run.tokens > 0 ? run.seconds / static_cast<double>(run.tokens) : std::nan(""),
             is_rerun_of(run, info, run.policy) ? run.policy : std::string(), false});
    }
    FrontLook look;
    look.cost = spec.cost == "steps"  ? FrontCost::steps
                : spec.cost == "time" ? FrontCost::time
                                      : FrontCost::compute;
    look.bands = spec.bands;
    look.log_cost = spec.log == "x" || spec.log == "both";
    look.log_perplexity = spec.log == "y" || spec.log == "both";
    return front_chart(fronts, points, nullptr, look);
}

Chart comparison_of(const FigureSpec& spec, FigureData& data, const ProgressSink& progress,
                    const std::stop_token& stop) {
    if (spec.policies.size() > 1) {
        throw InputError("\"policies\": expected the one policy that the others are set against; found " +
                         std::to_string(spec.policies.size()) + ".");
    }
    const ReplayTable table = replay_of(spec, data, progress, stop);
    return policy_comparison_chart(table, spec.policies.empty() ? usual_policy(table) : spec.policies.front(),
                                   bootstrap_of(spec, stop));
}

Chart matched_of(const FigureSpec& spec, FigureData& data, const ProgressSink& progress,
                 const std::stop_token& stop) {
    const ReplayTable table = replay_of(spec, data, progress, stop);
    const BootstrapOptions options = bootstrap_of(spec, stop);
    const ScoredRows scored(table);
    MatchedLook look;
    look.policies = spec.policies;
    look.over_flops = spec.quantity == Quantity::flops;
    // Reruns that the trace holds, as ponderscope referee --rerun leaves them.
    const TraceReader reader = TraceReader::open(spec.runs.front().trace);
    const RunInfo run = find_run(reader, spec.runs.front().run);
    std::vector<std::string> names = spec.policies.empty() ? matched_rules(table) : spec.policies;
    if (std::find(names.begin(), names.end(), look.against) == names.end()) {
        names.push_back(look.against);
    }
    const std::vector<RunInfo> runs = reader.runs();
    const std::vector<RerunRule> rules = reruns_by_rule(runs, run, names);
    const bool against = std::any_of(rules.begin(), rules.end(),
                                     [&](const RerunRule& rule) { return rule.name == look.against; });
    if (rules.size() > 1 && against) {
        look.reruns = compare_reruns(table, scored, reader, run, reader, rules, look.against, {},
                                     with_block_of_run(table, scored, options));
    }
    const std::vector<RunInfo> plain = plain_runs(runs, run);
    if (look.over_flops && !plain.empty()) {
        for (const RunInfo& one : plain) {
            MatchedRule rule = plain_rule(reader, one, scored);
            if (!rule.settings.empty() && one.flops_sum > 0) {
                look.plain.push_back(std::move(rule));
            }
        }
    }
    // Report chosen runs that cannot be drawn.
    for (std::size_t i = 1; i < spec.runs.size(); ++i) {
        const RunInfo other = find_run(TraceReader::open(spec.runs[i].trace), spec.runs[i].run);
        const auto is_other = [&](const RunInfo& one) {
            return spec.runs[i].trace == spec.runs.front().trace && one.id == other.id;
        };
        const bool is_plain = std::any_of(plain.begin(), plain.end(), is_other);
        const bool drawn = look.reruns && std::any_of(rules.begin(), rules.end(), [&](const RerunRule& rule) {
                               return std::any_of(rule.runs.begin(), rule.runs.end(), is_other);
                           });
        if (drawn || (is_plain && look.over_flops)) {
            continue;
        }
        data.notices.push_back(
            "\"runs\": " + other.name + " is not drawn: " +
            (is_plain ? "a plain model is a point at equal FLOPs alone; choose \"quantity\" \"flops\"."
             : !is_rerun_of(other, run, other.policy)
                 ? "it is no rerun of " + run.name + "."
                 : "the trace has no reruns of fixed depths that it could be compared with; "
                   "ponderscope referee --rerun CHECKPOINT makes them."));
    }
    return matched_rules_chart(table, look, options);
}

Chart sweep_of(const FigureSpec& spec, FigureData& data, const ProgressSink& progress,
               const std::stop_token& stop) {
    const SweepQuantity quantity = spec.quantity == Quantity::steps   ? SweepQuantity::steps
                                   : spec.quantity == Quantity::flops ? SweepQuantity::flops
                                                                      : SweepQuantity::nll;
    if (quantity == SweepQuantity::nll && spec.quantity != Quantity::nll) {
        throw InputError("\"quantity\": expected \"nll\", \"steps\" or \"flops\" for a sweep; found \"" +
                         std::string(name_of(spec.quantity)) + "\".");
    }
    return sweep_chart(replay_of(spec, data, progress, stop), spec.policies, quantity, stop);
}

Chart winners_figure(const FigureSpec& spec, FigureData& data, const ProgressSink& progress,
                     const std::stop_token& stop) {
    ComparisonRequest request;
    for (const RunName& run : spec.runs) {
        request.runs.push_back({run.trace, run.run});
    }
    request.runs.resize(std::min<std::size_t>(request.runs.size(), 2));
    request.replicates = 100; // only the tokens are used
    const RunComparison comparison = compare_runs(request, progress, stop);
    data.notices = comparison.notices;
    data.notices.push_back(std::string("Intervals and q-values are over ") +
                           (comparison.resampling.unit == ResamplingUnit::clusters ? "clusters" : "blocks") +
                           " that have some of a group's tokens.");
    return winners_chart(winners_of(comparison, request, spec.by, 1, stop));
}

Chart tasks_of(const FigureSpec& spec, const std::stop_token& stop) {
    std::vector<TaskPoint> points;
    for (const RunName& name : spec.runs) {
        const TraceReader reader = TraceReader::open(name.trace);
        const RunInfo run = find_run(reader, name.run);
        const std::vector<TaskSample> samples = read_tasks(reader, run, stop);
        const std::string& wanted = !spec.task.empty() ? spec.task
                                    : points.empty()   ? spec.task
                                                       : points.front().report.task;
        const auto found = std::find_if(samples.begin(), samples.end(), [&](const TaskSample& sample) {
            return wanted.empty() || sample.task == wanted;
        });
        if (found == samples.end()) {
            throw InputError(name.trace, "run \"" + run.name + "\" with the task " + wanted,
                             samples.empty() ? "none" : joined(samples, &TaskSample::task),
                             "record it with ponderscope score or lm-evaluation-harness");
        }
        points.push_back({run.name,
                          std::filesystem::path(run.checkpoint).filename().string() + ", " +
                              run.policy.substr(0, run.policy.find(':')),
                          report_task(*found, bootstrap_of(spec, stop))});
    }
    return task_accuracy_chart(points, spec.cost != "steps");
}

Chart depth_of(const FigureSpec& spec, const std::stop_token& stop) {
    const RunName& name = spec.runs.front();
    const TraceReader reader = TraceReader::open(name.trace);
    const RunInfo run = find_run(reader, name.run);
    return depth_weights_chart(sampled_depth(reader, run, depth_signal(reader, run), stop));
}

Chart ablation_of(const FigureSpec& spec, const std::stop_token& stop) {
    // The runs named after the first; where none is, every run of its trace that left one source out.
    const RunName& name = spec.runs.front();
    std::vector<std::pair<std::filesystem::path, std::string>> candidates;
    for (std::size_t i = 1; i < spec.runs.size(); ++i) {
        candidates.emplace_back(spec.runs[i].trace, spec.runs[i].run);
    }
    if (candidates.empty()) {
        for (const RunInfo& run : TraceReader::open(name.trace).runs()) {
            candidates.emplace_back(name.trace, run.name);
        }
    }
    const std::vector<AblationEffect> effects =
        ablation_effects(name.trace, name.run, candidates, bootstrap_of(spec, stop));
    if (effects.empty()) {
        throw InputError(name.trace, "runs of the same model and text without one source", "none",
                         "record them with --ablate-source SOURCE:LAYER");
    }
    return depth_ablation_chart(effects);
}

Chart halting_of(const FigureSpec& spec, HaltingChart kind, FigureData& data, const std::stop_token& stop,
                 GatherCache& shared) {
    const RunName& run = spec.runs.front();
    if (!shared.halting || shared.halting_of != run) {
        shared = {run, std::make_shared<const HaltingStats>(halting_stats(run.trace, run.run, stop))};
    }
    const HaltingStats& stats = *shared.halting;
    Chart chart = halting_chart(kind, stats);
    if (chart.empty()) {
        throw InputError(run.trace, "a run with " + halting_title(kind).toLower().toStdString(), "none",
                         kind == HaltingChart::gates ? "choose a run whose method has gates"
                                                     : "choose a run with scored tokens");
    }
    data.notices.push_back(kind == HaltingChart::gates
                               ? "Over " + std::to_string(stats.gate_by_step.front().all().count) + " tokens."
                               : "Over " + std::to_string(stats.scored) + " tokens with a next one.");
    return chart;
}

Chart training_of(const FigureSpec& spec, const std::stop_token& stop) {
    std::vector<TrainingRecord> trainings;
    for (const RunName& run : spec.runs) {
        for (TrainingRecord& one : trainings_named(run.trace, run.run, stop)) {
            const bool there = std::any_of(trainings.begin(), trainings.end(), [&](const auto& other) {
                return other.trace == one.trace && other.info.id == one.info.id;
            });
            if (!there) {
                trainings.push_back(std::move(one));
            }
        }
    }
    const TrainingAxis axis = spec.axis == "tokens"    ? TrainingAxis::tokens
                              : spec.axis == "seconds" ? TrainingAxis::seconds
                                                       : TrainingAxis::steps;
    Chart chart = training_chart(trainings, spec.curve, {axis, spec.smoothing});
    if (chart.empty()) {
        std::string known = "loss, mean_steps";
        for (const TrainingQuantity& one : further_quantities(trainings)) {
            known += ", " + one.name;
        }
        throw InputError(spec.runs.front().trace, "a curve \"" + spec.curve + "\"", "none",
                         "choose one of " + known);
    }
    return chart;
}

Chart experts_of(const FigureSpec& spec, const std::stop_token& stop) {
    const TraceReader reader = TraceReader::open(spec.runs.front().trace);
    const RunInfo run = find_run(reader, spec.runs.front().run);
    const std::optional<ExpertUse> use = expert_use(reader, run, stop);
    if (!use) {
        throw InputError(reader.path(), "a run with chosen experts", "run \"" + run.name + "\" without them",
                         "record a mixture of experts with --record steps,experts");
    }
    return experts_chart(*use);
}

} // namespace

Chart gather_chart(const FigureSpec& spec, FigureData& data, const ProgressSink& progress,
                   const std::stop_token& stop, GatherCache& shared) {
    const RunName& run = spec.runs.front();
    switch (spec.kind) {
    case FigureKind::policy_front:
        return front_of(spec, data, progress, stop);
    case FigureKind::policy_comparison:
        return comparison_of(spec, data, progress, stop);
    case FigureKind::matched_rules:
        return matched_of(spec, data, progress, stop);
    case FigureKind::parameter_sweep:
        return sweep_of(spec, data, progress, stop);
    case FigureKind::task_accuracy:
        return tasks_of(spec, stop);
    case FigureKind::winners:
        return winners_figure(spec, data, progress, stop);
    case FigureKind::signal_by_step:
        return signal_by_step_chart(run.trace, run.run, spec.signal, stop);
    case FigureKind::layers_by_step:
        return layers_by_step_chart(run.trace, run.run, spec.signal, stop);
    case FigureKind::jacobi_convergence:
        return signal_by_step_chart(run.trace, run.run, signal::jacobi_difference, stop);
    case FigureKind::steps_by_type:
        return steps_by_type_chart(run.trace, run.run, spec.by, spec.attribution, stop);
    case FigureKind::depth_weights:
        return depth_of(spec, stop);
    case FigureKind::experts:
        return experts_of(spec, stop);
    case FigureKind::depth_ablation:
        return ablation_of(spec, stop);
    case FigureKind::training_curves:
        return training_of(spec, stop);
    case FigureKind::steps_histogram:
        return halting_of(spec, HaltingChart::steps, data, stop, shared);
    case FigureKind::nll_by_halt_step:
        return halting_of(spec, HaltingChart::nll, data, stop, shared);
    case FigureKind::gate_curves:
        return halting_of(spec, HaltingChart::gates, data, stop, shared);
    case FigureKind::steps_probability:
        return halting_of(spec, HaltingChart::probability, data, stop, shared);
    default:
        return halting_of(spec, HaltingChart::entropy, data, stop, shared);
    }
}

void dress_chart(Chart& chart, const FigureSpec& spec, Figure& figure) {
    const auto limits = [](Chart::Axis& axis, const std::optional<std::array<double, 2>>& range) {
        if (range && axis.names.empty()) {
            axis.low = (*range)[0];
            axis.high = (*range)[1];
        }
    };
    limits(chart.x, spec.x_range);
    limits(chart.y, spec.y_range);
    for (const auto& [axis, key] : {std::pair(&chart.x, "x_range"), std::pair(&chart.y, "y_range")}) {
        if (axis->log && axis->low && *axis->low <= 0) {
            throw InputError(std::string("\"") + key + "\": the axis is logarithmic; found " +
                             number_text(*axis->low) + ", expected numbers above 0.");
        }
    }
    chart.legend = spec.legend == "above"   ? Chart::Legend::above
                   : spec.legend == "right" ? Chart::Legend::right
                   : spec.legend == "none"  ? Chart::Legend::none
                                            : Chart::Legend::automatic;
    for (const Chart::Series& series : chart.series) {
        if (series.listed && !series.name.isEmpty()) {
            figure.entries.push_back(series.name.toStdString());
        }
    }
    std::size_t place = 0; // of the next one that is named in the specification
    for (const SeriesSpec& wanted : spec.series) {
        const auto found =
            std::find_if(chart.series.begin(), chart.series.end(), [&](const Chart::Series& series) {
                return series.listed && series.name.toStdString() == wanted.name;
            });
        if (found == chart.series.end()) {
            figure.notices.push_back("\"series\": the figure has none called \"" + wanted.name + "\", only " +
                                     (figure.entries.empty() ? "nameless ones" : joined(figure.entries)) +
                                     ".");
        } else if (!wanted.show) {
            const Chart::Series hidden = *found;
            std::erase_if(chart.series,
                          [&](const Chart::Series& series) { return is_hidden_with(hidden, series); });
            place = std::min(place, chart.series.size());
        } else {
            if (!wanted.as.empty()) {
                for (Chart::Series& series : chart.series) { // its band and its marks, too
                    if (&series != &*found && !series.listed && series.name == found->name) {
                        series.name = QString::fromStdString(wanted.as);
                    }
                }
                found->name = QString::fromStdString(wanted.as);
            }
            const auto from = static_cast<std::size_t>(found - chart.series.begin());
            if (from >= place) {
                std::rotate(chart.series.begin() + static_cast<std::ptrdiff_t>(place), found, found + 1);
                ++place;
            }
            chart.order_given = true;
        }
    }
}

Figure compose_chart(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const Style style(spec, fonts);
    Chart chart = *data.chart;
    Figure figure;
    if (spec.kind == FigureKind::training_curves) { // rings of recorded runs are there to be clicked
        std::erase_if(chart.series, [](const Chart::Series& series) { return series.strong; });
    }
    dress_chart(chart, spec, figure);
    chart.title.clear(); // the caption of the paper says it; spec.title is drawn by finish()
    const double above = title_height(spec, style);
    constexpr int note_lines = 8; // on paper no caveat is cut
    const double usual = style.width * (style.width > 300 ? 0.42 : height_of_width);
    const double asked =
        spec.height_mm
            ? *spec.height_mm * points_per_mm - above - 2 * style.margin
            : std::max(usual, readable_height(style, style.width, chart, note_lines, usual * plot_of_height));
    const double height = std::max(asked, 8 * style.size);
    DisplayList list;
    draw_chart(list, style, {0, 0, style.width, height}, chart, note_lines);
    figure.page = finish(spec, style, list, height, "ask for more height");
    figure.tables.push_back({"", chart_table(chart)});
    chart.title = QString::fromStdString(spec.title);
    figure.pgfplots =
        chart_pgfplots(chart, style, spec.width_mm, figure.page.size().height() / points_per_mm);
    return figure;
}

} // namespace ponderscope::figure
