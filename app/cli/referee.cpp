// SPDX-License-Identifier: GPL-3.0-or-later
// `referee`: the NLL of every halting rule at equal mean steps and at equal FLOPs.
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/reruns.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/policy/matched_reruns.h"
#include "core/policy/thresholds.h"
#include "core/record/rerun.h"
#include "core/stats/scan.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

namespace ponderscope::cli {
namespace {

struct RefereeVerb : ReportOptions {
    std::vector<std::string> policies;
    std::vector<double> costs;
    std::string against = blind_rule;
    int settings = 33;
    std::filesystem::path tex;
    RerunOptions reruns;

    void run();

private:
    [[nodiscard]] std::vector<std::string> rules_of(const ReplayTable& table) const;
    [[nodiscard]] MatchedComparison rerun(const TraceReader& reader, const RunInfo& run,
                                          const ReplayTable& table, const ScoredRows& scored,
                                          const MatchedComparison& replayed, const BootstrapOptions& settled,
                                          ProgressPrinter& printer) const;
};

/// The report of the verb.
struct RefereeReport {
    std::string run;
    std::int64_t scored = 0;
    std::optional<MatchedPoint> own; ///< the model's own rule at its own threshold
    MatchedComparison replayed;
    std::optional<MatchedComparison> exact;
    Notices notices;

    void print(const IntervalOptions& intervals) const;
    [[nodiscard]] nlohmann::json to_json(const IntervalOptions& intervals) const;
    [[nodiscard]] std::string to_latex(const IntervalOptions& intervals) const;
    /// A row for each cell.
    [[nodiscard]] DataTable cells() const;
    /// Calls \p use with "replay" or "rerun", "steps" or "flops" (the axis), and every row's cells on it.
    template <typename Use>
    void for_each_table(Use use) const {
        for (const MatchedComparison* one : {&replayed, exact ? &*exact : nullptr}) {
            if (one == nullptr) {
                continue;
            }
            const char* kind = one == &replayed ? "replay" : "rerun";
            use(kind, "steps", *one, &MatchedRow::at_steps);
            if (!one->rows.front().at_flops.empty()) {
                use(kind, "flops", *one, &MatchedRow::at_flops);
            }
        }
    }
};

std::string cost_text(double cost, bool flops) {
    return flops ? fixed(cost / 1e9, 6) + " GFLOP" : fixed(cost, 2) + " steps";
}

/// "4.2166 -0.131 [-0.196, -0.066]*"
std::string cell_text(const MatchedCell& cell) {
    const Estimate& bounds = std::isnan(cell.band.low) ? cell.difference : cell.band;
    return fixed(cell.nll.value, 4) + " " + fixed(cell.difference.value, 3) + " [" + fixed(bounds.low, 3) +
           ", " + fixed(bounds.high, 3) + "]" + (cell.better ? "*" : "");
}

std::string row_name(const MatchedRow& row) {
    return row.name + (row.plain ? " (plain model)" : row.causal ? "" : " (bound)");
}

/// Rules as rows, costs as columns.
DataTable table_of(const std::string& kind, const std::string& axis, const MatchedComparison& found,
                   std::vector<MatchedCell> MatchedRow::*cells) {
    const bool flops = axis == "flops";
    DataTable table;
    table.columns.push_back(
        {"rule", std::string(flops ? "FLOPs (" : "mean steps (") + kind + ")", CellFormat::text});
    for (const MatchedCell& cell : found.rows.front().*cells) {
        table.columns.push_back({"", cost_text(cell.cost, flops), CellFormat::text});
    }
    for (const MatchedRow& row : found.rows) {
        if (row.plain && !flops) {
            continue;
        }
        table.rows.push_back({row_name(row)});
        for (const MatchedCell& cell : row.*cells) {
            table.rows.back().push_back(std::isnan(cell.nll.value) ? Cell() : cell_text(cell));
        }
    }
    return table;
}

std::string point_text(const MatchedPoint& point) {
    return fixed(point.steps, 3) + " steps" +
           (std::isnan(point.flops) ? "" : ", " + fixed(point.flops / 1e9, 6) + " GFLOP") + ", NLL " +
           fixed(point.nll, 4);
}

void RefereeReport::print(const IntervalOptions& intervals) const {
    std::cout << visible(run) << "  " << with_separators(scored) << " scored tokens\n";
    if (own) {
        std::cout << "the model's own rule: " << own->policy << ", " << point_text(*own) << "\n";
    }
    std::cout << "NLL, and NLL minus the NLL of " << replayed.reference
              << " [simultaneous band], nats a token. Negative: lower NLL than " << replayed.reference
              << " at the same cost\n";
    for_each_table([](const auto&... of) { std::cout << "\n" << text_of(table_of(of...)); });
    std::cout
        << "\n* : thinks better. The whole band of NLL minus the NLL of the best blind rule lies below 0.\n"
        << "- : the rule does not reach this cost.\n"
        << "blind: the best rule that ignores the token: one depth for all tokens, or one of two "
           "depths drawn for each.\n"
        << "oracle: no rule has a lower NLL at this cost. Oracle intervals are pointwise, not "
           "simultaneous.\n"
        << "replay: recomputed from recorded signals, without the model."
        << (exact ? " rerun: the model run again under the rule." : "") << "\n"
        << intervals.sentence(replayed.resampling) << "\n";
    print_notices(notices);
}

nlohmann::json json_of_point(const MatchedPoint& point) {
    return {{"policy", point.policy},
            {"mean_steps", number_or_null(point.steps)},
            {"flops_per_token", number_or_null(point.flops)},
            {"mean_nll", number_or_null(point.nll)}};
}

nlohmann::json RefereeReport::to_json(const IntervalOptions& intervals) const {
    nlohmann::json curves = nlohmann::json::array();
    for (const MatchedComparison* one : {&replayed, exact ? &*exact : nullptr}) {
        for (const MatchedRow& row : one != nullptr ? one->rows : std::vector<MatchedRow>()) {
            for (const MatchedPoint& point : row.curve) {
                curves.push_back(json_of_point(point));
                curves.back()["kind"] = one == &replayed ? "replay" : "rerun";
                curves.back()["rule"] = row.name;
            }
        }
    }
    nlohmann::json report{{"run", run},
                          {"scored_tokens", scored},
                          {"own", own ? json_of_point(*own) : nlohmann::json(nullptr)},
                          {"against", replayed.reference},
                          {"matched", json_of(cells())},
                          {"curves", curves}};
    write_notices(report, notices);
    intervals.write_to(report, replayed.resampling);
    return report;
}

DataTable RefereeReport::cells() const {
    DataTable table{{},
                    {{"kind", ""},
                     {"at_equal", ""},
                     {"policy", ""},
                     {"causal", ""},
                     {"plain_model", ""},
                     {"cost", ""},
                     {"nll", ""},
                     {"difference", ""},
                     {"band", ""},
                     {"thinks_better", ""}},
                    {}};
    for_each_table([&](const char* kind, const char* axis, const MatchedComparison& found,
                       std::vector<MatchedCell> MatchedRow::*of) {
        for (const MatchedRow& row : found.rows) {
            for (const MatchedCell& cell : row.*of) {
                table.rows.push_back({kind, axis, row.name, row.causal, row.plain, cell.cost, cell.nll,
                                      cell.difference, cell.band, cell.better});
            }
        }
    });
    return table;
}

/// Tables for \usepackage{booktabs}: rules as rows, costs as columns, in each cell the NLL and its difference
/// to the reference.
std::string RefereeReport::to_latex(const IntervalOptions& intervals) const {
    std::string text = "% NLL, and NLL minus the NLL of " + replayed.reference +
                       " at equal cost with simultaneous bands (nats a token), " + visible(run) +
                       "\n% *: the whole band of NLL minus the NLL of the best blind rule lies below 0\n% " +
                       intervals.sentence(replayed.resampling) + "\n";
    if (own) {
        text += "% the model's own rule: " + own->policy + ", " + point_text(*own) + "\n";
    }
    for_each_table([&](const auto&... of) { text += latex_of(table_of(of...)) + "\n"; });
    return text;
}

std::vector<std::string> RefereeVerb::rules_of(const ReplayTable& table) const {
    const std::vector<std::string> known = matched_rules(table);
    std::vector<std::string> rules = policies.empty() ? known : policies;
    for (const std::string& always : {against, std::string(blind_rule)}) {
        if (std::ranges::find(rules, always) == rules.end()) {
            rules.insert(rules.begin(), always);
        }
    }
    for (std::string& name : rules) {
        const PolicyKind* kind = find_policy_kind(name);
        if (kind != nullptr && kind->is_signal_rule() && table.can(*kind)) {
            name = kind->name;
        } else if (std::ranges::find(known, name) == known.end()) {
            throw InputError(ErrorId::policy_unsuited,
                             table.run + ": expected a rule that the run can replay (" + joined(known) +
                                 "), found \"" + name + "\". Name a rule that decides before step " +
                                 std::to_string(table.context.max_steps) +
                                 ", without its parameters, or a signal as signal:name=NAME, or record the "
                                 "run with --record steps "
                                 "--policy full.");
        }
    }
    return rules;
}

/// Reruns the settings on both sides of each cost, and the setting "full", which every rule shares.
MatchedComparison RefereeVerb::rerun(const TraceReader& reader, const RunInfo& run, const ReplayTable& table,
                                     const ScoredRows& scored, const MatchedComparison& replayed,
                                     const BootstrapOptions& settled, ProgressPrinter& printer) const {
    std::vector<PolicySpec> specs;
    const auto place_of = [&](const std::string& text) {
        const PolicySpec spec = spelled_out(PolicySpec::parse(text), table.context);
        const auto found = std::ranges::find(specs, spec);
        if (found != specs.end()) {
            return static_cast<std::size_t>(found - specs.begin());
        }
        specs.push_back(spec);
        return specs.size() - 1;
    };
    std::vector<double> wanted;
    for (const MatchedCell& cell : replayed.rows.front().at_steps) {
        wanted.push_back(cell.cost);
    }
    std::vector<RerunRule> rules;                 // rules that the model can run
    std::vector<std::vector<std::size_t>> places; // for each rule: indices into specs
    for (const MatchedRow& row : replayed.rows) {
        if (!row.causal || row.plain) {
            continue;
        }
        rules.push_back({row.name, {}});
        places.emplace_back();
        for (const std::string& text : settings_around(row, wanted)) {
            places.back().push_back(place_of(text));
        }
        // In the rerun, the rule's own settings may not reach a cost: "full" extends its curve to all steps.
        places.back().push_back(place_of("full"));
    }
    const std::vector<RunInfo> runs =
        reruns.make(reader, run, table, specs, printer, intervals.bootstrap.stop);
    for (std::size_t i = 0; i < rules.size(); ++i) {
        for (const std::size_t at : places[i]) {
            rules[i].runs.push_back(runs[at]);
        }
    }
    return compare_reruns(table, scored, reader, run, TraceReader::open(reruns.trace(reader)), rules, against,
                          wanted, settled);
}

/// Finds the point of the learned rule at the model's own threshold.
void note_own_rule(const PolicyContext& context, RefereeReport& report) {
    if (std::isnan(context.own_threshold)) {
        return;
    }
    const std::string spec = policy_at(*PolicySpec::parse("learned").kind, context.own_threshold).text();
    for (const MatchedRow& row : report.replayed.rows) {
        for (const MatchedPoint& point : row.curve) {
            if (point.policy == spec) {
                report.own = point;
            }
        }
    }
}

/// Notes plain models without a cell, because no rule reaches their FLOPs.
void note_plain_models(RefereeReport& report) {
    for (const MatchedRow& row : report.replayed.rows) {
        const auto& cells = row.at_flops;
        if (row.plain &&
            std::ranges::all_of(cells, [](const MatchedCell& cell) { return std::isnan(cell.nll.value); })) {
            report.notices.push_back(
                {NoticeId::policy_plain_model, "plain model " + row.name + ": " +
                                                   fixed(row.curve.front().flops / 1e9, 6) +
                                                   " GFLOP a token, NLL " + fixed(row.curve.front().nll, 4) +
                                                   "; no rule reaches this number of FLOPs."});
        }
    }
}

void RefereeVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    const RunReference where = parse_run_reference(reference);
    const TraceReader reader = TraceReader::open(where.trace);
    reruns.check(reader);
    const RunInfo run = find_run(reader, where.run);
    std::vector<PolicySignal> also;
    for (const std::string& name : policies) {
        if (const PolicyKind* kind = find_policy_kind(name)) {
            also.insert(also.end(), kind->needs.begin(), kind->needs.end());
        }
    }
    const ReplayTable table = ReplayTable::load(reader, run, printer.sink(), bootstrap.stop, also);
    const std::vector<std::string> rules = rules_of(table);
    ScoredRows scored(table);
    scored.add_up_clusters(bootstrap);
    const RowLayout& rows = scored.layout();
    const BootstrapOptions settled = with_block_of_run(table, scored, bootstrap);
    const double reached = rows.mean(scored.of(table.ran));
    MatchedCosts wanted{costs.empty() ? even_costs(reached, 4) : costs, {}};
    if (costs.empty() && table.context.learned_rate > 0 && table.context.learned_rate < reached) {
        wanted.steps.push_back(table.context.learned_rate);
    }
    std::ranges::sort(wanted.steps);
    std::vector<MatchedRule> plain;
    for (const RunInfo& one : plain_runs(reader.runs(), run)) {
        MatchedRule found = plain_rule(reader, one, scored);
        if (!found.settings.empty() && one.flops_sum > 0) {
            wanted.flops.push_back(rows.mean(found.settings.front().flops));
            plain.push_back(std::move(found));
        }
    }
    RefereeReport report;
    report.run = table.run;
    report.scored = rows.tokens();
    const auto base = static_cast<std::size_t>(std::ranges::find(rules, against) - rules.begin());
    report.replayed = compare_matched(
        rules.size() + plain.size(),
        [&](std::size_t i, const MatchedCosts& at) {
            return i < rules.size() ? replayed_rule(table, scored, rules[i], settings, at)
                                    : std::move(plain[i - rules.size()]);
        },
        base, wanted, rows, settled);
    note_own_rule(table.context, report);
    note_plain_models(report);
    if (reruns.wanted()) {
        report.exact = rerun(reader, run, table, scored, report.replayed, settled, printer);
    }
    printer.finish();
    append_to(report.notices,
              notices_of_replays(table, run, report.replayed.resampling, report.exact.has_value()));
    if (!tex.empty()) {
        write_file_atomically(tex, report.to_latex(intervals));
    }
    if (!give([&] { return csv_of(report.cells()); }, [&] { return report.to_json(intervals); })) {
        report.print(intervals);
    }
}

} // namespace

void add_referee(CLI::App& program) {
    auto [app, verb] = add_verb<RefereeVerb>(program, "referee");
    verb.add_run(app, "TRACE.ponder#RUN, recorded with --record steps --policy full");
    app.add_option("--policy", verb.policies,
                   "Kinds of policies, such as entropy (not entropy:theta=1) or "
                   "signal:name=gate,stops=below; by default all kinds that the run can replay")
        ->type_name("KIND");
    app.add_option(
           "--steps", verb.costs,
           "Mean steps at which to compare; by default a quarter, a half and three quarters of the mean "
           "steps of the run, and the mean steps of the model's own rule")
        ->delimiter(',')
        ->check(number_from(0.0));
    app.add_option("--against", verb.against,
                   "Reference rule; blind: the best rule that ignores the token (lower convex hull "
                   "of the fixed depths)")
        ->capture_default_str();
    add_number(app, "--settings", verb.settings, "Number of thresholds of each kind", 3, 1000);
    verb.reruns.add_to(app);
    app.add_option("--tex", verb.tex, "Also write the tables as LaTeX (booktabs)")
        ->type_name("FILE.tex")
        ->check(replaces_no_trace());
    verb.add_to(app, "Also write the tables as CSV");
    app.footer(
        "The same as a figure: kind matched_rules, resources/docs/figures.md. What the numbers assume: "
        "resources/docs/statistics.md.\n"
        "Example:\n  ponderscope referee story.ponder#adaponderlm-neox-1m --tex rules.tex\n"
        "  ponderscope referee story.ponder --policy learned --policy entropy --steps 1,2 --rerun MODEL");
}

} // namespace ponderscope::cli
