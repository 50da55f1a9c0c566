// SPDX-License-Identifier: GPL-3.0-or-later
// `stats`: what a run lost, where it spends its steps, and with what they go together.
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/policy_report.h"
#include "app/cli/progress_option.h"
#include "app/cli/report.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/stats/expert_use.h"
#include "core/stats/labels.h"
#include "core/stats/run_study.h"
#include "core/trace/reader.h"
#include "core/trace/step_columns.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>

namespace ponderscope::cli {
namespace {

using cli::json_of; // of estimates and rows, beside those of this file

nlohmann::json json_of(const TokenGroup& group) {
    return {{"name", group.name},
            {"count", group.count},
            {"mean_steps", number_or_null(group.mean_steps)},
            {"mean_nll", number_or_null(group.mean_nll)},
            {"drops_last_step", number_or_null(group.dropped)},
            {"mean_steps_elsewhere", number_or_null(group.steps_elsewhere)},
            {"p", number_or_null(group.p)},
            {"q", number_or_null(group.q)}};
}

/// The bytes of a token so that every one can be told apart in a line.
std::string shown(const TokenGroup& group) {
    if (group.id < 0) {
        return group.name;
    }
    return group.name.empty()
               ? "id " + std::to_string(group.id)
               : nlohmann::json(group.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string q_text(double q) {
    return std::isnan(q) ? "-" : q < 1e-4 ? "< 0.0001" : fixed(q, 4);
}

std::string csv_field(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    }
    return quoted + "\"";
}

/// Classes by name: whole numbers by their value, before words.
bool comes_before(const LabelledClass& a, const LabelledClass& b) {
    const std::int64_t first = parse_count(a.group.name), second = parse_count(b.group.name);
    if (first >= 0 || second >= 0) {
        return first >= 0 && (second < 0 || first < second);
    }
    return a.group.name < b.group.name;
}

LabelPlace place_of(const std::string& name) {
    return name == "token" ? LabelPlace::token : LabelPlace::prediction;
}

struct StatsVerb {
    std::string reference;
    std::vector<std::string> others;
    std::filesystem::path labels, csv;
    std::vector<std::string> by;
    std::string label_of = "prediction";
    std::string types_of = "prediction";
    std::string control = "bh";
    std::int64_t least = 10;
    bool sensitivity = false;
    std::size_t rows = 30;
    IntervalOptions intervals;
    ProgressOption progress;
    bool json = false;

    void run();
};

/// Tokens by a class that somebody gave them.
struct Grouping {
    std::string name; ///< "label", or of the annotation
    std::vector<LabelledClass> classes;
    std::int64_t without = 0; ///< scored tokens that have none
    bool annotation = false;
};

nlohmann::json json_of(const Grouping& grouping) {
    nlohmann::json rows = nlohmann::json::array();
    for (const LabelledClass& one : grouping.classes) {
        nlohmann::json row = json_of(one.group);
        row["steps"] = json_of(one.steps);
        row["nll"] = json_of(one.nll);
        row["steps_minus_elsewhere"] = json_of(one.steps_difference);
        rows.push_back(std::move(row));
    }
    return rows;
}

/// Everything that the verb says of a run.
struct Statistics {
    std::string run;
    std::int64_t max_steps = 0;
    std::string unit;
    RunEstimate estimate;
    std::vector<StepsCorrelation> correlations;
    std::vector<StepsCorrelation> gains;
    TokenGroups groups;
    std::vector<Grouping> groupings;
    std::string types_of;
    std::string control;
    std::optional<ExpertUse> experts;
    std::vector<std::pair<std::string, std::vector<ExpertAgreement>>> agreements; ///< by run

    void print(std::size_t rows, const IntervalOptions& intervals) const;
    [[nodiscard]] nlohmann::json to_json(const IntervalOptions& intervals) const;
    [[nodiscard]] std::string to_csv() const;
};

nlohmann::json json_of(const ExpertUse& use) {
    nlohmann::json layers = nlohmann::json::array();
    for (const LayerExperts& layer : use.layers) {
        nlohmann::json load = nlohmann::json::array();
        for (std::size_t e = 0; e < layer.load.size(); ++e) {
            load.push_back(number_or_null(layer.share(e)));
        }
        layers.push_back({{"layer", layer.layer},
                          {"choices", layer.choices},
                          {"load", std::move(load)},
                          {"same_as_previous_token", number_or_null(layer.repeat_share())}});
    }
    return {{"experts", use.experts}, {"chosen", use.chosen}, {"layers", std::move(layers)}};
}

nlohmann::json json_of(const std::pair<std::string, std::vector<ExpertAgreement>>& with) {
    nlohmann::json layers = nlohmann::json::array();
    for (const ExpertAgreement& layer : with.second) {
        layers.push_back({{"layer", layer.layer},
                          {"tokens", layer.tokens},
                          {"common", number_or_null(layer.common)},
                          {"same_set", number_or_null(layer.same)}});
    }
    return {{"with", with.first}, {"layers", std::move(layers)}};
}

void print_experts(const ExpertUse& use) {
    std::cout << right("experts of layer", 24) << right("choices", 10) << right("most used", 16)
              << right("least used", 16) << right("unused", 8) << right("as token before", 17) << "\n";
    for (const LayerExperts& layer : use.layers) {
        const auto [least, most] = std::ranges::minmax_element(layer.load);
        const auto named = [&](auto expert) {
            const auto e = static_cast<std::size_t>(expert - layer.load.begin());
            return std::to_string(e) + ": " + fixed(100 * layer.share(e), 1) + " %";
        };
        std::cout << right(layer.layer, 24) << right(with_separators(layer.choices), 10)
                  << right(named(most), 16) << right(named(least), 16)
                  << right(std::to_string(std::ranges::count(layer.load, 0)), 8)
                  << right(fixed(100 * layer.repeat_share(), 1) + " %", 17) << "\n";
    }
    std::cout << use.chosen << " of " << use.experts << " experts a token; even use is "
              << fixed(100 * static_cast<double>(use.chosen) / static_cast<double>(use.experts), 1)
              << " % each.\n";
}

/// \p steps: their number varies, so that it is worth a column.
void print_groups(const std::vector<TokenGroup>& groups, std::size_t most, const std::string& title,
                  bool steps) {
    std::cout << right(title, 24) << right("count", 10) << right("NLL", 8);
    if (steps) {
        std::cout << right("steps", 8) << right("elsewhere", 11) << right("drops last", 12) << right("q", 10);
    }
    std::cout << "\n";
    for (std::size_t i = 0; i < std::min(most, groups.size()); ++i) {
        const TokenGroup& group = groups[i];
        std::cout << right(shown(group), 24) << right(with_separators(group.count), 10)
                  << right(fixed(group.mean_nll, 3), 8);
        if (steps) {
            std::cout << right(fixed(group.mean_steps, 3), 8)
                      << right(std::isnan(group.steps_elsewhere) ? "-" : fixed(group.steps_elsewhere, 3), 11)
                      << right(fixed(100 * group.dropped, 1) + " %", 12) << right(q_text(group.q), 10);
        }
        std::cout << "\n";
    }
    if (groups.size() > most) {
        std::cout << right("...", 24) << "  " << groups.size() - most
                  << " more with --rows, --csv or --json\n";
    }
}

void print_grouping(const Grouping& grouping, bool steps) {
    std::cout << right(grouping.name, 24) << right("count", 10) << right("NLL", 26);
    if (steps) {
        std::cout << right("steps", 26) << right("- elsewhere", 26) << right("drops last", 12)
                  << right("q", 10);
    }
    std::cout << "\n";
    for (const LabelledClass& one : grouping.classes) {
        std::cout << right(visible(one.group.name), 24) << right(with_separators(one.group.count), 10)
                  << right(interval(one.nll, 3), 26);
        if (steps) {
            std::cout << right(interval(one.steps, 3), 26) << right(interval(one.steps_difference, 3), 26)
                      << right(fixed(100 * one.group.dropped, 1) + " %", 12)
                      << right(q_text(one.group.q), 10);
        }
        std::cout << "\n";
    }
    std::cout << with_separators(grouping.without) << " scored tokens have no " << grouping.name << "\n";
}

void Statistics::print(std::size_t rows, const IntervalOptions& intervals) const {
    std::cout << visible(run) << "  " << with_separators(estimate.scored_tokens) << " scored tokens, " << unit
              << "s 0 to " << max_steps << "\n"
              << "NLL            " << interval(estimate.mean_nll, 4) << " nats a token\n"
              << "perplexity     " << interval(estimate.perplexity, 2) << "\n";
    if (estimate.resampling.clusters > 1) {
        std::cout << "NLL, documents " << interval(estimate.document_mean_nll, 4) << " ("
                  << with_separators(estimate.resampling.clusters) << ", each of the same weight)\n";
    }
    if (!std::isnan(estimate.bits_per_byte.value)) {
        std::cout << "bits per byte  " << interval(estimate.bits_per_byte, 4) << "\n";
    }
    const bool ponders = max_steps > 0;
    if (ponders) {
        std::cout << "steps          " << interval(estimate.mean_steps, 3) << "\n";
    }
    const auto print_correlations = [](const std::vector<StepsCorrelation>& list) {
        for (const StepsCorrelation& one : list) {
            std::cout << "Spearman of steps and " << visible(one.with) << "  "
                      << (std::isnan(one.rho.value) ? "- (one of them does not vary)" : interval(one.rho, 3))
                      << "  over " << with_separators(one.tokens) << "\n";
        }
    };
    print_correlations(correlations);
    if (!correlations.empty()) {
        std::cout << "  NLL and entropy are those of the chosen read-out, after the steps: a gate that stops "
                     "where the\n  loss is already low makes rho negative, whether or not steps pay.\n";
    }
    if (!gains.empty()) {
        std::cout << "steps and gain (NLL at step 0 minus NLL at the last step, where every step ran)\n";
        print_correlations(gains);
    }
    if (experts) {
        print_experts(*experts);
    }
    for (const auto& [with, layers] : agreements) {
        for (const ExpertAgreement& layer : layers) {
            std::cout << "experts of layer " << layer.layer << " shared with " << visible(with) << "  "
                      << fixed(100 * layer.common, 1) << " %, the same set at " << fixed(100 * layer.same, 1)
                      << " % of the tokens\n";
        }
    }
    for (const Grouping& grouping : groupings) {
        print_grouping(grouping, ponders);
    }
    print_groups(groups.classes, groups.classes.size(), "class", ponders);
    print_groups(groups.types, rows, "token", ponders);
    std::cout << "Classes and tokens: the token "
              << (types_of == "token" ? "at which the steps were spent" : "that the steps predicted") << ".";
    if (ponders) {
        std::cout << " drops last: share that stops before step " << max_steps
                  << ". elsewhere: mean steps of all other tokens. q: p, adjusted for false discovery ("
                  << (control == "by" ? "Benjamini-Yekutieli" : "Benjamini-Hochberg")
                  << "), of the test that the mean steps equal those elsewhere, by sign flips of "
                  << (groups.joined ? with_separators(groups.units) + " groups of " : "")
                  << (groups.resampling.unit == ResamplingUnit::blocks ? "blocks" : "clusters") << ".";
    }
    std::cout << "\n"
              << lines_of(estimate.by_block, "NLL") << intervals.sentence(estimate.resampling) << "\n";
    for (const std::string& notice : estimate.notices) {
        std::cout << "note: " << visible(notice) << "\n";
    }
}

nlohmann::json Statistics::to_json(const IntervalOptions& intervals) const {
    const auto json_of_correlations = [](const std::vector<StepsCorrelation>& list) {
        nlohmann::json rho = nlohmann::json::array();
        for (const StepsCorrelation& one : list) {
            rho.push_back({{"with", one.with}, {"tokens", one.tokens}, {"spearman", json_of(one.rho)}});
        }
        return rho;
    };
    nlohmann::json labels = nlohmann::json::array();
    std::int64_t unlabelled = 0;
    nlohmann::json by = nlohmann::json::array();
    for (const Grouping& grouping : groupings) {
        if (grouping.annotation) {
            by.push_back({{"annotation", grouping.name},
                          {"classes", json_of(grouping)},
                          {"tokens_without", grouping.without}});
        } else {
            labels = json_of(grouping);
            unlabelled = grouping.without;
        }
    }
    const auto table = [](const std::vector<TokenGroup>& list) {
        nlohmann::json rows = nlohmann::json::array();
        for (const TokenGroup& group : list) {
            rows.push_back(json_of(group));
            if (group.id >= 0) {
                rows.back()["id"] = group.id;
            }
        }
        return rows;
    };
    nlohmann::json report{{"run", run},
                          {"scored_tokens", estimate.scored_tokens},
                          {"max_steps", max_steps},
                          {"step_unit", unit},
                          {"mean_nll", json_of(estimate.mean_nll)},
                          {"mean_nll_over_documents", json_of(estimate.document_mean_nll)},
                          {"discovery_control", control},
                          {"perplexity", json_of(estimate.perplexity)},
                          {"bits_per_byte", json_of(estimate.bits_per_byte)},
                          {"mean_steps", json_of(estimate.mean_steps)},
                          {"steps_correlations", json_of_correlations(correlations)},
                          {"steps_and_gain", json_of_correlations(gains)},
                          {"labels", labels},
                          {"unlabelled_tokens", unlabelled},
                          {"by", by},
                          {"types_of", types_of},
                          {"classes", table(groups.classes)},
                          {"types", table(groups.types)},
                          {"notices", estimate.notices}};
    if (experts) {
        report["experts"] = json_of(*experts);
    }
    for (const auto& with : agreements) {
        report["expert_agreement"].push_back(json_of(with));
    }
    if (!estimate.by_block.empty()) {
        report["by_block_length"] = json_of(estimate.by_block);
    }
    intervals.write_to(report, estimate.resampling);
    return report;
}

std::string Statistics::to_csv() const {
    std::string text = "table,id,name,count,mean_steps,mean_steps_low,mean_steps_high,mean_nll,mean_nll_low,"
                       "mean_nll_high,drops_last_step,mean_steps_elsewhere,p,q\n";
    const auto row = [&](const std::string& table, const TokenGroup& group, const Estimate& steps,
                         const Estimate& nll) {
        text += table + "," + (group.id >= 0 ? std::to_string(group.id) : "") + "," +
                csv_field(valid_utf8(group.name)) + "," + std::to_string(group.count);
        for (const double value : {group.mean_steps, steps.low, steps.high, group.mean_nll, nll.low, nll.high,
                                   group.dropped, group.steps_elsewhere, group.p, group.q}) {
            text += "," + exact_digits(value);
        }
        text += "\n";
    };
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const Estimate none{nan, nan, nan, nan};
    for (const Grouping& grouping : groupings) {
        const std::string name = (grouping.annotation ? "by " : "") + grouping.name;
        for (const LabelledClass& one : grouping.classes) {
            row(name, one.group, one.steps, one.nll);
        }
    }
    for (const TokenGroup& group : groups.classes) {
        row("class", group, none, none);
    }
    for (const TokenGroup& group : groups.types) {
        row("token", group, none, none);
    }
    return text;
}

void StatsVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    std::optional<Labels> labelling = labels.empty() ? std::nullopt : std::optional(Labels::read(labels));
    const RunReference where = parse_run_reference(reference);
    const TraceReader reader = TraceReader::open(where.trace);
    const RunInfo run = find_run(reader, where.run);
    Statistics result;
    if (!labelling) {
        labelling = Labels::recorded(reader, run);
        if (labelling->rows.empty()) {
            labelling.reset();
        }
    }
    result.run = where.trace.string() + "#" + run.name;
    result.max_steps = run.max_steps;
    result.unit = run.step_unit;
    result.types_of = types_of;
    result.control = control;
    const DiscoveryControl how =
        control == "by" ? DiscoveryControl::benjamini_yekutieli : DiscoveryControl::benjamini_hochberg;
    RunStudy study = study_run(reader, run, {least, how, bootstrap, place_of(types_of)}, sensitivity);
    const BootstrapOptions settled = study.estimate.resampling.same_length(bootstrap);
    result.estimate = std::move(study.estimate);
    result.groups = std::move(study.groups);
    const bool ponders = run.max_steps > 0; // else steps go together with nothing
    if (ponders) {
        result.correlations = std::move(study.correlations);
    }
    result.experts = expert_use(reader, run, bootstrap.stop);
    for (const std::string& text : result.experts ? others : std::vector<std::string>()) {
        const RunReference other = parse_run_reference(text);
        const TraceReader other_reader = TraceReader::open(other.trace);
        const RunInfo second = find_run(other_reader, other.run);
        if (experts_signal(other_reader.signal_infos(second.id)) &&
            difference_of_tokens(reader, run, other_reader, second).empty()) {
            result.agreements.emplace_back(
                other_reader.name_of(second),
                expert_agreement(reader, run, other_reader, second, bootstrap.stop));
        }
    }
    for (const std::string& text : ponders ? others : std::vector<std::string>()) {
        const RunReference other = parse_run_reference(text);
        const TraceReader other_reader = TraceReader::open(other.trace);
        const RunInfo full = find_run(other_reader, other.run);
        result.correlations.push_back(correlate_steps(reader, run, other_reader, full, settled));
        if (auto gain = correlate_gain(reader, run, other_reader, full, settled); gain && gain->tokens > 0) {
            result.gains.push_back(std::move(*gain));
        }
    }
    if (!ponders && !others.empty() && result.agreements.empty()) {
        result.estimate.notices.emplace_back(
            "every token of the run has one step, so nothing is set against the steps (--against).");
    }
    const LabelPlace place = place_of(label_of);
    const auto group_by = [&](const std::string& name, const Labels& given, bool annotation) {
        const LabelledTokens tokens = label_tokens(reader, run, given, place, bootstrap.stop);
        result.groupings.push_back(
            {name, compare_classes(tokens, settled, how), tokens.unlabelled, annotation});
    };
    // By name; fifths of a number stand in its order already.
    const auto sort_classes = [&] {
        std::ranges::stable_sort(result.groupings.back().classes, comes_before);
    };
    if (labelling) {
        group_by("label", *labelling, false);
        sort_classes();
    }
    const auto annotations = by.empty() ? std::nullopt : AnnotationReader::beside(where.trace);
    for (const std::string& name : by) {
        const AnnotationInfo one = find_annotation(annotations, where.trace, run, name);
        if (!one.category && ponders) {
            result.correlations.push_back(correlate_steps(reader, run, *annotations, one, place, settled));
        }
        group_by(name, Labels::annotated(*annotations, one), true);
        if (one.category) {
            sort_classes();
        }
    }
    printer.finish();
    if (!csv.empty()) {
        write_file_atomically(csv, result.to_csv());
    }
    if (json) {
        std::cout << result.to_json(intervals).dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
                  << '\n';
        return;
    }
    result.print(rows, intervals);
}

} // namespace

void add_stats(CLI::App& program) {
    auto verb = std::make_shared<StatsVerb>();
    CLI::App* app = add_verb(program, "stats");
    app->add_option("run", verb->reference,
                    "TRACE.ponder#RUN; the run's name may be left out when it is the only one")
        ->required();
    app->add_option("--against", verb->others,
                    "Runs whose NLL is set against the steps; of another tokenizer: by the bytes that both "
                    "have. Of a run over the same tokens in which every step ran (--policy full), also what "
                    "the steps gained there: whether steps go where they pay")
        ->type_name("RUN");
    app->add_option("--labels", verb->labels,
                    "Classes of parts of the text, CSV with a header: document,begin,end,class (bytes) or "
                    "sequence,token,class; document and sequence are a title or a number from 0. Without it, "
                    "those that were recorded with the text (record --label-field)")
        ->type_name("FILE.csv");
    app->add_option(
           "--by", verb->by,
           "Annotations (see annotate) to group by: categories as they are, numbers in fifths and by "
           "Spearman's rho with the steps")
        ->type_name("NAME");
    app->add_option("--label-of", verb->label_of,
                    "A label or an annotation belongs to the prediction of what it covers, or to the token "
                    "that stands there")
        ->check(CLI::IsMember({"prediction", "token"}))
        ->capture_default_str();
    app->add_option("--types-of", verb->types_of,
                    "The token types and classes are those of the token at which steps were spent, or of the "
                    "one that they predicted")
        ->check(CLI::IsMember({"prediction", "token"}))
        ->capture_default_str();
    app->add_option("--least", verb->least, "Leave out token types with fewer tokens")
        ->check(number_from<std::int64_t>(2, 1'000'000'000))
        ->capture_default_str();
    app->add_option("--discovery", verb->control,
                    "False-discovery control of q: bh (Benjamini-Hochberg) or by (Benjamini-Yekutieli, for "
                    "tests that depend on each other in any way)")
        ->check(CLI::IsMember({"bh", "by"}))
        ->capture_default_str();
    app->add_flag("--block-sensitivity", verb->sensitivity,
                  "Also show the interval of the NLL with blocks of half, once and twice the length");
    app->add_option("--rows", verb->rows, "Token types to print")
        ->check(number_from<std::size_t>(0))
        ->capture_default_str();
    app->add_option("--csv", verb->csv, "Also write all tables")
        ->type_name("FILE.csv")
        ->check(replaces_no_trace());
    verb->intervals.add_to(*app);
    verb->progress.add_to(*app);
    app->add_flag("--json", verb->json, "Print the result as JSON");
    app->footer("Example:\n  ponderscope stats story.ponder#adaponderlm-neox-1m --against "
                "story.ponder#vanilla-neox-1m\n"
                "  ponderscope stats puzzles.ponder --labels puzzles.csv --csv tables.csv\n"
                "  ponderscope stats story.ponder --by part_of_speech");
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
