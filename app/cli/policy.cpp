// SPDX-License-Identifier: GPL-3.0-or-later
// `policy`: what halting policies would do on a recorded run, what they do when the model is run with them,
// and what they cost.
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/policy_report.h"
#include "app/cli/policy_sweeps.h"
#include "app/cli/reruns.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/policy/rerun_difference.h"
#include "core/policy/scored_rows.h"
#include "core/record/rerun.h"
#include "core/stats/front.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <sstream>
#include <variant>

namespace ponderscope::cli {
namespace {

struct PolicyVerb : ReportOptions {
    std::vector<std::string> policies;
    std::vector<std::string> sweeps;
    RerunOptions reruns;

    void run();
};

/// Fills in intervals and the front of outcomes, all of replays or all of reruns. \p settings, \p outcomes:
/// in the order of \p specs, full first.
Resampling compare(const std::vector<PolicySpec>& specs, std::vector<ScoredSetting> settings,
                   const RowLayout& rows, const BootstrapOptions& options,
                   const std::vector<PolicyOutcome*>& outcomes) {
    const bool flops = std::ranges::none_of(settings, [](const auto& one) { return one.flops.empty(); });
    std::vector<std::vector<double>> nll;
    for (ScoredSetting& one : settings) {
        nll.push_back(std::move(one.nll));
    }
    const PairedDifferences differences = paired_differences(nll.front(), nll, rows, options);
    std::vector<FrontPoint> places;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        PolicyOutcome& outcome = *outcomes[i];
        outcome.difference = differences.each[i];
        outcome.band = differences.bands[i];
        outcome.p = differences.p[i];
        places.push_back(
            {specs[i].kind->causal ? (flops ? outcome.flops : outcome.steps) : std::nan(""), outcome.nll});
    }
    const std::vector<bool> front = pareto_front(places);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        outcomes[i]->on_front = front[i];
    }
    return differences.resampling;
}

/// The signals that the policies need. Reading the others would double the time for a long run.
std::vector<PolicySignal> signals_of(const std::vector<PolicySpec>& specs) {
    std::vector<PolicySignal> signals{PolicySignal::nll};
    for (const PolicySpec& spec : specs) {
        signals.insert(signals.end(), spec.kind->needs.begin(), spec.kind->needs.end());
        if (spec.kind->find("rate") != nullptr && !spec.has("rate")) { // default: the model's own rule
            signals.push_back(PolicySignal::continue_value);
        }
    }
    return signals;
}

void PolicyVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    PolicyReport report;
    std::vector<PolicySpec> specs = read_policies(policies, sweeps, report.notices);
    const RunReference where = parse_run_reference(reference);
    const TraceReader reader = TraceReader::open(where.trace);
    const RunInfo run = find_run(reader, where.run);
    reruns.check(reader);
    const ReplayTable table =
        ReplayTable::load(reader, run, printer.sink(), bootstrap.stop, {}, signals_of(specs));
    report.run = table.run;
    report.max_steps = table.columns.max_steps();
    report.layers_as_steps = table.layers_as_steps;
    report.halted = table.halted;
    ScoredRows scored(table);
    scored.add_up_clusters(bootstrap);
    // A block bootstrap uses one block length for all intervals of the report. The run determines it.
    const BootstrapOptions settled = with_block_of_run(table, scored, bootstrap);
    std::vector<ScoredSetting> settings;
    ReplayResult replayed;
    for (PolicySpec& spec : specs) {
        if (bootstrap.stop.stop_requested()) {
            throw Cancelled();
        }
        spec = spelled_out(spec, table.context);
        replay(table, spec, replayed);
        settings.push_back(scored.of(spec.text(), replayed));
        report.scored = replayed.scored;
        report.points.push_back(
            {spec, {replayed.mean_steps, replayed.mean_nll, replayed.mean_flops}, replayed.histogram, {}});
    }
    if (reruns.wanted()) {
        const std::vector<RunInfo> runs = reruns.make(reader, run, table, specs, printer, bootstrap.stop);
        const TraceReader exact_reader = TraceReader::open(reruns.trace(reader));
        for (std::size_t i = 0; i < specs.size(); ++i) {
            replay(table, specs[i], replayed);
            RerunDifference exact =
                rerun_difference(table, replayed, reader, run, exact_reader, runs[i], bootstrap.stop);
            const PolicyOutcome outcome{exact.mean_steps, exact.mean_nll, exact.mean_flops};
            report.points[i].exact = {exact_reader.name_of(runs[i]), outcome, std::move(exact)};
        }
    }

    std::vector<PolicyOutcome*> outcomes;
    for (PolicyPoint& point : report.points) {
        outcomes.push_back(&point.replayed);
    }
    report.resampling = compare(specs, std::move(settings), scored.layout(), settled, outcomes);
    if (reruns.wanted()) {
        std::vector<std::span<const float>> nll;
        for (const PolicyPoint& point : report.points) {
            nll.emplace_back(point.exact->difference.nll);
        }
        ScoredRows reran(table, nll);
        reran.add_up_clusters(bootstrap);
        std::vector<ScoredSetting> exact;
        outcomes.clear();
        for (PolicyPoint& point : report.points) {
            exact.push_back(reran.of(point.spec.text(), point.exact->difference));
            outcomes.push_back(&point.exact->outcome);
        }
        compare(specs, std::move(exact), reran.layout(), settled, outcomes);
    }
    printer.finish();

    if (report.halted) {
        report.notices.emplace_back(
            "tokens of this run halted, so no policy can be seen beyond the steps that "
            "ran; record with --policy full to see all of them.");
    }
    if (!run.complete) {
        report.notices.emplace_back("the run is partial.");
    }
    for (const std::string& notice : report.resampling.notices()) {
        report.notices.push_back(notice);
    }
    report.notices.emplace_back(
        reruns.wanted()
            ? "a replay assumes that tokens do not affect each other; where it differs from the rerun, the "
              "rerun is right."
            : "a replay assumes that tokens do not affect each other; single tokens can differ by nats from "
              "a rerun (--rerun CHECKPOINT).");
    if (!give([&] { return csv_of(report.table()); }, [&] { return report.to_json(intervals); })) {
        report.print(intervals);
    }
}

std::string list_of_policies() {
    std::ostringstream text;
    text << "Policies:\n";
    for (const PolicyKind& kind : policy_kinds()) {
        std::string usage = kind.name;
        const char* separator = ":";
        bool bracket = false;
        for (const PolicyParameter& parameter : kind.parameters) {
            if (parameter.absent != PolicyParameter::Absent::refused && !bracket) {
                usage += '[';
                bracket = true;
            }
            usage += separator + parameter.key + "=" +
                     (parameter.absent == PolicyParameter::Absent::preset
                          ? std::visit([](auto number) { return shortest(number); }, parameter.value)
                          : "...");
            separator = ",";
        }
        usage += bracket ? "]" : "";
        text << "  " << padded(usage, 36) << kind.rule << "\n";
    }
    text
        << "  signal:name=...,theta=...[,stops=below]\n"
        << "                                      the recorded signal of that name is below theta at a step, "
           "or, with stops=above, has reached it\n";
    text << "Keys in brackets may be left out: the number that stands there is taken, or, in the place of "
            "dots, the model's own threshold (learned), the mean steps of its own rule (uniform, geometric), "
            "0 "
            "(oracle). The first key is the one that --sweep threshold=... moves, and need not be given "
            "then.\n"
            "Example:\n"
            "  ponderscope policy story.ponder --policy learned --policy calm_margin:lambda=0.9 --policy "
            "oracle\n"
            "  ponderscope policy story.ponder --policy learned --policy uniform --sweep rate=0.5:2.5:5\n"
            "  ponderscope policy story.ponder --policy entropy --sweep theta=0.1:4:8:log --csv front.csv\n"
            "  ponderscope policy story.ponder#adaponderlm-neox-1m --policy calm_margin --sweep "
            "threshold=0.5:0.9:3 "
            "--rerun sample_models/adaponderlm-neox-1m";
    return text.str();
}

} // namespace

void add_policy(CLI::App& program) {
    auto verb = std::make_shared<PolicyVerb>();
    CLI::App* app = add_verb(program, "policy");
    verb->add_run(*app);
    app->add_option("--policy", verb->policies,
                    "A policy, such as learned or entropy:theta=2.5 (--help-all lists all); may be repeated")
        ->required()
        ->type_name("SPEC");
    app->add_option("--sweep", verb->sweeps,
                    "Vary a key, [KIND:]KEY=FIRST:LAST:COUNT or [KIND:]KEY=VALUE,VALUE,... (:log after COUNT "
                    "for equal ratios). The KEY threshold is the first key of each policy. Without KIND, of "
                    "every policy that has the key. May be repeated")
        ->type_name("SWEEP")
        ->allow_extra_args(false);
    verb->reruns.add_to(*app);
    verb->add_to(*app, "Also write the rows as CSV");
    app->footer(list_of_policies());
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
