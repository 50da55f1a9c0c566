// SPDX-License-Identifier: GPL-3.0-or-later
// `policy`: what halting policies would do on a recorded run, what they do when the model is run with them,
// and what they cost.
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/policy_report.h"
#include "app/cli/policy_sweeps.h"
#include "app/cli/report.h"
#include "app/cli/reruns.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/words.h"
#include "core/policy/rerun_difference.h"
#include "core/policy/scored_rows.h"
#include "core/policy/split.h"
#include "core/record/rerun.h"
#include "core/stats/front.h"
#include "core/stats/significance.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <variant>

namespace ponderscope::cli {
namespace {

/// The outcomes of the policies: one value for each row and setting.
struct Outcomes {
    ScoredRows scored;
    std::vector<ScoredSetting> settings;
};

struct PolicyVerb : ReportOptions {
    std::vector<std::string> policies;
    std::vector<std::string> sweeps;
    std::filesystem::path per_token;
    RerunOptions reruns;
    bool split = false;
    double within = 0.01;

    void run();
};

/// Fills in means, intervals and fronts of the points' outcomes, all replays or all reruns.
class Comparison {
public:
    /// \p split: settings are chosen on one half of the clusters, and all reported numbers are of the other
    /// half.
    Comparison(Outcomes found, const std::vector<PolicySpec>& specs, const BootstrapOptions& options,
               bool split)
        : specs_(specs), rows_(found.scored.layout()), options_(options) {
        std::optional<SplitRows> halves;
        if (split) {
            halves = split_rows(rows_, options.seed);
            rows_ = halves->reporting.layout;
            reported_ = found.scored.tokens_of(halves->reporting.rows);
            words_ = std::move(halves->words);
        }
        flops_ = std::all_of(found.settings.begin(), found.settings.end(),
                             [](const ScoredSetting& one) { return !one.flops.empty(); });
        for (ScoredSetting& one : found.settings) {
            std::vector<double>& cost = flops_ ? one.flops : one.steps;
            if (halves) {
                const SampleHalf& choosing = halves->choosing;
                chosen_nll_.push_back(choosing.layout.mean(choosing.of(one.nll)));
                chosen_costs_.push_back(choosing.layout.mean(choosing.of(cost)));
                mean_steps_.push_back(rows_.mean(halves->reporting.of(one.steps)));
                one.nll = halves->reporting.of(one.nll);
                cost = halves->reporting.of(cost);
            }
            nll_.push_back(std::move(one.nll));
            costs_.push_back(std::move(cost));
        }
    }

    /// \p outcomes: in the order of the specs.
    void compare(std::vector<PolicyOutcome*> outcomes) {
        const PairedDifferences differences = paired_differences(nll_.front(), nll_, rows_, options_);
        resampling_ = differences.resampling;
        const bool halved = !chosen_nll_.empty();
        std::vector<FrontPoint> places;
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
            PolicyOutcome& outcome = *outcomes[i];
            outcome.difference = differences.each[i];
            outcome.band = differences.bands[i];
            outcome.p = differences.p[i];
            if (halved) {
                outcome.steps = mean_steps_[i];
                outcome.nll = rows_.mean(nll_[i]);
                outcome.flops = flops_ ? rows_.mean(costs_[i]) : std::nan("");
            }
            const double cost = flops_ ? outcome.flops : outcome.steps;
            places.push_back({specs_[i].kind->causal ? (halved ? chosen_costs_[i] : cost) : std::nan(""),
                              halved ? chosen_nll_[i] : outcome.nll});
        }
        const std::vector<bool> front = pareto_front(places);
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
            outcomes[i]->on_front = front[i];
        }
    }

    /// For each policy with several settings: the cheapest setting that loses at most \p within nats against
    /// full depth on the choosing half.
    [[nodiscard]] std::vector<ChosenSetting> choose(bool exact, double within) const {
        std::vector<ChosenSetting> chosen;
        for (const std::string& family : families()) {
            std::optional<std::size_t> best;
            for (std::size_t i = 0; i < specs_.size(); ++i) {
                if (specs_[i].kind->name == family && chosen_nll_[i] - chosen_nll_.front() <= within &&
                    (!best || chosen_costs_[i] < chosen_costs_[*best])) {
                    best = i;
                }
            }
            ChosenSetting one{family, exact, best, {}};
            if (best) {
                std::vector<double> apart = nll_[*best];
                for (std::size_t t = 0; t < apart.size(); ++t) {
                    apart[t] -= nll_.front()[t];
                }
                const UnitSums units = unit_sums(rows_.sums(std::move(apart), 1), resampling_);
                one.equivalence = equivalence_test(units.column(0), units.tokens, within, 1 - options_.level);
            }
            chosen.push_back(std::move(one));
        }
        return chosen;
    }

    /// Fronts of policies that came in several settings, against the first of them.
    void gaps(bool exact, std::vector<FrontGap>& gaps) const {
        const std::vector<std::string> names = families();
        for (std::size_t i = 1; i < names.size(); ++i) {
            gaps.push_back({names[0], names[i], exact,
                            compare_fronts(settings(names[0]), settings(names[i]), rows_, options_)});
        }
    }

    [[nodiscard]] const Resampling& resampling() const { return resampling_; }
    [[nodiscard]] std::int64_t tokens() const { return rows_.tokens(); }
    [[nodiscard]] const std::string& words() const { return words_; }
    /// With a split: the tokens of the table that are in the reported half.
    [[nodiscard]] const std::vector<std::size_t>& reported() const { return reported_; }

private:
    /// Policies with several settings; of a bound none is chosen.
    [[nodiscard]] std::vector<std::string> families() const {
        std::vector<std::string> names;
        for (const PolicySpec& spec : specs_) {
            const auto many = std::count_if(specs_.begin(), specs_.end(),
                                            [&](const PolicySpec& other) { return other.kind == spec.kind; });
            if (many > 1 && spec.kind->causal &&
                std::find(names.begin(), names.end(), spec.kind->name) == names.end()) {
                names.push_back(spec.kind->name);
            }
        }
        return names;
    }
    /// The settings of policy \p name; with a split, only those on the policy's own front on the choosing
    /// half.
    [[nodiscard]] std::vector<FrontSetting> settings(const std::string& name) const {
        std::vector<std::size_t> mine;
        std::vector<FrontPoint> places;
        for (std::size_t i = 0; i < specs_.size(); ++i) {
            if (specs_[i].kind->name == name) {
                mine.push_back(i);
                places.push_back(!chosen_nll_.empty() ? FrontPoint{chosen_costs_[i], chosen_nll_[i]}
                                                      : FrontPoint{});
            }
        }
        const std::vector<bool> front = pareto_front(places);
        std::vector<FrontSetting> family;
        for (std::size_t m = 0; m < mine.size(); ++m) {
            if (chosen_nll_.empty() || front[m]) {
                family.push_back({costs_[mine[m]], nll_[mine[m]]});
            }
        }
        return family;
    }

    const std::vector<PolicySpec>& specs_;
    RowLayout rows_; ///< what is reported of
    std::string words_;
    std::vector<std::size_t> reported_;
    const BootstrapOptions& options_;
    bool flops_ = false;
    Resampling resampling_;
    std::vector<std::vector<double>> nll_, costs_;
    std::vector<double> mean_steps_;                ///< with a split, of the reported half
    std::vector<double> chosen_nll_, chosen_costs_; ///< with a split, means on the choosing half
};

/// A row a token and policy: what the replay says and what the rerun found.
std::string token_table(const ReplayTable& table, const std::vector<PolicySpec>& specs,
                        const std::vector<ReplayResult>& replays, const std::vector<ReplayResult>& reruns) {
    std::string text = "policy,sequence,token,replay_steps,replay_nll,rerun_steps,rerun_nll\n";
    for (std::size_t p = 0; p < specs.size(); ++p) {
        const std::string name = "\"" + specs[p].text() + "\",";
        for (std::size_t i = 0; i < table.tokens(); ++i) {
            text += name + std::to_string(table.places[i].sequence) + "," +
                    std::to_string(table.places[i].position) + "," + std::to_string(replays[p].steps[i]) +
                    "," + exact_digits(static_cast<double>(replays[p].nll[i]));
            text += reruns.empty() ? ",,\n"
                                   : "," + std::to_string(reruns[p].steps[i]) + "," +
                                         exact_digits(static_cast<double>(reruns[p].nll[i])) + "\n";
        }
    }
    return text;
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
    if (split && sweeps.empty()) {
        throw InputError(ErrorId::usage_missing,
                         "--split chooses among the settings of a sweep; add --sweep KEY=FIRST:LAST:COUNT.");
    }
    const ReplayTable table =
        ReplayTable::load(reader, run, printer.sink(), bootstrap.stop, {}, signals_of(specs));
    report.run = table.run;
    report.max_steps = table.columns.max_steps();
    report.layers_as_steps = table.layers_as_steps;
    report.knows_flops = table.flops.has_value();
    report.halted = table.halted;
    const std::int64_t parts = split ? 2 : 1;
    Outcomes found{ScoredRows(table), {}};
    found.scored.add_up_clusters(bootstrap, parts);
    // A block bootstrap uses one block length for all intervals of the report. The run determines it.
    const BootstrapOptions settled = with_block_of_run(table, found.scored, bootstrap);
    const bool keep = reruns.wanted() || !per_token.empty(); // values of tokens
    std::vector<ReplayResult> replays(keep ? specs.size() : 1);
    for (std::size_t i = 0; i < specs.size(); ++i) {
        if (bootstrap.stop.stop_requested()) {
            throw Cancelled();
        }
        specs[i] = spelled_out(specs[i], table.context);
        ReplayResult& result = replays[keep ? i : 0];
        replay(table, specs[i], result);
        found.settings.push_back(found.scored.of(specs[i].text(), result));
        report.scored = result.scored;
        report.points.push_back({specs[i],
                                 {result.mean_steps, result.mean_nll, result.mean_flops},
                                 result.histogram,
                                 std::nullopt});
    }
    Comparison replayed(std::move(found), specs, settled, split);
    std::vector<ReplayResult> exact_results;
    if (reruns.wanted()) {
        const std::vector<RunInfo> runs = reruns.make(reader, run, table, specs, printer, bootstrap.stop);
        const TraceReader exact_reader = TraceReader::open(reruns.trace(reader));
        for (std::size_t i = 0; i < specs.size(); ++i) {
            ReplayResult beside = replays[i];
            if (split) { // the reported half alone
                std::ranges::fill(beside.nll, std::numeric_limits<float>::quiet_NaN());
                for (const std::size_t token : replayed.reported()) {
                    beside.nll[token] = replays[i].nll[token];
                }
            }
            RerunDifference difference =
                rerun_difference(table, beside, reader, run, exact_reader, runs[i], bootstrap.stop);
            ReplayResult& exact = exact_results.emplace_back();
            exact.steps = std::move(difference.steps);
            exact.nll = std::move(difference.nll);
            exact.flops = std::move(difference.flops);
            const PolicyOutcome outcome{difference.mean_steps, difference.mean_nll, difference.mean_flops};
            report.points[i].exact = {
                exact_reader.name_of(runs[i]), outcome, std::move(difference),
                agreement_of(table, beside.steps, beside.nll, exact.steps, exact.nll, settled)};
        }
    }

    std::vector<PolicyOutcome*> outcomes;
    for (PolicyPoint& point : report.points) {
        outcomes.push_back(&point.replayed);
    }
    replayed.compare(outcomes);
    replayed.gaps(false, report.gaps);
    if (split) {
        report.split = replayed.words();
        report.within = within;
        report.scored = replayed.tokens();
        report.chosen = replayed.choose(false, within);
    }
    if (!exact_results.empty()) {
        std::vector<std::span<const float>> nll;
        for (const ReplayResult& one : exact_results) {
            nll.emplace_back(one.nll);
        }
        Outcomes reran{ScoredRows(table, nll), {}};
        reran.scored.add_up_clusters(bootstrap, parts);
        for (std::size_t i = 0; i < specs.size(); ++i) {
            reran.settings.push_back(reran.scored.of(specs[i].text(), exact_results[i]));
        }
        Comparison exact(std::move(reran), specs, settled, split);
        outcomes.clear();
        for (PolicyPoint& point : report.points) {
            outcomes.push_back(&point.exact->outcome);
        }
        exact.compare(outcomes);
        exact.gaps(true, report.gaps);
        if (split) {
            for (ChosenSetting& one : exact.choose(true, within)) {
                report.chosen.push_back(std::move(one));
            }
        }
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
    report.resampling = replayed.resampling();
    for (const std::string& notice : report.resampling.notices()) {
        report.notices.push_back(notice);
    }
    report.notices.emplace_back(
        exact_results.empty()
            ? "a replay assumes that tokens do not affect each other; single tokens can differ by nats from "
              "a "
              "rerun (--rerun CHECKPOINT)."
            : "a replay assumes that tokens do not affect each other; where it differs from the rerun, the "
              "rerun is right.");
    if (!per_token.empty()) {
        write_file_atomically(per_token, token_table(table, specs, replays, exact_results));
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
            "--rerun sample_models/adaponderlm-neox-1m\n"
            "  ponderscope policy long.ponder --policy entropy --sweep theta=0.1:4:16:log --split --within "
            "0.01";
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
    app->add_flag("--split", verb->split,
                  "Choose settings on one half of the clusters and report on the other: of each policy the "
                  "cheapest setting that loses at most --within to full, and the settings of its front");
    app->add_option("--within", verb->within,
                    "Largest loss of a setting that --split chooses, in nats a token")
        ->check(number_above(0))
        ->capture_default_str();
    verb->reruns.add_to(*app);
    app->add_option("--per-token", verb->per_token,
                    "Also write steps and NLL of every token, replayed and rerun")
        ->type_name("FILE.csv")
        ->check(replaces_no_trace());
    verb->add_to(*app, "Also write the rows as CSV");
    app->footer(list_of_policies());
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
