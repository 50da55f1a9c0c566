// SPDX-License-Identifier: GPL-3.0-or-later
// `stats`: the losses of a run, where it spends its steps, and what the steps correlate with.
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/stats/expert_use.h"
#include "core/stats/labels.h"
#include "core/stats/run_study.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <iostream>
#include <optional>

namespace ponderscope::cli {
namespace {

/// A token's bytes as JSON: on one line, and different for different tokens.
std::string shown(const TokenGroup& group) {
    if (group.id < 0) {
        return group.name;
    }
    return group.name.empty()
               ? "id " + std::to_string(group.id)
               : nlohmann::json(group.name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Sorts classes by name: whole numbers by value first, then words.
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

struct StatsVerb : ReportOptions {
    std::vector<std::string> others;
    std::vector<std::string> by;
    std::string label_of = "prediction";
    std::string types_of = "prediction";
    std::int64_t least = 10;
    std::size_t rows = 30;

    void run();
};

/// Tokens grouped by their recorded label, or by an annotation.
struct Grouping {
    std::string name; ///< "label", or the annotation's name
    std::vector<LabelledClass> classes;
    std::int64_t without = 0; ///< number of scored tokens without a class
    bool annotation = false;
};

/// An empty table of token groups. \p steps: show the column of steps on a terminal, because steps vary.
DataTable group_table(const std::string& name, const std::string& title, bool steps, bool intervals) {
    const auto when = [](bool yes, const char* column) { return yes ? column : ""; };
    const bool bounded = steps && intervals;
    const bool plain = steps && !intervals;
    return {name,
            {{"", title, CellFormat::text},
             {"id", "", CellFormat::count},
             {"name", "", CellFormat::text},
             {"count", "count", CellFormat::count},
             {"mean_nll", when(!intervals, "NLL"), CellFormat::number, 3},
             {"nll", when(intervals, "NLL"), CellFormat::number, 3},
             {"mean_steps", when(plain, "steps"), CellFormat::number, 3},
             {"steps", when(bounded, "steps"), CellFormat::number, 3},
             {"mean_steps_elsewhere", when(plain, "elsewhere"), CellFormat::number, 3},
             {"steps_minus_elsewhere", when(bounded, "- elsewhere"), CellFormat::number, 3},
             {"drops_last_step", when(steps, "drops last"), CellFormat::share, 1},
             {"p", "", CellFormat::p},
             {"q", when(steps, "q"), CellFormat::p}},
            {}};
}

std::vector<Cell> row_of(const TokenGroup& group, const LabelledClass* labelled = nullptr) {
    const auto estimate = [&](Estimate LabelledClass::*of) {
        return labelled != nullptr ? Cell(labelled->*of) : Cell();
    };
    return {shown(group),
            group.id >= 0 ? Cell(std::int64_t{group.id}) : Cell(),
            group.name,
            group.count,
            group.mean_nll,
            estimate(&LabelledClass::nll),
            group.mean_steps,
            estimate(&LabelledClass::steps),
            group.steps_elsewhere,
            estimate(&LabelledClass::steps_difference),
            group.dropped,
            group.p,
            group.q};
}

DataTable table_of(const std::vector<StepsCorrelation>& list) {
    DataTable table{{},
                    {{"with", "Spearman of steps and", CellFormat::text},
                     {"spearman", "rho", CellFormat::number, 3},
                     {"tokens", "tokens", CellFormat::count}},
                    {}};
    for (const StepsCorrelation& one : list) {
        table.rows.push_back({one.with, one.rho, one.tokens});
    }
    return table;
}

/// The report on a run.
struct Statistics {
    std::string reference; ///< TRACE#RUN
    RunInfo run;
    RunStudy study;
    std::string types_of;
    std::optional<ExpertUse> experts;
    std::vector<StepsCorrelation> gains = {};
    std::vector<Grouping> groupings = {};

    void print(std::size_t rows, const IntervalOptions& intervals) const;
    [[nodiscard]] nlohmann::json to_json(const IntervalOptions& intervals) const;
    [[nodiscard]] bool ponders() const { return run.max_steps > 0; }
    /// The run's own numbers, one row.
    [[nodiscard]] DataTable numbers() const;
    /// One table for each grouping, then the table of classes, then the table of types.
    [[nodiscard]] std::vector<DataTable> tables() const;
};

nlohmann::json json_of_experts(const ExpertUse& use) {
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

void print_experts(const ExpertUse& use) {
    using enum CellFormat;
    DataTable table{{},
                    {{"", "experts of layer", text},
                     {"", "choices", count},
                     {"", "most used", text},
                     {"", "least used", text},
                     {"", "unused", count},
                     {"", "as token before", share, 1}},
                    {}};
    for (const LayerExperts& layer : use.layers) {
        const auto [least, most] = std::ranges::minmax_element(layer.load);
        const auto named = [&](auto expert) {
            const auto e = static_cast<std::size_t>(expert - layer.load.begin());
            return std::to_string(e) + ": " + fixed(100 * layer.share(e), 1) + " %";
        };
        table.rows.push_back({layer.layer, layer.choices, named(most), named(least),
                              static_cast<std::int64_t>(std::ranges::count(layer.load, 0)),
                              layer.repeat_share()});
    }
    std::cout << "\n"
              << text_of(table) << use.chosen << " of " << use.experts << " experts a token; even use is "
              << fixed(100 * static_cast<double>(use.chosen) / static_cast<double>(use.experts), 1)
              << " % each.\n";
}

DataTable Statistics::numbers() const {
    DataTable row;
    row.add({"mean_nll", "NLL", CellFormat::number, 4, "nats a token"}, study.estimate.mean_nll);
    row.add({"perplexity", "perplexity", CellFormat::number, 2}, study.estimate.perplexity);
    row.add({"bits_per_byte", "bits per byte"}, study.estimate.bits_per_byte);
    row.add({"mean_steps", ponders() ? "steps" : "", CellFormat::number, 3}, study.estimate.mean_steps);
    return row;
}

std::vector<DataTable> Statistics::tables() const {
    std::vector<DataTable> tables;
    for (const Grouping& grouping : groupings) {
        tables.push_back(
            group_table((grouping.annotation ? "by " : "") + grouping.name, grouping.name, ponders(), true));
        for (const LabelledClass& one : grouping.classes) {
            tables.back().rows.push_back(row_of(one.group, &one));
        }
    }
    for (const auto& [name, list] :
         {std::pair{"class", &study.groups.classes}, std::pair{"token", &study.groups.types}}) {
        tables.push_back(group_table(name, name, ponders(), false));
        for (const TokenGroup& group : *list) {
            tables.back().rows.push_back(row_of(group));
        }
    }
    return tables;
}

void Statistics::print(std::size_t rows, const IntervalOptions& intervals) const {
    std::cout << visible(reference) << "  " << with_separators(study.estimate.scored_tokens)
              << " scored tokens, " << run.step_unit << "s 0 to " << run.max_steps << "\n"
              << list_of(numbers(), 0);
    if (!study.correlations.empty()) {
        std::cout << "\n"
                  << text_of(table_of(study.correlations))
                  << "  NLL and entropy belong to the chosen read-out, after the steps: a gate that stops "
                     "where the\n  loss is already low makes rho negative, whether or not steps pay.\n";
    }
    if (!gains.empty()) {
        std::cout << "steps and gain (NLL at step 0 minus NLL at the last step, where every step ran)\n"
                  << text_of(table_of(gains));
    }
    if (experts) {
        print_experts(*experts);
    }
    const std::vector<DataTable> all = tables();
    for (std::size_t t = 0; t < all.size(); ++t) {
        std::cout << "\n" << text_of(all[t], t + 1 == all.size() ? rows : SIZE_MAX);
        if (t < groupings.size()) {
            std::cout << with_separators(groupings[t].without) << " scored tokens have no "
                      << groupings[t].name << "\n";
        }
    }
    std::cout << "\nClasses and tokens: the token "
              << (types_of == "token" ? "at which the steps were spent" : "that the steps predicted") << ".";
    if (ponders()) {
        std::cout << " drops last: share that stops before step " << run.max_steps
                  << ". elsewhere: mean steps of all other tokens. q: p, adjusted for false discovery "
                     "(Benjamini-Hochberg), of the test that the mean steps equal this mean, by sign "
                     "flips of "
                  << (study.groups.joined ? with_separators(study.groups.units) + " groups of " : "")
                  << (study.groups.resampling.unit == ResamplingUnit::blocks ? "blocks" : "clusters") << ".";
    }
    std::cout << "\n" << intervals.sentence(study.estimate.resampling) << "\n";
    print_notices(study.estimate.notices);
}

nlohmann::json Statistics::to_json(const IntervalOptions& intervals) const {
    nlohmann::json report = json_of(numbers()).front();
    report["run"] = reference;
    report["scored_tokens"] = study.estimate.scored_tokens;
    report["max_steps"] = run.max_steps;
    report["step_unit"] = run.step_unit;
    report["steps_correlations"] = json_of(table_of(study.correlations));
    report["steps_and_gain"] = json_of(table_of(gains));
    report["types_of"] = types_of;
    write_notices(report, study.estimate.notices);
    report["labels"] = report["by"] = nlohmann::json::array();
    report["unlabelled_tokens"] = 0;
    const std::vector<DataTable> all = tables();
    for (std::size_t t = 0; t < groupings.size(); ++t) {
        if (groupings[t].annotation) {
            report["by"].push_back({{"annotation", groupings[t].name},
                                    {"classes", json_of(all[t])},
                                    {"tokens_without", groupings[t].without}});
        } else {
            report["labels"] = json_of(all[t]);
            report["unlabelled_tokens"] = groupings[t].without;
        }
    }
    report["classes"] = json_of(all[all.size() - 2]);
    report["types"] = json_of(all.back());
    if (experts) {
        report["experts"] = json_of_experts(*experts);
    }
    intervals.write_to(report, study.estimate.resampling);
    return report;
}

void StatsVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    const RunReference where = parse_run_reference(reference);
    const TraceReader reader = TraceReader::open(where.trace);
    const RunInfo run = find_run(reader, where.run);
    Statistics result{where.trace.string() + "#" + run.name, run,
                      study_run(reader, run, {least, bootstrap, place_of(types_of)}), types_of,
                      expert_use(reader, run, bootstrap.stop)};
    const BootstrapOptions settled = result.study.estimate.resampling.same_length(bootstrap);
    std::vector<StepsCorrelation>& correlations = result.study.correlations;
    const bool ponders = result.ponders();
    if (!ponders) { // constant steps correlate with nothing
        correlations.clear();
    }
    for (const std::string& text : ponders ? others : std::vector<std::string>()) {
        const RunReference other = parse_run_reference(text);
        const TraceReader other_reader = TraceReader::open(other.trace);
        const RunInfo full = find_run(other_reader, other.run);
        correlations.push_back(correlate_steps(reader, run, other_reader, full, settled));
        if (auto gain = correlate_gain(reader, run, other_reader, full, settled); gain && gain->tokens > 0) {
            result.gains.push_back(std::move(*gain));
        }
    }
    if (!ponders && !others.empty()) {
        result.study.estimate.notices.push_back(
            {NoticeId::stats_one_step,
             "every token of the run has one step, so --against has no steps to correlate."});
    }
    const LabelPlace place = place_of(label_of);
    const auto group_by = [&](const std::string& name, const Labels& given, bool annotation) {
        const LabelledTokens tokens = label_tokens(reader, run, given, place, bootstrap.stop);
        result.groupings.push_back({name, compare_classes(tokens, settled), tokens.unlabelled, annotation});
    };
    // Sort by name. Fifths of a number are already in order.
    const auto sort_classes = [&] {
        std::ranges::stable_sort(result.groupings.back().classes, comes_before);
    };
    if (const Labels recorded = Labels::recorded(reader, run); !recorded.rows.empty()) {
        group_by("label", recorded, false);
        sort_classes();
    }
    const auto annotations = by.empty() ? std::nullopt : AnnotationReader::beside(where.trace);
    for (const std::string& name : by) {
        const AnnotationInfo one = find_annotation(annotations, where.trace, run, name);
        if (!one.category && ponders) {
            correlations.push_back(correlate_steps(reader, run, *annotations, one, place, settled));
        }
        group_by(name, Labels::annotated(*annotations, one), true);
        if (one.category) {
            sort_classes();
        }
    }
    printer.finish();
    if (!give([&] { return csv_of(result.tables()); }, [&] { return result.to_json(intervals); })) {
        result.print(rows, intervals);
    }
}

} // namespace

void add_stats(CLI::App& program) {
    auto [app, verb] = add_verb<StatsVerb>(program, "stats");
    verb.add_run(app);
    app.add_option("--against", verb.others,
                   "Runs whose NLL is correlated with the steps. If a run over the same tokens ran every "
                   "step (--policy full), also the gain of the steps: whether steps go where they pay")
        ->type_name("RUN");
    app.add_option("--by", verb.by,
                   "Annotations to group by (see annotate): categories, or numbers in fifths with "
                   "Spearman's rho with the steps")
        ->type_name("NAME");
    app.add_option(
           "--label-of", verb.label_of,
           "What a label or an annotation belongs to: the prediction of its token, or the token itself")
        ->check(CLI::IsMember({"prediction", "token"}))
        ->capture_default_str();
    app.add_option("--types-of", verb.types_of,
                   "Token whose type is used: the predicted token, or the token that ran the steps")
        ->check(CLI::IsMember({"prediction", "token"}))
        ->capture_default_str();
    add_number(app, "--least", verb.least, "Omit token types with fewer tokens", 2, 1'000'000'000);
    add_number(app, "--rows", verb.rows, "Number of token types to print", 0);
    verb.add_to(app, "Also write all tables as CSV");
    app.footer("Example:\n  ponderscope stats story.ponder#adaponderlm-neox-1m --against "
               "story.ponder#vanilla-neox-1m\n"
               "  ponderscope stats story.ponder --by part_of_speech");
}

} // namespace ponderscope::cli
