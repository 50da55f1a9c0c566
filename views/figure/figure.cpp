// SPDX-License-Identifier: GPL-3.0-or-later
// Reads and computes the data of each figure kind.
#include "views/figure/figure.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/policy/matched_reruns.h"
#include "core/policy/replay.h"
#include "core/policy/rerun_difference.h"
#include "core/trace/tools/summary.h"
#include "views/compare/compare_charts.h"
#include "views/depth/depth_charts.h"
#include "views/experts/expert_charts.h"
#include "views/figure/parts.h"
#include "views/halting/step_charts.h"
#include "views/policy/front_chart.h"
#include "views/policy/policy_charts.h"
#include "views/training/training_charts.h"

#include <algorithm>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

struct OpenedRun {
    TraceReader reader;
    RunInfo info;
};

OpenedRun open_run(const RunName& name) {
    TraceReader reader = TraceReader::open(name.trace);
    RunInfo info = find_run(reader, name.run);
    return {std::move(reader), std::move(info)};
}

OpenedRun open_first(const Gathering& figure) {
    return open_run(figure.spec.runs.front());
}

void gather_text(const Gathering& figure) {
    const FigureSpec& spec = figure.spec;
    FigureData& data = figure.data;
    const bool annotated = !spec.annotation.empty();
    for (std::size_t i = 0; i < (!annotated && spec.quantity.minus_b ? 2U : 1U); ++i) {
        throw_if_stopped(figure.stop);
        data.runs.push_back(load_rows(spec, spec.runs.at(i)));
    }
    const RunRows& a = data.runs.front();
    const RunRows& b = data.runs.back();
    if (a.rows.id != b.rows.id) {
        throw InputError(ErrorId::compare_text, b.name.trace,
                         "run \"" + b.info.name + "\" over the same tokens as \"" + a.info.name + "\"",
                         "a run over other tokens", "compare runs of the same text and tokenizer");
    }
    if (annotated) {
        data.annotation = load_annotation(spec, a);
    }
}

Chart heatmap_of(const Gathering& figure) {
    figure.data.runs.push_back(load_rows(figure.spec, figure.spec.runs.front()));
    figure.data.signal = load_step_map(figure.spec, figure.data.runs.front());
    return step_heatmap_chart(figure.spec, figure.data);
}

ComparisonRequest request_of(const FigureSpec& spec, std::size_t most, std::int64_t replicates) {
    ComparisonRequest request;
    for (std::size_t i = 0; i < std::min(spec.runs.size(), most); ++i) {
        request.runs.push_back({spec.runs[i].trace, spec.runs[i].run});
    }
    request.replicates = replicates;
    return request;
}

void gather_comparison(const Gathering& figure) {
    const FigureSpec& spec = figure.spec;
    ComparisonRequest request = request_of(spec, spec.runs.size(), spec.replicates);
    request.sequence = spec.sequence;
    request.tokens = spec.tokens;
    request.block = spec.block;
    figure.data.comparison = compare_runs(request, figure.progress, figure.stop);
}

void gather_perplexity(const Gathering& figure) {
    gather_comparison(figure);
    const RunComparison& comparison = *figure.data.comparison;
    DataTable table = table_of(comparison);
    std::ranges::find(table.columns, "tokens", &TableColumn::key)->title.clear(); // the note has the number
    figure.data.table = {std::move(table),
                         u"95 % intervals: paired bootstrap, %1; %2 replicates; %3 tokens"_s
                             .arg(QString::fromStdString(comparison.resampling.words()))
                             .arg(comparison.replicates)
                             .arg(format_count(static_cast<std::int64_t>(comparison.places.size())))};
}

/// Compares the first two runs token by token.
std::pair<ComparisonRequest, RunComparison> compare_tokens(const Gathering& figure) {
    constexpr std::int64_t replicates = 100; // only the tokens are used
    ComparisonRequest request = request_of(figure.spec, 2, replicates);
    RunComparison comparison = compare_runs(request, figure.progress, figure.stop);
    figure.data.notices = comparison.notices;
    return {std::move(request), std::move(comparison)};
}

Chart pairs_of(const Gathering& figure) {
    const RunComparison comparison = compare_tokens(figure).second;
    return figure.spec.scatter ? token_pairs_chart(comparison) : token_density_chart(comparison);
}

Chart winners_figure(const Gathering& figure) {
    const auto [request, comparison] = compare_tokens(figure);
    Chart chart = winners_chart(winners_of(comparison, request, figure.spec.by, figure.stop));
    chart.note += u" Intervals and q-values of a group use the %1 that contain tokens of the group."_s.arg(
        comparison.resampling.unit == ResamplingUnit::clusters ? u"clusters"_s : u"blocks"_s);
    return chart;
}

Chart front_of(const Gathering& figure) {
    constexpr int thresholds_a_front = 25;
    const FigureSpec& spec = figure.spec;
    for (const std::string& name : spec.policies) {
        if (find_policy_kind(name) == nullptr) {
            throw InputError(ErrorId::usage_value,
                             "\"policies\": expected some of " + joined(policy_kinds(), &PolicyKind::name) +
                                 ", or signal:name=NAME for a signal of the run; found \"" + name + "\".");
        }
    }
    const ReplayTable table = replay_of(figure);
    const RunInfo info = open_first(figure).info;
    std::vector<PolicyFront> fronts = policy_fronts(table, spec.policies, thresholds_a_front, figure.stop);
    if (spec.bands) {
        add_bands(fronts, table, bootstrap_of(spec, figure.stop));
        if (table.tokens() > most_banded) {
            figure.data.notices.push_back(
                {NoticeId::figure_bands, "\"bands\" are not drawn, because the run has more than " +
                                             std::to_string(most_banded) + " tokens."});
        }
    }
    std::vector<RunPoint> points;
    for (const RunName& name : spec.runs) {
        const RunInfo run = open_run(name).info;
        if (run.text_digest != info.text_digest) {
            throw InputError(ErrorId::compare_text, name.trace,
                             "run \"" + run.name + "\" over the text of \"" + info.name + "\"",
                             "a run over another text", "compare runs of the same text");
        }
        const int ink = static_cast<int>(points.size());
        points.push_back(
            {QString::fromStdString(run.name), ink, mean_steps(run), mean_nll(run), mean_flops(run),
             run.seconds > 0 && run.tokens > 0 ? run.seconds / static_cast<double>(run.tokens) : std::nan(""),
             is_rerun_of(run, info, run.policy) ? run.policy : std::string()});
    }
    return front_chart(fronts, points, {spec.cost, spec.bands, spec.log});
}

Chart comparison_of(const Gathering& figure) {
    const FigureSpec& spec = figure.spec;
    if (spec.policies.size() > 1) {
        throw InputError(ErrorId::usage_value,
                         "\"policies\": expected one policy as the reference of the comparison, found " +
                             std::to_string(spec.policies.size()) + ".");
    }
    const ReplayTable table = replay_of(figure);
    return policy_comparison_chart(table, spec.policies.empty() ? usual_policy(table) : spec.policies.front(),
                                   bootstrap_of(spec, figure.stop));
}

Chart matched_of(const Gathering& figure) {
    const FigureSpec& spec = figure.spec;
    const ReplayTable table = replay_of(figure);
    const BootstrapOptions options = bootstrap_of(spec, figure.stop);
    const ScoredRows scored(table);
    MatchedLook look;
    look.policies = spec.policies;
    look.over_flops = spec.quantity == Quantity::flops;
    // The trace may have reruns, from ponderscope referee --rerun.
    const auto [reader, run] = open_first(figure);
    std::vector<std::string> names = spec.policies.empty() ? matched_rules(table) : spec.policies;
    if (std::ranges::find(names, look.against) == names.end()) {
        names.push_back(look.against);
    }
    const std::vector<RunInfo> runs = reader.runs();
    const std::vector<RerunRule> rules = reruns_by_rule(runs, run, names);
    if (rules.size() > 1 && std::ranges::count(rules, look.against, &RerunRule::name) > 0) {
        look.reruns = compare_reruns(table, scored, reader, run, reader, rules, look.against, {},
                                     with_block_of_run(table, scored, options));
    }
    const std::vector<RunInfo> plain = plain_runs(runs, run);
    for (const RunInfo& one : look.over_flops ? plain : std::vector<RunInfo>()) {
        MatchedRule rule = plain_rule(reader, one, scored);
        if (!rule.settings.empty() && one.flops_sum > 0) {
            look.plain.push_back(std::move(rule));
        }
    }
    // Report chosen runs that cannot be drawn.
    for (std::size_t i = 1; i < spec.runs.size(); ++i) {
        const RunInfo other = open_run(spec.runs[i]).info;
        const auto is_other = [&](const RunInfo& one) {
            return spec.runs[i].trace == spec.runs.front().trace && one.id == other.id;
        };
        const bool is_plain = std::ranges::any_of(plain, is_other);
        const bool drawn = look.reruns && std::ranges::any_of(rules, [&](const RerunRule& rule) {
                               return std::ranges::any_of(rule.runs, is_other);
                           });
        if (drawn || (is_plain && look.over_flops)) {
            continue;
        }
        figure.data.notices.push_back(
            {NoticeId::figure_left_out,
             "\"runs\": " + other.name + " is not drawn: " +
                 (is_plain ? "a plain model has a point only at equal FLOPs; choose \"quantity\" \"flops\"."
                  : !is_rerun_of(other, run, other.policy)
                      ? "the run is not a rerun of " + run.name + "."
                      : "the trace has no reruns of fixed depths to compare it with; record them by "
                        "ponderscope referee --rerun CHECKPOINT.")});
    }
    return matched_rules_chart(table, look, options);
}

Chart sweep_of(const Gathering& figure) {
    const Quantity quantity = figure.spec.quantity.of;
    if (quantity != Quantity::nll && quantity != Quantity::steps && quantity != Quantity::flops) {
        throw InputError(ErrorId::json_value,
                         "\"quantity\": expected \"nll\", \"steps\" or \"flops\" for a sweep; found \"" +
                             std::string(name_of(figure.spec.quantity)) + "\".");
    }
    return sweep_chart(replay_of(figure), figure.spec.policies, quantity, figure.stop);
}

Chart tasks_of(const Gathering& figure) {
    const FigureSpec& spec = figure.spec;
    std::vector<TaskPoint> points;
    for (const RunName& name : spec.runs) {
        const auto [reader, run] = open_run(name);
        const std::vector<TaskSample> samples = read_tasks(reader, run, figure.stop);
        const std::string& wanted =
            spec.task.empty() && !points.empty() ? points.front().report.task : spec.task;
        const auto found = std::ranges::find_if(
            samples, [&](const TaskSample& sample) { return wanted.empty() || sample.task == wanted; });
        if (found == samples.end()) {
            throw InputError(ErrorId::run_unsuited, name.trace,
                             "run \"" + run.name + "\" with the task " + wanted,
                             samples.empty() ? "no tasks" : "the tasks " + joined(samples, &TaskSample::task),
                             "record the task with ponderscope score or lm-evaluation-harness");
        }
        points.push_back({run.name,
                          std::filesystem::path(run.checkpoint).filename().string() + ", " +
                              run.policy.substr(0, run.policy.find(':')),
                          report_task(*found, bootstrap_of(spec, figure.stop))});
    }
    return task_accuracy_chart(points, spec.cost != "steps");
}

Chart depth_of(const Gathering& figure) {
    const auto [reader, run] = open_first(figure);
    const DepthMap map = sampled_depth(reader, run, depth_signal(reader, run), figure.stop);
    return depth_weights_chart(map, map.averages(-1, -1));
}

Chart ablation_of(const Gathering& figure) {
    // The candidates: the runs after the first or, if there is only one run, all runs of its trace.
    const RunName& name = figure.spec.runs.front();
    std::vector<std::pair<std::filesystem::path, std::string>> candidates;
    for (std::size_t i = 1; i < figure.spec.runs.size(); ++i) {
        candidates.emplace_back(figure.spec.runs[i].trace, figure.spec.runs[i].run);
    }
    if (candidates.empty()) {
        for (const RunInfo& run : TraceReader::open(name.trace).runs()) {
            candidates.emplace_back(name.trace, run.name);
        }
    }
    const std::vector<AblationEffect> effects =
        ablation_effects(name.trace, name.run, candidates, bootstrap_of(figure.spec, figure.stop));
    if (effects.empty()) {
        throw InputError(ErrorId::run_unsuited, name.trace,
                         "runs of the same model and text without one source", "no such runs",
                         "record such runs with --ablate-source SOURCE:LAYER");
    }
    return depth_ablation_chart(effects);
}

template <HaltingChart kind>
Chart halting_of(const Gathering& figure) {
    const RunName& run = figure.spec.runs.front();
    GatherCache& shared = figure.shared;
    if (!shared.halting || shared.halting_of != run) {
        shared = {run, std::make_shared<const HaltingStats>(halting_stats(run.trace, run.run, figure.stop))};
    }
    const HaltingStats& stats = *shared.halting;
    Chart chart = halting_chart(kind, stats);
    if (chart.empty()) {
        throw InputError(ErrorId::run_unsuited, run.trace,
                         "a run with " + halting_title(kind).toLower().toStdString(), "no such values",
                         kind == HaltingChart::gates ? "choose a run whose method has gates"
                                                     : "choose a run with scored tokens");
    }
    figure.data.notices.push_back(
        {NoticeId::figure_tokens,
         kind == HaltingChart::gates
             ? "Over " + std::to_string(stats.gate_by_step.front().all().count) + " tokens."
             : "Over " + std::to_string(stats.scored) + " tokens with a next token."});
    return chart;
}

Chart signals_of(const Gathering& figure) {
    const RunName& run = figure.spec.runs.front();
    const bool refreshes = figure.spec.kind == FigureKind::jacobi_convergence;
    return signal_by_step_chart(run.trace, run.run,
                                refreshes ? signal::jacobi_difference : figure.spec.signal, figure.stop);
}

Chart layers_of(const Gathering& figure) {
    const RunName& run = figure.spec.runs.front();
    std::optional<SequenceSpan> rows;
    if (figure.spec.tokens || figure.spec.sequence) {
        const RunRows part = load_rows(figure.spec, run);
        const int before = figure.spec.attribution == Attribution::predicted ? 1 : 0;
        rows = {part.sequence.number, std::max<std::int64_t>(0, part.first - before), part.last - before};
    }
    return layers_by_step_chart(run.trace, run.run, figure.spec.signal, figure.stop, rows);
}

Chart types_of(const Gathering& figure) {
    const RunName& run = figure.spec.runs.front();
    return steps_by_type_chart(run.trace, run.run, figure.spec.by, figure.spec.attribution, figure.stop);
}

Chart training_of(const Gathering& figure) {
    const FigureSpec& spec = figure.spec;
    std::vector<TrainingRecord> trainings;
    for (const RunName& run : spec.runs) {
        for (TrainingRecord& one : trainings_named(run.trace, run.run, figure.stop)) {
            const bool there = std::ranges::any_of(trainings, [&](const auto& other) {
                return other.trace == one.trace && other.info.id == one.info.id;
            });
            if (!there) {
                trainings.push_back(std::move(one));
            }
        }
    }
    Chart chart = training_chart(trainings, spec.curve, {spec.axis, spec.smoothing});
    if (chart.empty()) {
        std::string known = "loss, mean_steps";
        for (const TrainingQuantity& one : further_quantities(trainings)) {
            known += ", " + one.name;
        }
        throw InputError(ErrorId::trace_signal, spec.runs.front().trace, "a curve \"" + spec.curve + "\"",
                         "no such curve", "choose one of " + known);
    }
    return chart;
}

Chart experts_of(const Gathering& figure) {
    const auto [reader, run] = open_first(figure);
    const std::optional<ExpertUse> use = expert_use(reader, run, figure.stop);
    if (!use) {
        throw InputError(ErrorId::run_unsuited, reader.path(), "a run with chosen experts",
                         "run \"" + run.name + "\" without chosen experts",
                         "record a mixture of experts with --record steps,experts");
    }
    return experts_chart(*use);
}

Chart agreement_of(const Gathering& figure) {
    const auto [reader, run] = open_first(figure);
    const auto [other_reader, other] = open_run(figure.spec.runs.at(1));
    return expert_agreement_chart(expert_agreement(reader, run, other_reader, other, figure.stop));
}

void gather_panels(const Gathering& figure) {
    for (const FigureSpec& panel : figure.spec.panels) {
        figure.data.panels.push_back(gather(panel, figure.progress, figure.stop, &figure.shared));
    }
}

/// Lays out the panels in rows, in columns of equal width, each with its letter.
Figure compose_panels(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const Style style(spec, fonts);
    const auto columns = static_cast<std::size_t>(
        std::clamp<std::int64_t>(spec.columns, 1, static_cast<std::int64_t>(spec.panels.size())));
    const double gap = style.size * 2;
    const double width =
        (style.width - gap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
    if (width < 40 * points_per_mm) {
        throw InputError(ErrorId::figure_size,
                         "A panel would be " + number_text(width / points_per_mm) +
                             " mm wide, but needs 40 mm; choose fewer columns or a wider page.");
    }
    const double letter = spec.letters ? style.size * 1.6 : 0;
    const TextStyle bold{style.size * 1.15, true, style.colours.text};
    Figure figure;
    DisplayList list;
    double top = 0;
    for (std::size_t first = 0; first < spec.panels.size(); first += columns) {
        double height = 0;
        for (std::size_t i = first; i < std::min(first + columns, spec.panels.size()); ++i) {
            FigureSpec one = spec.panels[i];
            one.width_mm = width / points_per_mm + 2 * style.margin / points_per_mm;
            one.theme = spec.theme;
            const Figure panel = compose(one, data.panels[i], fonts);
            const QString name(QChar(static_cast<char16_t>(u'a' + i)));
            const QPointF at(static_cast<double>(i - first) * (width + gap), top);
            if (spec.letters) {
                list.text(name, {at.x(), at.y() + fonts.ascent(bold)}, bold);
            }
            list.append(panel.page, at + QPointF(-style.margin, letter - style.margin));
            height = std::max(height, panel.page.size().height() + letter - 2 * style.margin);
            for (const Table& table : panel.tables) {
                figure.tables.push_back(
                    {name.toStdString() + (table.suffix.empty() ? "" : "." + table.suffix), table.csv,
                     table.extension});
            }
            for (const Notice& notice : panel.notices) {
                figure.notices.push_back({notice.id, name.toStdString() + ": " + notice.text});
            }
        }
        top += height + gap;
    }
    figure.page = finish(spec, style, list, top - gap, "choose fewer panels");
    return figure;
}

template <Chart (*make)(const Gathering&)>
void gather_chart(const Gathering& figure) {
    figure.data.chart = make(figure);
}

/// The functions of a kind.
struct Maker {
    void (*gather)(const Gathering& figure);
    Figure (*compose)(const FigureSpec& spec, const FigureData& data, const Fonts& fonts);
};

const Maker& maker_of(FigureKind kind) {
    static constexpr Maker makers[] = {
#define PONDERSCOPE_CHART(name, title, shows, runs, keys, make) {gather_chart<make>, compose_chart},
#define PONDERSCOPE_PAGE(name, title, shows, runs, keys, gather, draw) {gather, draw},
#include "views/figure/kinds.def"
#undef PONDERSCOPE_CHART
#undef PONDERSCOPE_PAGE
    };
    return makers[static_cast<std::size_t>(kind)];
}

/// Says which fonts to install for characters that no font has.
std::string notice_of_missing(const std::vector<char32_t>& missing) {
    const auto is_emoji = [](char32_t c) {
        return (c >= 0x2600 && c < 0x27c0) || (c >= 0x1f000 && c < 0x1fb00);
    };
    const auto code = [](char32_t c) {
        return "U+" +
               QString::number(static_cast<uint>(c), 16).rightJustified(4, u'0').toUpper().toStdString();
    };
    return "No font of this machine has letters for " + joined(missing, code, 10) +
           "; they are drawn as boxes." +
           (std::ranges::all_of(missing, is_emoji)
                ? ""
                : " The packages fonts-noto-core and fonts-noto-cjk have letters of most scripts.") +
           (std::ranges::any_of(missing, is_emoji) ? " The package fonts-symbola has emoji." : "");
}

} // namespace

FigureData gather(const FigureSpec& asked, const ProgressSink& progress, const std::stop_token& stop,
                  GatherCache* shared) {
    GatherCache own;
    FigureSpec spec = asked;
    for (RunName& run : spec.runs) {
        if (run.numbered) {
            run = by_name(run, TraceReader::open(run.trace).runs());
        }
    }
    if (info_of(spec.kind).runs == RunUse::pair && spec.runs.size() < 2) {
        throw InputError(ErrorId::usage_missing,
                         "This figure compares two runs of the same text. Add a second run.");
    }
    FigureData data;
    maker_of(spec.kind).gather({spec, data, progress, stop, shared != nullptr ? *shared : own});
    return data;
}

Figure compose(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    Figure figure = maker_of(spec.kind).compose(spec, data, fonts);
    if (const std::vector<char32_t> missing = missing_characters(figure.page, fonts); !missing.empty()) {
        figure.notices.push_back({NoticeId::figure_glyphs, notice_of_missing(missing)});
    }
    if (data.comparison) {
        figure.notices.insert(figure.notices.end(), data.comparison->notices.begin(),
                              data.comparison->notices.end());
    }
    figure.notices.insert(figure.notices.end(), data.notices.begin(), data.notices.end());
    for (const RunRows& run : data.runs) {
        if (!run.info.complete) {
            figure.notices.push_back(
                {NoticeId::run_partial,
                 "Run \"" + run.info.name + "\" is partial: it was cut off or is still being recorded."});
        }
    }
    return figure;
}

} // namespace ponderscope::figure
