// SPDX-License-Identifier: GPL-3.0-or-later
// `policy`: what halting policies would do on a recorded run, and what they cost.
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/policy/replay.h"
#include "core/stats/front.h"
#include "core/trace/reader.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iostream>
#include <memory>
#include <sstream>

namespace ponderscope::cli {
namespace {

/// A policy at one setting.
struct Point {
    PolicySpec spec;
    ReplayResult replayed;
    Estimate difference; ///< of mean NLL to full, nats
    bool on_front = false;
};

/// The gap between the front of one swept policy and that of the first.
struct Gap {
    std::string a, b;
    FrontComparison fronts;
};

nlohmann::json number(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json to_json(const Estimate& estimate) {
    return {
        {"value", number(estimate.value)}, {"low", number(estimate.low)}, {"high", number(estimate.high)}};
}

std::string digits(double value) {
    if (!std::isfinite(value)) {
        return {};
    }
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

struct PolicyVerb {
    std::string reference;
    std::vector<std::string> policies;
    std::string sweep;
    std::filesystem::path csv;
    IntervalOptions intervals;
    ProgressOption progress;
    bool json = false;

    void run();

private:
    [[nodiscard]] std::vector<PolicySpec> read_specs() const;
    void print(const ReplayTable& table, const std::vector<Point>& points,
               const std::vector<Gap>& gaps) const;
    [[nodiscard]] nlohmann::json to_report(const ReplayTable& table, const std::vector<Point>& points,
                                           const std::vector<Gap>& gaps) const;
    [[nodiscard]] std::string to_csv(const std::vector<Point>& points) const;
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
                        first = PolicySpec::parse(name + ":" + key + "=" + digits(over->values.front()));
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

void PolicyVerb::print(const ReplayTable& table, const std::vector<Point>& points,
                       const std::vector<Gap>& gaps) const {
    std::size_t width = 6;
    for (const Point& point : points) {
        width = std::max(width, point.spec.text().size() + (point.spec.kind->causal ? 0 : 8));
    }
    const auto padded = [](const std::string& text, std::size_t to) {
        return text + std::string(text.size() < to ? to - text.size() : 0, ' ');
    };
    const auto right = [](const std::string& text, std::size_t to) {
        return std::string(text.size() < to ? to - text.size() : 0, ' ') + text;
    };
    std::cout << table.run << "  replay from recorded signals, "
              << with_separators(points.front().replayed.scored) << " scored tokens, "
              << (table.layers_as_steps ? "exits over layers" : "steps") << " 0 to "
              << table.columns.max_steps() << "\n";
    std::cout << padded("policy", width) << right("steps", 8) << right("NLL", 9) << right("ppl", 10)
              << right("GFLOP", 10) << "   NLL - full [interval]\n";
    for (const Point& point : points) {
        const ReplayResult& result = point.replayed;
        const std::string name = point.spec.text() + (point.spec.kind->causal ? "" : " (bound)");
        std::cout << padded(name, width) << right(fixed(result.mean_steps, 3), 8)
                  << right(fixed(result.mean_nll, 4), 9) << right(fixed(result.perplexity, 2), 10)
                  << right(std::isnan(result.mean_flops) ? "-" : fixed(result.mean_flops / 1e9, 4), 10)
                  << "   " << fixed(point.difference.value, 4) << " [" << fixed(point.difference.low, 4)
                  << ", " << fixed(point.difference.high, 4) << "]" << (point.on_front ? "  front" : "")
                  << "\n";
    }
    for (const Gap& gap : gaps) {
        if (std::isnan(gap.fronts.gap.value)) {
            std::cout << "fronts of " << gap.b << " and " << gap.a << " reach no common cost\n";
            continue;
        }
        std::cout << "NLL of the front of " << gap.b << " minus that of " << gap.a << " at equal "
                  << (table.flops ? "FLOPs" : "steps") << ": " << fixed(gap.fronts.gap.value, 4) << " ["
                  << fixed(gap.fronts.gap.low, 4) << ", " << fixed(gap.fronts.gap.high, 4)
                  << "] nats a token\n";
    }
    std::cout << intervals.sentence() << "\n";
}

nlohmann::json PolicyVerb::to_report(const ReplayTable& table, const std::vector<Point>& points,
                                     const std::vector<Gap>& gaps) const {
    nlohmann::json rows = nlohmann::json::array();
    for (const Point& point : points) {
        const ReplayResult& result = point.replayed;
        rows.push_back({{"policy", point.spec.text()},
                        {"kind", "replay"},
                        {"causal", point.spec.kind->causal},
                        {"mean_steps", number(result.mean_steps)},
                        {"mean_nll", number(result.mean_nll)},
                        {"perplexity", number(result.perplexity)},
                        {"flops_per_token", number(result.mean_flops)},
                        {"difference_to_full", to_json(point.difference)},
                        {"steps_histogram", result.histogram},
                        {"on_front", point.on_front}});
    }
    nlohmann::json areas = nlohmann::json::array();
    for (const Gap& gap : gaps) {
        areas.push_back({{"a", gap.a},
                         {"b", gap.b},
                         {"cost", table.flops ? "flops" : "steps"},
                         {"from", number(gap.fronts.low)},
                         {"to", number(gap.fronts.high)},
                         {"nll_b_minus_a", to_json(gap.fronts.gap)}});
    }
    nlohmann::json report{{"run", table.run},
                          {"scored_tokens", points.front().replayed.scored},
                          {"max_steps", table.columns.max_steps()},
                          {"layers_as_steps", table.layers_as_steps},
                          {"halted", table.halted},
                          {"points", rows},
                          {"fronts", areas}};
    intervals.write_to(report);
    return report;
}

std::string PolicyVerb::to_csv(const std::vector<Point>& points) const {
    std::string text = "policy,name,threshold,kind,mean_steps,mean_nll,perplexity,flops_per_token,difference,"
                       "difference_low,difference_high,on_front\n";
    for (const Point& point : points) {
        const ReplayResult& result = point.replayed;
        const std::vector<PolicyParameter>& parameters = point.spec.kind->parameters;
        const bool has = !parameters.empty() && point.spec.has(parameters.front().key);
        text += "\"" + point.spec.text() + "\"," + point.spec.kind->name + "," +
                (has ? digits(point.spec.number(parameters.front().key)) : "") + ",replay";
        for (const double value : {result.mean_steps, result.mean_nll, result.perplexity, result.mean_flops,
                                   point.difference.value, point.difference.low, point.difference.high}) {
            text += "," + digits(value);
        }
        text += point.on_front ? ",1\n" : ",0\n";
    }
    return text;
}

void PolicyVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    const std::vector<PolicySpec> specs = read_specs();
    const RunReference where = parse_run_reference(reference);
    const TraceReader reader = TraceReader::open(where.trace);
    const RunInfo run = find_run(reader, where.run);
    const ReplayTable table = ReplayTable::load(reader, run, printer.sink(), bootstrap.stop);
    for (const PolicySpec& spec : specs) {
        table.require(spec);
    }

    // The tokens with a target, and where they are consecutive.
    std::vector<std::size_t> scored;
    std::vector<std::int64_t> stretches;
    for (std::size_t i = 0; i < table.tokens(); ++i) {
        if (std::isnan(table.nll[i])) {
            continue;
        }
        if (scored.empty() || scored.back() + 1 != i || table.places[i].position == 0) {
            stretches.push_back(0);
        }
        ++stretches.back();
        scored.push_back(i);
    }
    std::vector<Point> points;
    std::vector<std::vector<double>> nll;
    std::vector<std::vector<double>> costs;
    for (const PolicySpec& spec : specs) {
        if (bootstrap.stop.stop_requested()) {
            throw Cancelled();
        }
        Point point{spec, replay(table, spec), {}, false};
        nll.emplace_back();
        costs.emplace_back();
        for (const std::size_t i : scored) {
            nll.back().push_back(static_cast<double>(point.replayed.nll[i]));
            costs.back().push_back(table.flops ? static_cast<double>(point.replayed.flops[i])
                                               : static_cast<double>(point.replayed.steps[i]));
        }
        for (auto* column : {&point.replayed.nll}) {
            column->clear();
            column->shrink_to_fit();
        }
        point.replayed.steps = {};
        point.replayed.flops = {};
        points.push_back(std::move(point));
    }
    const std::vector<Estimate> differences = paired_differences(nll.front(), nll, stretches, bootstrap);
    std::vector<FrontPoint> places;
    for (std::size_t i = 0; i < points.size(); ++i) {
        points[i].difference = differences[i];
        const ReplayResult& result = points[i].replayed;
        const double cost = table.flops ? result.mean_flops : result.mean_steps;
        places.push_back({points[i].spec.kind->causal ? cost : std::nan(""), result.mean_nll});
    }
    const std::vector<bool> front = pareto_front(places);
    for (std::size_t i = 0; i < points.size(); ++i) {
        points[i].on_front = front[i];
    }

    // Fronts of policies that came in several settings, against the first of them.
    std::vector<std::string> families;
    for (const Point& point : points) {
        const std::string& name = point.spec.kind->name;
        const auto many = std::count_if(points.begin(), points.end(), [&](const Point& other) {
            return other.spec.kind == point.spec.kind;
        });
        if (many > 1 && std::find(families.begin(), families.end(), name) == families.end()) {
            families.push_back(name);
        }
    }
    const auto settings = [&](const std::string& name) {
        std::vector<FrontSetting> family;
        for (std::size_t i = 0; i < points.size(); ++i) {
            if (points[i].spec.kind->name == name) {
                family.push_back({costs[i], nll[i]});
            }
        }
        return family;
    };
    std::vector<Gap> gaps;
    for (std::size_t i = 1; i < families.size(); ++i) {
        gaps.push_back({families[0], families[i],
                        compare_fronts(settings(families[0]), settings(families[i]), stretches, bootstrap)});
    }
    printer.finish();
    if (!csv.empty()) {
        write_file_atomically(csv, to_csv(points));
    }
    if (json) {
        std::cout
            << to_report(table, points, gaps).dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
            << '\n';
        return;
    }
    print(table, points, gaps);
    if (table.halted) {
        std::cout
            << "note: tokens of this run halted, so no policy can be seen beyond the steps that ran; record "
               "with --policy full to see all of them.\n";
    }
    if (!run.complete) {
        std::cout << "note: the run is partial.\n";
    }
    if (stretches.size() == 1) {
        std::cout
            << "note: all tokens are of one sequence: the intervals say what other parts of this text would "
               "give, not what other texts would.\n";
    }
    std::cout
        << "note: a replay assumes that a token's halting leaves the others as they are; single tokens can "
           "differ by nats from a rerun.\n";
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
            "  ponderscope policy story.ponder --policy entropy --sweep theta=0.1:4:8:log --csv front.csv";
    return text.str();
}

} // namespace

void add_policy(CLI::App& program) {
    auto verb = std::make_shared<PolicyVerb>();
    CLI::App* app = program.add_subcommand(
        "policy", "Replay halting policies on a recorded run: steps, NLL and FLOPs, and the front they make");
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
    app->add_option("--csv", verb->csv, "Also write the points as a table")->type_name("FILE");
    verb->intervals.add_to(*app);
    verb->progress.add_to(*app);
    app->add_flag("--json", verb->json, "Print the result as JSON");
    app->footer(list_of_policies());
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
