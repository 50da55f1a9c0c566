// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/policy_report.h"

#include "app/cli/console.h"
#include "core/base/utf8.h"
#include "core/base/words.h"

#include <algorithm>
#include <cmath>
#include <iostream>

namespace ponderscope::cli {
namespace {

/// Columns of the points; of reruns also where the replay differs. \p exit: steps are blocks.
DataTable outcome_table(bool exit) {
    using enum CellFormat;
    return {{},
            {{"", "policy", text},
             {"policy", "", text},
             {"name", "", text},
             {"threshold", "", number},
             {"kind", "", text},
             {"causal", "", text},
             {"mean_steps", exit ? "exit" : "steps", number, 3},
             {"mean_nll", "NLL", number, 4},
             {"perplexity", "ppl", number, 2},
             {"flops_per_token", "FLOPs", si},
             {"difference_to_full", "NLL - full [interval]", number, 4},
             {"band", "[band over all rows]", number, 4},
             {"p", "", CellFormat::p},
             {"on_front", "front", text},
             {"run", "", text},
             {"minus_replay.mean_nll", "", number},
             {"minus_replay.largest", "", number},
             {"minus_replay.largest_sequence", "", count},
             {"minus_replay.largest_token", "", count},
             {"minus_replay.tokens", "", count},
             {"minus_replay.tokens_with_other_steps", "", count}},
            {}};
}

std::vector<Cell> row_of(const PolicyPoint& point, const PolicyPoint::Exact* exact) {
    const PolicyOutcome& outcome = exact != nullptr ? exact->outcome : point.replayed;
    const std::vector<PolicyParameter>& parameters = point.spec.kind->parameters;
    const bool has = !parameters.empty() && point.spec.has(parameters.front().key);
    const std::string name = point.spec.text();
    std::vector<Cell> row{exact != nullptr ? "  rerun" : name + (point.spec.kind->causal ? "" : " (bound)"),
                          name,
                          point.spec.kind->name,
                          has ? Cell(point.spec.number(parameters.front().key)) : Cell(),
                          exact != nullptr ? "rerun" : "replay",
                          point.spec.kind->causal,
                          outcome.steps,
                          outcome.nll,
                          std::exp(outcome.nll),
                          outcome.flops,
                          outcome.difference,
                          outcome.band,
                          outcome.p,
                          outcome.on_front};
    if (exact != nullptr) {
        const RerunDifference& difference = exact->difference;
        const std::vector<Cell> more{exact->run,
                                     difference.difference,
                                     difference.largest,
                                     difference.largest_sequence,
                                     difference.largest_row,
                                     difference.tokens,
                                     difference.steps_changed};
        row.insert(row.end(), more.begin(), more.end());
    }
    row.resize(outcome_table(false).columns.size());
    return row;
}

void print_difference(const PolicyPoint& point) {
    const RerunDifference& difference = point.exact->difference;
    std::cout << point.spec.text() << ", rerun - replay: mean NLL " << fixed(difference.difference, 4)
              << "; largest of a token " << fixed(difference.largest, 4) << " at token "
              << difference.largest_row << " of sequence " << difference.largest_sequence << "; "
              << with_separators(difference.steps_changed) << " of " << with_separators(difference.tokens)
              << " tokens stopped elsewhere; run " << point.exact->run << "\n";
}

} // namespace

DataTable PolicyReport::table() const {
    DataTable table = outcome_table(layers_as_steps);
    for (const PolicyPoint& point : points) {
        table.rows.push_back(row_of(point, nullptr));
        if (point.exact) {
            table.rows.push_back(row_of(point, &*point.exact));
        }
    }
    return table;
}

void PolicyReport::print(const IntervalOptions& intervals) const {
    const bool reran =
        std::any_of(points.begin(), points.end(), [](const PolicyPoint& point) { return point.exact; });
    std::cout << visible(run) << "  replay from recorded signals" << (reran ? ", and exact reruns" : "")
              << ", " << with_separators(scored) << " scored tokens, "
              << (layers_as_steps ? "exits after blocks" : "steps") << " 0 to " << max_steps << "\n";
    std::cout << text_of(table());
    for (const PolicyPoint& point : points) {
        if (point.exact) {
            print_difference(point);
        }
    }
    std::cout << intervals.sentence(resampling) << "\n";
    print_notices(notices);
}

nlohmann::json PolicyReport::to_json(const IntervalOptions& intervals) const {
    nlohmann::json rows = nlohmann::json::array();
    const nlohmann::json all = json_of(table());
    for (std::size_t at = 0; const PolicyPoint& point : points) {
        rows.push_back(all[at++]);
        rows.back()["steps_histogram"] = point.histogram;
        if (point.exact) {
            rows.back()["rerun"] = all[at++];
        }
    }
    nlohmann::json report{{"run", run},
                          {"scored_tokens", scored},
                          {"max_steps", max_steps},
                          {"layers_as_steps", layers_as_steps},
                          {"halted", halted},
                          {"points", rows},
                          {"notices", notices}};
    intervals.write_to(report, resampling);
    return report;
}

} // namespace ponderscope::cli
