// SPDX-License-Identifier: GPL-3.0-or-later
// `policy`: what halting policies would do on a recorded run, what they do when the model is run with them,
// and what they cost.
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/options.h"
#include "app/cli/policy_report.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/policy/replay.h"
#include "core/policy/scored_rows.h"
#include "core/ponder/policy_halting.h"
#include "core/record/rerun.h"
#include "core/stats/front.h"
#include "core/trace/reader.h"
#include "core/trace/writer.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <sstream>

namespace ponderscope::cli {
namespace {

/// What is kept of a point, a value for each row of the table, until the intervals are made.
struct Columns {
    std::vector<std::int32_t> steps;
    std::vector<float> nll;
    std::vector<std::int64_t> flops; ///< empty: not known
};

ScoredRows scored_rows(const ReplayTable& table, const std::vector<Columns>& columns) {
    std::vector<std::span<const float>> nll;
    for (const Columns& one : columns) {
        nll.emplace_back(one.nll);
    }
    return ScoredRows(table, nll);
}

struct PolicyVerb {
    std::string reference;
    std::vector<std::string> policies;
    std::string sweep;
    std::filesystem::path csv, per_token;
    ModelOptions model; ///< of reruns; without a checkpoint: replays only
    std::filesystem::path output;
    std::int64_t batch = 8;
    IntervalOptions intervals;
    ProgressOption progress;
    bool json = false;

    void run();

private:
    [[nodiscard]] std::vector<PolicySpec> read_specs() const;
    /// Runs of the output that hold the reruns of \p specs, found there or made now.
    [[nodiscard]] std::vector<RunInfo> rerun_all(const TraceReader& reader, const RunInfo& source,
                                                 const ReplayTable& table,
                                                 const std::vector<PolicySpec>& specs,
                                                 ProgressPrinter& printer) const;
    [[nodiscard]] std::filesystem::path rerun_trace(const TraceReader& reader) const {
        return output.empty() ? reader.path() : output;
    }
};

/// Fills in intervals and fronts of the points' outcomes, all replays or all reruns.
class Comparison {
public:
    Comparison(const ReplayTable& table, const std::vector<PolicySpec>& specs,
               const std::vector<Columns>& columns, const BootstrapOptions& options)
        : specs_(specs), scored_(scored_rows(table, columns)), options_(options) {
        const bool flops = std::all_of(columns.begin(), columns.end(),
                                       [](const Columns& one) { return !one.flops.empty(); });
        for (const Columns& one : columns) {
            nll_.push_back(scored_.of(one.nll));
            costs_.push_back(flops ? scored_.of(one.flops) : scored_.of(one.steps));
        }
    }

    /// \p outcomes: in the order of the specs.
    void compare(std::vector<PolicyOutcome*> outcomes, bool flops) {
        const PairedDifferences differences =
            paired_differences(nll_.front(), nll_, scored_.layout, options_);
        resampling_ = differences.resampling;
        std::vector<FrontPoint> places;
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
            outcomes[i]->difference = differences.each[i];
            outcomes[i]->band = differences.bands[i];
            outcomes[i]->p = differences.p[i];
            const double cost = flops ? outcomes[i]->mean_flops : outcomes[i]->mean_steps;
            places.push_back({specs_[i].kind->causal ? cost : std::nan(""), outcomes[i]->mean_nll});
        }
        const std::vector<bool> front = pareto_front(places);
        for (std::size_t i = 0; i < outcomes.size(); ++i) {
            outcomes[i]->on_front = front[i];
        }
    }

    /// Fronts of policies that came in several settings, against the first of them.
    void gaps(bool exact, std::vector<FrontGap>& gaps) const {
        std::vector<std::string> families;
        for (const PolicySpec& spec : specs_) {
            const std::string& name = spec.kind->name;
            const auto many = std::count_if(specs_.begin(), specs_.end(),
                                            [&](const PolicySpec& other) { return other.kind == spec.kind; });
            if (many > 1 && std::find(families.begin(), families.end(), name) == families.end()) {
                families.push_back(name);
            }
        }
        for (std::size_t i = 1; i < families.size(); ++i) {
            gaps.push_back(
                {families[0], families[i], exact,
                 compare_fronts(settings(families[0]), settings(families[i]), scored_.layout, options_)});
        }
    }

    [[nodiscard]] const Resampling& resampling() const { return resampling_; }
    [[nodiscard]] const std::vector<double>& nll(std::size_t point) const { return nll_[point]; }

private:
    [[nodiscard]] std::vector<FrontSetting> settings(const std::string& name) const {
        std::vector<FrontSetting> family;
        for (std::size_t i = 0; i < specs_.size(); ++i) {
            if (specs_[i].kind->name == name) {
                family.push_back({costs_[i], nll_[i]});
            }
        }
        return family;
    }

    const std::vector<PolicySpec>& specs_;
    ScoredRows scored_;
    Resampling resampling_;
    const BootstrapOptions& options_;
    std::vector<std::vector<double>> nll_, costs_;
};

/// In the order in which they were named, swept ones one after the other; full first.
std::vector<PolicySpec> PolicyVerb::read_specs() const {
    std::vector<PolicySpec> specs{PolicySpec::parse("full")};
    const auto add = [&](const PolicySpec& spec) {
        if (std::find(specs.begin(), specs.end(), spec) == specs.end()) {
            specs.push_back(spec);
        }
    };
    std::optional<Sweep> over;
    if (!sweep.empty()) {
        over = Sweep::parse(sweep);
    }
    bool swept = false;
    for (const std::string& text : policies) {
        // A swept key need not be given: entropy with --sweep theta=... has its threshold from there.
        std::optional<PolicySpec> first;
        if (over) {
            const std::string name = text.substr(0, text.find(':'));
            for (const PolicyKind& kind : policy_kinds()) {
                if (kind.name == name && !kind.parameters.empty() && text == name) {
                    const std::string key =
                        over->key == "threshold" ? kind.parameters.front().key : over->key;
                    if (kind.find(key) != nullptr &&
                        kind.find(key)->absent == PolicyParameter::Absent::refused) {
                        first =
                            PolicySpec::parse(name + ":" + key + "=" + exact_digits(over->values.front()));
                    }
                }
            }
        }
        const PolicySpec spec = first ? *first : PolicySpec::parse(text);
        const std::vector<PolicyParameter>& parameters = spec.kind->parameters;
        if (!over || parameters.empty() ||
            (over->key != "threshold" && spec.kind->find(over->key) == nullptr)) {
            add(spec);
            continue;
        }
        for (const double value : over->values) {
            add(spec.with(over->key, value));
        }
        swept = true;
    }
    if (over && !swept) {
        throw InputError("--sweep " + sweep + ": none of the policies has the key " + over->key +
                         "; name one of theirs, or threshold for the first of each.");
    }
    return specs;
}

std::vector<RunInfo> PolicyVerb::rerun_all(const TraceReader& reader, const RunInfo& source,
                                           const ReplayTable& table, const std::vector<PolicySpec>& specs,
                                           ProgressPrinter& printer) const {
    const std::filesystem::path where = rerun_trace(reader);
    const auto exact_runs = [&] {
        return std::filesystem::exists(where) ? TraceReader::open(where).runs() : std::vector<RunInfo>();
    };
    const auto find = [&](const std::vector<RunInfo>& runs, const PolicySpec& spec) {
        const auto found = std::find_if(runs.rbegin(), runs.rend(), [&](const RunInfo& one) {
            return is_rerun_of(one, source, spec.text()) && one.text_digest == source.text_digest;
        });
        return found == runs.rend() ? nullptr : &*found;
    };
    std::vector<RunInfo> runs = exact_runs();
    std::vector<PolicySpec> missing;
    for (const PolicySpec& spec : specs) {
        if (find(runs, spec) == nullptr) {
            missing.push_back(spec);
        }
    }
    if (!missing.empty()) {
        const std::stop_token& stop = intervals.bootstrap.stop;
        ModelOptions options = model;
        options.method = options.method.empty() ? source.method : options.method;
        options.dtype = source.dtype;
        const Checkpoint checkpoint = options.open();
        require_weights_of(source, checkpoint, checkpoint_digest(checkpoint, printer.sink(), stop));
        const std::optional<Tokenizer> tokenizer = open_tokenizer(checkpoint);
        const std::vector<SequenceInput> sequences = recorded_sequences(reader, source, stop);
        Engine engine = Engine::load(checkpoint, options.load_options(printer, stop));
        for (const PolicySpec& spec : missing) {
            if (spec.kind->causal) {
                (void)rule_of(spec, engine); // what the model refuses must leave no file behind
            }
        }
        for (const PolicySpec& spec : missing) {
            RecordOptions how;
            how.level = RecordLevel::basic;
            how.batch = batch;
            how.dtype = source.dtype;
            TraceWriter writer(where);
            if (rerun(engine, checkpoint, source, table, sequences, tokenizer ? &*tokenizer : nullptr, spec,
                      writer, how, printer.sink(), stop)
                    .cancelled) {
                throw Cancelled();
            }
        }
        runs = exact_runs();
    }
    std::vector<RunInfo> found;
    for (const PolicySpec& spec : specs) {
        const RunInfo* one = find(runs, spec);
        if (one == nullptr) {
            throw InputError(where, "the rerun of " + spec.text() + " that was just made", "none like it",
                             "write the reruns to a trace of their own with --output");
        }
        found.push_back(*one);
    }
    return found;
}

/// A row a token and policy: what the replay says and what the rerun found.
std::string token_table(const ReplayTable& table, const std::vector<PolicySpec>& specs,
                        const std::vector<Columns>& replays, const std::vector<Columns>& reruns) {
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

void PolicyVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    std::vector<PolicySpec> specs = read_specs();
    const RunReference where = parse_run_reference(reference);
    const TraceReader reader = TraceReader::open(where.trace);
    const RunInfo run = find_run(reader, where.run);
    const ReplayTable table = ReplayTable::load(reader, run, printer.sink(), bootstrap.stop);
    for (PolicySpec& spec : specs) {
        table.require(spec);
        spec = spelled_out(spec, table.context);
    }
    if (!output.empty() && model.checkpoint.empty()) {
        throw InputError("--output is for reruns; name the checkpoint with --rerun CHECKPOINT.");
    }

    PolicyReport report;
    report.run = table.run;
    report.max_steps = table.columns.max_steps();
    report.layers_as_steps = table.layers_as_steps;
    report.halted = table.halted;
    report.knows_flops = table.flops.has_value();
    std::vector<Columns> replays;
    for (const PolicySpec& spec : specs) {
        if (bootstrap.stop.stop_requested()) {
            throw Cancelled();
        }
        ReplayResult result = replay(table, spec);
        report.scored = result.scored;
        report.points.push_back(
            {spec,
             {result.mean_steps, result.mean_nll, result.perplexity, result.mean_flops, {}, false},
             result.histogram,
             std::nullopt});
        replays.push_back({std::move(result.steps), std::move(result.nll), std::move(result.flops)});
    }
    std::vector<Columns> reruns;
    if (!model.checkpoint.empty()) {
        const std::vector<RunInfo> runs = rerun_all(reader, run, table, specs, printer);
        const TraceReader exact_reader = TraceReader::open(rerun_trace(reader));
        for (std::size_t i = 0; i < specs.size(); ++i) {
            const ReplayResult replayed{replays[i].steps, replays[i].nll, {}, 0, 0, 0, 0, {}, 0};
            RerunDifference difference =
                rerun_difference(table, replayed, reader, run, exact_reader, runs[i], bootstrap.stop);
            reruns.push_back(
                {std::move(difference.steps), std::move(difference.nll), std::move(difference.flops)});
            const PolicyOutcome outcome{difference.mean_steps,
                                        difference.mean_nll,
                                        std::exp(difference.mean_nll),
                                        difference.mean_flops,
                                        {},
                                        false};
            report.points[i].exact = {
                exact_reader.path().string() + "#" + runs[i].name, outcome, std::move(difference), {}};
        }
    }

    Comparison replayed(table, specs, replays, bootstrap);
    std::vector<PolicyOutcome*> outcomes;
    for (PolicyPoint& point : report.points) {
        outcomes.push_back(&point.replayed);
    }
    replayed.compare(outcomes, report.knows_flops);
    replayed.gaps(false, report.gaps);
    if (!reruns.empty()) {
        Comparison exact(table, specs, reruns, bootstrap);
        outcomes.clear();
        for (PolicyPoint& point : report.points) {
            outcomes.push_back(&point.exact->outcome);
        }
        exact.compare(outcomes, report.knows_flops);
        exact.gaps(true, report.gaps);
        for (std::size_t i = 0; i < specs.size(); ++i) {
            const ScoredRows both = scored_rows(table, {replays[i], reruns[i]});
            report.points[i].exact->minus_replay =
                paired_differences(both.of(replays[i].nll),
                                   std::vector<std::vector<double>>{both.of(reruns[i].nll)}, both.layout,
                                   bootstrap)
                    .each.front();
        }
    }
    printer.finish();

    if (table.halted) {
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
        reruns.empty()
            ? "a replay assumes that a token's halting leaves the others as they are; single tokens "
              "can differ by nats from a rerun (--rerun CHECKPOINT)."
            : "a replay assumes that a token's halting leaves the others as they are; where it "
              "differs from the rerun, the rerun is right.");
    if (!csv.empty()) {
        write_file_atomically(csv, report.to_csv());
    }
    if (!per_token.empty()) {
        write_file_atomically(per_token, token_table(table, specs, replays, reruns));
    }
    if (json) {
        std::cout << report.to_json(intervals).dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
                  << '\n';
        return;
    }
    report.print(intervals);
}

std::string list_of_policies() {
    std::ostringstream text;
    text << "Policies:\n";
    for (const PolicyKind& kind : policy_kinds()) {
        std::string usage = kind.name;
        char separator = ':';
        for (const PolicyParameter& parameter : kind.parameters) {
            usage += separator + parameter.key + "=...";
            separator = ',';
        }
        text << "  " << usage << std::string(usage.size() < 32 ? 32 - usage.size() : 1, ' ') << kind.rule
             << "\n";
    }
    text << "Example:\n"
            "  ponderscope policy story.ponder --policy learned --policy calm_margin:lambda=0.9 --policy "
            "oracle\n"
            "  ponderscope policy story.ponder --policy learned --policy uniform --sweep rate=0.5:2.5:5\n"
            "  ponderscope policy story.ponder --policy entropy --sweep theta=0.1:4:8:log --csv front.csv\n"
            "  ponderscope policy story.ponder#adaponderlm-1m --policy calm_margin --sweep "
            "threshold=0.5:0.9:3 "
            "--rerun sample_models/adaponderlm-1m";
    return text.str();
}

} // namespace

void add_policy(CLI::App& program) {
    auto verb = std::make_shared<PolicyVerb>();
    CLI::App* app = program.add_subcommand(
        "policy",
        "Halting policies on a recorded run, replayed or rerun: steps, NLL and FLOPs, and the front "
        "they make");
    app->add_option("run", verb->reference,
                    "TRACE.ponder#RUN; the run's name may be left out when it is the only one")
        ->required();
    app->add_option("--policy", verb->policies, "A policy, as listed below; may be given several times")
        ->required()
        ->type_name("SPEC");
    app->add_option(
        "--sweep", verb->sweep,
        "KEY=FIRST:LAST:COUNT, with :log for equal ratios, or KEY=VALUE,VALUE,...; KEY threshold is the "
        "first of each policy");
    app->add_option("--rerun", verb->model.checkpoint,
                    "Also run the model with each policy, exactly, and show where the replay differs. The "
                    "reruns are runs of the trace, and are used again when they are there")
        ->type_name("CHECKPOINT");
    app->add_option("-o,--output", verb->output, "Trace of the reruns (default: the replayed one)")
        ->type_name("TRACE.ponder");
    app->add_option("--batch", verb->batch, "Of reruns: windows computed together")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app->add_option("--device", verb->model.device, "Of reruns: cpu, cuda or cuda:N")->capture_default_str();
    app->add_option("--csv", verb->csv, "Also write the points as a table")->type_name("FILE");
    app->add_option("--per-token", verb->per_token,
                    "Also write a table with steps and NLL of every token, replayed and rerun")
        ->type_name("FILE");
    verb->intervals.add_to(*app);
    verb->progress.add_to(*app);
    app->add_flag("--json", verb->json, "Print the result as JSON");
    app->footer(list_of_policies());
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
