// SPDX-License-Identifier: GPL-3.0-or-later
// `policy`: replays halting policies on a recorded run, or reruns the model with them. Reports the cost.
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/reruns.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/policy/policy_rows.h"
#include "core/policy/rerun_difference.h"
#include "core/policy/scored_rows.h"
#include "core/record/rerun.h"
#include "core/stats/front.h"
#include "core/stats/scan.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <variant>

namespace ponderscope::cli {
namespace {

/// One --sweep option: [KIND:]KEY=VALUES.
struct NamedSweep {
    std::string text;
    std::string kind; ///< empty: all policies that have the key
    Sweep over;

    explicit NamedSweep(const std::string& given) : text(given) {
        const std::size_t colon = given.find(':');
        const bool named = colon < given.find('=');
        kind = named ? given.substr(0, colon) : std::string();
        over = Sweep::parse(named ? given.substr(colon + 1) : given);
    }
    /// The parameter of \p swept that this sweep varies; nullptr: none.
    [[nodiscard]] const PolicyParameter* of(const PolicyKind& swept) const {
        if ((!kind.empty() && kind != swept.name.substr(0, swept.name.find(':'))) ||
            swept.parameters.empty()) {
            return nullptr;
        }
        return over.key == "threshold" ? &swept.parameters.front() : swept.find(over.key);
    }
    /// The values for this parameter. A sweep of "threshold" covers parameters of all kinds; those that need
    /// whole numbers get only the whole numbers of the list.
    [[nodiscard]] std::vector<double> values(const PolicyParameter& parameter) const {
        std::vector<double> fitting = over.values;
        if (parameter.whole && over.key == "threshold") {
            std::erase_if(fitting, [](double value) { return value != std::floor(value); });
        }
        return fitting;
    }
};

/// Returns `full`, then the policies in the given order, each with the settings of its sweeps
/// ([KIND:]KEY=VALUES). A policy that already sets the swept key also keeps its own row. \p notices: policies
/// to which a sweep of "threshold" does not apply. InputError: a key that no policy has, or an invalid spec.
std::vector<PolicySpec> read_policies(const std::vector<std::string>& policies,
                                      const std::vector<std::string>& sweeps, Notices& notices) {
    const std::vector<NamedSweep> all(sweeps.begin(), sweeps.end());
    for (const NamedSweep& one : all) {
        std::vector<std::string> keys;
        bool known = false;
        for (const std::string& text : policies) {
            const PolicyKind& kind = PolicySpec::named_kind(text);
            known = known || one.of(kind) != nullptr;
            if (!kind.parameters.empty()) {
                keys.push_back(kind.name + ": " + joined(kind.parameters, &PolicyParameter::key));
            }
        }
        if (!known) {
            throw InputError(ErrorId::policy_value,
                             "--sweep " + one.text + ": no policy has the key " +
                                 (one.kind.empty() ? "" : one.kind + ":") + one.over.key +
                                 ". The keys of the policies are " + (keys.empty() ? "none" : joined(keys)) +
                                 "; threshold stands for the first key of each policy.");
        }
    }
    std::vector<PolicySpec> specs{PolicySpec::parse("full")};
    const auto add = [&](const PolicySpec& spec) {
        if (std::ranges::find(specs, spec) == specs.end()) {
            specs.push_back(spec);
        }
    };
    for (const std::string& text : policies) {
        const PolicyKind& kind = PolicySpec::named_kind(text);
        bool swept = false;
        for (const NamedSweep& one : all) {
            const PolicyParameter* parameter = one.of(kind);
            if (parameter == nullptr) {
                continue;
            }
            const bool given = text.find(":" + parameter->key + "=") != std::string::npos ||
                               text.find("," + parameter->key + "=") != std::string::npos;
            if (given) {
                add(PolicySpec::parse(text)); // an own row in addition to the swept settings
            }
            swept = true;
            const std::vector<double> values = one.values(*parameter);
            if (values.empty()) {
                notices.push_back({NoticeId::policy_not_swept,
                                   "--sweep " + one.text + " leaves out " + kind.name + ", whose key " +
                                       parameter->key + " needs whole numbers. Add --sweep " + kind.name +
                                       ":" + parameter->key + "=FIRST:LAST:COUNT."});
                continue;
            }
            // Parsing needs a value for the swept key. If \p text has none, use the first value of the sweep.
            const PolicySpec first =
                PolicySpec::parse(given ? text
                                        : text + (text.find(':') == std::string::npos ? ":" : ",") +
                                              parameter->key + "=" + shortest(values.front()));
            for (const double value : values) {
                add(first.with(parameter->key, value));
            }
        }
        if (!swept) {
            add(PolicySpec::parse(text));
        }
    }
    return specs;
}

/// A policy at one setting.
struct PolicyPoint {
    PolicySpec spec;
    PolicyOutcome replayed;
    std::vector<std::int64_t> histogram; ///< number of scored tokens that stopped at step k in the replay
    struct Exact {
        std::string run; ///< TRACE#RUN
        PolicyOutcome outcome;
        RerunDifference difference; ///< difference from the replay
    };
    std::optional<Exact> exact;
};

/// The report of `ponderscope policy` on a run.
struct PolicyReport {
    const ReplayTable& replayed;
    Notices notices;
    std::int64_t scored = 0;
    std::vector<PolicyPoint> points; ///< full first
    Resampling resampling;

    void print(const IntervalOptions& intervals) const;
    [[nodiscard]] nlohmann::json to_json(const IntervalOptions& intervals) const;
    /// A table of the points, each followed by its rerun.
    [[nodiscard]] DataTable table() const;
};

/// One row: the replay of a point or, if \p exact is not null, its rerun. \p exit: steps are blocks.
DataTable row_of(const PolicyPoint& point, const PolicyPoint::Exact* exact, bool exit) {
    using enum CellFormat;
    const PolicyOutcome& outcome = exact != nullptr ? exact->outcome : point.replayed;
    const PolicyKind& kind = *point.spec.kind;
    const std::string name = point.spec.text();
    const bool has = !kind.parameters.empty() && point.spec.has(kind.parameters.front().key);
    const auto apart = [&](auto RerunDifference::*value) {
        return exact != nullptr ? Cell(exact->difference.*value) : Cell();
    };
    DataTable row;
    row.add({"", "policy", text}, exact != nullptr ? "  rerun" : name + (kind.causal ? "" : " (bound)"));
    row.add({"policy", "", text}, name);
    row.add({"name", "", text}, kind.name);
    row.add({"threshold", ""}, has ? Cell(point.spec.number(kind.parameters.front().key)) : Cell());
    row.add({"kind", "", text}, exact != nullptr ? "rerun" : "replay");
    row.add({"causal", "", text}, kind.causal);
    row.add({"mean_steps", exit ? "exit" : "steps", number, 3}, outcome.steps);
    row.add({"mean_nll", "NLL"}, outcome.nll);
    row.add({"perplexity", "ppl", number, 2}, std::exp(outcome.nll));
    row.add({"flops_per_token", "FLOPs", si}, outcome.flops);
    row.add({"difference_to_full", "NLL - full [interval]"}, outcome.difference);
    row.add({"band", "[band over all rows]"}, outcome.band);
    row.add({"p", "", CellFormat::p}, outcome.p);
    row.add({"on_front", "front", text}, outcome.on_front);
    row.add({"run", "", text}, exact != nullptr ? Cell(exact->run) : Cell());
    row.add({"minus_replay.mean_nll", ""}, apart(&RerunDifference::difference));
    row.add({"minus_replay.largest", ""}, apart(&RerunDifference::largest));
    row.add({"minus_replay.largest_sequence", "", count}, apart(&RerunDifference::largest_sequence));
    row.add({"minus_replay.largest_token", "", count}, apart(&RerunDifference::largest_row));
    row.add({"minus_replay.tokens", "", count}, apart(&RerunDifference::tokens));
    row.add({"minus_replay.tokens_with_other_steps", "", count}, apart(&RerunDifference::steps_changed));
    return row;
}

void print_difference(const PolicyPoint& point) {
    const RerunDifference& difference = point.exact->difference;
    std::cout << point.spec.text() << ", rerun - replay: mean NLL " << fixed(difference.difference, 4)
              << "; largest of a token " << fixed(difference.largest, 4) << " at token "
              << difference.largest_row << " of sequence " << difference.largest_sequence << "; "
              << with_separators(difference.steps_changed) << " of " << with_separators(difference.tokens)
              << " tokens stopped at another step; run " << point.exact->run << "\n";
}

DataTable PolicyReport::table() const {
    DataTable table;
    const auto add = [&](const PolicyPoint& point, const PolicyPoint::Exact* exact) {
        DataTable row = row_of(point, exact, replayed.layers_as_steps);
        table.columns = std::move(row.columns);
        table.rows.push_back(std::move(row.rows.front()));
    };
    for (const PolicyPoint& point : points) {
        add(point, nullptr);
        if (point.exact) {
            add(point, &*point.exact);
        }
    }
    return table;
}

void PolicyReport::print(const IntervalOptions& intervals) const {
    const bool reran =
        std::ranges::any_of(points, [](const PolicyPoint& point) { return point.exact.has_value(); });
    std::cout << visible(replayed.run) << "  replay from recorded signals"
              << (reran ? ", and exact reruns" : "") << ", " << with_separators(scored) << " scored tokens, "
              << (replayed.layers_as_steps ? "exits after blocks" : "steps") << " 0 to "
              << replayed.context.max_steps << "\n";
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
    nlohmann::json report{{"run", replayed.run},
                          {"scored_tokens", scored},
                          {"max_steps", replayed.context.max_steps},
                          {"layers_as_steps", replayed.layers_as_steps},
                          {"halted", replayed.halted},
                          {"points", rows}};
    write_notices(report, notices);
    intervals.write_to(report, resampling);
    return report;
}

struct PolicyVerb : ReportOptions {
    std::vector<std::string> policies;
    std::vector<std::string> sweeps;
    std::filesystem::path per_token;
    RerunOptions reruns;

    void run();
};

/// Appends to \p text a row for each token with its replay and, unless \p rerun is null, its rerun.
void add_tokens(std::string& text, const ReplayTable& table, const PolicySpec& spec,
                const ReplayResult& replayed, const RerunDifference* rerun) {
    for (std::size_t i = 0; i < table.tokens(); ++i) {
        text += "\"" + spec.text() + "\"," + std::to_string(table.places[i].sequence) + "," +
                std::to_string(table.places[i].position) + "," + std::to_string(replayed.steps[i]) + "," +
                shortest(replayed.nll[i]) + ",";
        text +=
            rerun == nullptr ? ",\n" : std::to_string(rerun->steps[i]) + "," + shortest(rerun->nll[i]) + "\n";
    }
}

/// Fills in intervals and the front of the outcomes, which are all replays or all reruns. \p settings, \p
/// outcomes: in the order of \p specs, full first.
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
    Notices notices;
    std::vector<PolicySpec> specs = read_policies(policies, sweeps, notices);
    const RunReference where = parse_run_reference(reference);
    const TraceReader reader = TraceReader::open(where.trace);
    const RunInfo run = find_run(reader, where.run);
    reruns.check(reader);
    const ReplayTable table =
        ReplayTable::load(reader, run, printer.sink(), bootstrap.stop, {}, signals_of(specs));
    PolicyReport report{table, std::move(notices), 0, {}, {}};
    ScoredRows scored(table);
    scored.add_up_clusters(bootstrap);
    // A block bootstrap uses one block length for all intervals of the report. The run determines it.
    const BootstrapOptions settled = with_block_of_run(table, scored, bootstrap);
    std::vector<ScoredSetting> settings;
    ReplayResult replayed;
    std::string tokens = "policy,sequence,token,replay_steps,replay_nll,rerun_steps,rerun_nll\n";
    for (PolicySpec& spec : specs) {
        throw_if_stopped(bootstrap.stop);
        spec = spelled_out(spec, table.context);
        replay(table, spec, replayed);
        settings.push_back(scored.of(spec.text(), replayed));
        report.scored = replayed.scored;
        report.points.push_back(
            {spec, {replayed.mean_steps, replayed.mean_nll, replayed.mean_flops}, replayed.histogram, {}});
        if (!per_token.empty() && !reruns.wanted()) {
            add_tokens(tokens, table, spec, replayed, nullptr);
        }
    }
    if (reruns.wanted()) {
        const std::vector<RunInfo> runs = reruns.make(reader, run, table, specs, printer, bootstrap.stop);
        const TraceReader exact_reader = TraceReader::open(reruns.trace(reader));
        for (std::size_t i = 0; i < specs.size(); ++i) {
            replay(table, specs[i], replayed);
            RerunDifference exact =
                rerun_difference(table, replayed, reader, run, exact_reader, runs[i], bootstrap.stop);
            if (!per_token.empty()) {
                add_tokens(tokens, table, specs[i], replayed, &exact);
            }
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

    append_to(report.notices, notices_of_replays(table, run, report.resampling, reruns.wanted()));
    if (!per_token.empty()) {
        write_file_atomically(per_token, tokens);
    }
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
    text << "  signal:name=NAME,theta=...[,stops=below]\n"
         << "                                      the recorded signal NAME is below theta or, with "
            "stops=above, at least theta\n";
    text << "Keys in brackets are optional. Their default is the number shown or, for dots, the model's own "
            "threshold (learned), the mean steps of its own rule (uniform, geometric) or 0 (oracle). --sweep "
            "threshold=... varies the first key, which is then optional, too.\n"
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
    auto [app, verb] = add_verb<PolicyVerb>(program, "policy");
    verb.add_run(app);
    app.add_option("--policy", verb.policies,
                   "A policy, such as learned or entropy:theta=2.5 (--help-all lists all); may be repeated")
        ->required()
        ->type_name("SPEC");
    app.add_option(
           "--sweep", verb.sweeps,
           "Vary a key, [KIND:]KEY=FIRST:LAST:COUNT or [KIND:]KEY=VALUE,VALUE,... (:log after COUNT for "
           "equal ratios). The KEY threshold is the first key of each policy. Without KIND, every policy "
           "with this key is varied. May be repeated")
        ->type_name("SWEEP")
        ->allow_extra_args(false);
    verb.reruns.add_to(app);
    app.add_option("--per-token", verb.per_token,
                   "Also write steps and NLL of every token in the replay and the rerun")
        ->type_name("FILE.csv")
        ->check(replaces_no_trace());
    verb.add_to(app, "Also write the rows as CSV");
    app.footer(list_of_policies());
}

} // namespace ponderscope::cli
