// SPDX-License-Identifier: GPL-3.0-or-later
// Charts as figures: what is read, and how they stand on a page.
// Before Qt, whose keyword `signals` is a name there.
#include "core/policy/replay.h"

#include "core/base/error.h"
#include "views/common/format.h"
#include "views/figure/figure.h"
#include "views/figure/parts.h"
#include "views/halting/halting_stats.h"
#include "views/policy/policy_fronts.h"

#include <algorithm>

namespace ponderscope::figure {
namespace {

constexpr int thresholds_a_front = 25;
constexpr double height_of_width = 0.62;

Chart front_of(const FigureSpec& spec, FigureData& data, const ProgressSink& progress,
               const std::stop_token& stop) {
    for (const std::string& name : spec.policies) {
        const auto kinds = policy_kinds();
        if (std::none_of(kinds.begin(), kinds.end(),
                         [&](const PolicyKind& kind) { return kind.name == name; })) {
            std::string known;
            for (const PolicyKind& kind : kinds) {
                known += (known.empty() ? "" : ", ") + kind.name;
            }
            throw InputError("\"policies\": expected some of " + known + "; found \"" + name + "\".");
        }
    }
    const RunName& first = spec.runs.front();
    const TraceReader reader = TraceReader::open(first.trace);
    const RunInfo info = find_run(reader, first.run);
    const ReplayTable table = ReplayTable::load(reader, info, progress, stop);
    if (table.halted) {
        data.notices.push_back("Run \"" + info.name +
                               "\" halted, so the replay gives no token more steps than it had.");
    }
    const std::vector<PolicyFront> fronts = policy_fronts(table, spec.policies, thresholds_a_front, stop);
    std::vector<RunPoint> points;
    for (const RunName& name : spec.runs) {
        const TraceReader one = TraceReader::open(name.trace);
        const RunInfo run = find_run(one, name.run);
        if (run.text_digest != info.text_digest) {
            throw InputError(name.trace, "run \"" + run.name + "\" over the text of \"" + info.name + "\"",
                             "another text", "compare runs of the same text");
        }
        const int ink = static_cast<int>(points.size());
        points.push_back({QString::fromStdString(run.name), ink, mean_steps(run), mean_nll(run),
                          run.flops_sum / static_cast<double>(std::max<std::int64_t>(run.tokens, 1))});
    }
    return front_chart(fronts, points, nullptr);
}

} // namespace

Chart gather_chart(const FigureSpec& spec, FigureData& data, const ProgressSink& progress,
                   const std::stop_token& stop) {
    if (spec.kind == FigureKind::policy_front) {
        return front_of(spec, data, progress, stop);
    }
    const RunName& run = spec.runs.front();
    const HaltingStats stats = halting_stats(run.trace, run.run, spec.attribution, stop);
    const HaltingChart kind = spec.kind == FigureKind::steps_histogram    ? HaltingChart::steps
                              : spec.kind == FigureKind::nll_by_halt_step ? HaltingChart::nll
                              : spec.kind == FigureKind::gate_curves      ? HaltingChart::gates
                                                                          : HaltingChart::entropy;
    Chart chart = halting_chart(kind, stats);
    if (chart.empty()) {
        throw InputError(run.trace, "a run with " + halting_title(kind).toLower().toStdString(), "none",
                         kind == HaltingChart::gates ? "choose a run whose method has gates"
                                                     : "choose a run with scored tokens");
    }
    data.notices.push_back("Over " + std::to_string(stats.scored) + " tokens with a next one.");
    return chart;
}

Figure compose_chart(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const Style style(spec, fonts);
    Chart chart = *data.chart;
    chart.title.clear(); // the caption of the paper says it; spec.title is drawn by finish()
    const double above = title_height(spec, style);
    const double height = spec.height_mm ? *spec.height_mm * points_per_mm - above - 2 * style.margin
                                         : style.width * (style.width > 300 ? 0.42 : height_of_width);
    DisplayList list;
    draw_chart(list, style, {0, 0, style.width, std::max(height, 8 * style.size)}, chart);
    Figure figure;
    figure.page = finish(spec, style, list, std::max(height, 8 * style.size), "ask for more height");
    figure.tables.push_back({"", chart_table(chart)});
    return figure;
}

} // namespace ponderscope::figure
