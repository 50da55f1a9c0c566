// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/stats/bootstrap.h"
#include "core/stats/paired.h"
#include "core/stats/seeds.h"
#include "core/trace/reader.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace ponderscope::cli {
namespace {

/// The comparison of one pair of runs, as a table with one row.
struct Pair {
    DataTable row;
    Resampling resampling;
    Notices notices;
};

void add_estimate(DataTable& row, const std::string& key, const std::string& title, const Estimate& estimate,
                  int decimals = 4, const std::string& unit = {}) {
    row.add({key, title, CellFormat::number, decimals, unit}, estimate);
}

void add_count(DataTable& row, const std::string& key, const std::string& title, std::int64_t count) {
    row.add({key, title, CellFormat::count}, count);
}

void add_difference(DataTable& row, const std::string& key, const std::string& title,
                    const Estimate& difference, double p, const std::string& unit) {
    add_estimate(row, key, title, difference, 4, unit);
    row.add({"p", "  p", CellFormat::p}, p);
    row.add({"", "  smallest detectable"}, difference.detectable);
}

Pair pair_of(PairedComparison found) {
    Pair pair{{}, found.resampling, std::move(found.notices)};
    DataTable& row = pair.row;
    const auto both = [&](const std::string& key, const std::string& title, const Estimate& a,
                          const Estimate& b, int decimals = 4) {
        add_estimate(row, key + "_a", title + " of A", a, decimals);
        add_estimate(row, key + "_b", title + " of B", b, decimals);
    };
    add_count(row, "tokens", "common scored tokens", found.tokens);
    add_difference(row, "difference", "NLL A - B", found.difference, found.p, "nats a token");
    both("mean_nll", "NLL", found.mean_a, found.mean_b);
    both("perplexity", "perplexity", found.perplexity_a, found.perplexity_b, 2);
    add_estimate(row, "perplexity_ratio", "perplexity A / B", found.perplexity_ratio);
    both("bits_per_byte", "bits per byte", found.bits_per_byte_a, found.bits_per_byte_b);
    add_estimate(row, "bits_per_byte_difference", "bits per byte A - B", found.bits_per_byte_difference);
    add_estimate(row, "pearson", "Pearson correlation", found.pearson, 3);
    row.add({"share_b_better", "B better on", CellFormat::share, 1, "of the tokens"}, found.share_b_better);
    if (found.flips) {
        const Flips& flips = *found.flips;
        const std::string top = "top_token.";
        add_count(row, top + "both_right", "top token right in both", flips.both_right);
        add_count(row, top + "only_a_right", "  only in A", flips.only_a);
        add_count(row, top + "only_b_right", "  only in B", flips.only_b);
        add_count(row, top + "both_wrong", "  in neither", flips.both_wrong);
        add_estimate(row, top + "share_right_difference", "  share, A - B", flips.difference);
        row.add({top + "p", "  p", CellFormat::p}, flips.p);
        row.add({top + "mcnemar_p_tokens_independent", "  p of McNemar, tokens independent", CellFormat::p},
                flips.mcnemar);
    }
    return pair;
}

/// The comparison of two methods. The caller prints the mean of each run, because a cell holds one number.
Pair pair_of(const SeedComparison& found) {
    Pair pair{{}, found.resampling, found.notices};
    DataTable& row = pair.row;
    add_count(row, "tokens", "common scored tokens", found.tokens);
    add_difference(row, "difference", "NLL A - B", found.difference, found.p, "nats a token");
    const auto side = [&](const std::string& of, const std::string& name, const Estimate& mean,
                          const std::vector<double>& means, double deviation) {
        add_estimate(row, "mean_nll_" + of, "NLL of " + name, mean);
        add_count(row, "seeds_" + of, "  runs", static_cast<std::int64_t>(means.size()));
        row.add({"deviation_of_runs_" + of, "  deviation of runs"}, deviation);
    };
    side("a", "A", found.mean_a, found.means_a, found.deviation_a);
    side("b", "B", found.mean_b, found.means_b, found.deviation_b);
    row.add({"share_of_variance_from_seeds", "variance from seeds", CellFormat::share, 0},
            found.share_of_seeds);
    row.add({"degrees_of_freedom", "  degrees of freedom", CellFormat::number, 1}, found.degrees);
    row.add({"paired_seeds", ""}, found.paired);
    return pair;
}

struct CompareVerb : ReportOptions {
    std::vector<std::string> references;
    bool seeds = false;
    bool paired_seeds = false;

    void run();
    void run_seeds(ProgressPrinter& printer) const;
    void print(const std::string& a, const std::vector<std::string>& b, const std::vector<Pair>& pairs,
               nlohmann::json report) const;
    [[nodiscard]] nlohmann::json json_of_pair(const std::string& a, const std::string& b,
                                              const Pair& pair) const;
};

/// Prints JSON with one row for each pair, or the pairs as tables.
void CompareVerb::print(const std::string& a, const std::vector<std::string>& b,
                        const std::vector<Pair>& pairs, nlohmann::json report) const {
    if (json) {
        print_json(report);
        return;
    }
    std::cout << "A  " << visible(a) << "\n";
    for (std::size_t at = 0; at < pairs.size(); ++at) {
        const Pair& pair = pairs[at];
        std::cout << "B  " << visible(b[at]) << "\n" << list_of(pair.row, 0, "   ");
        print_notices(pair.notices, "   ");
        std::cout << "   " << intervals.sentence(pair.resampling) << "\n";
    }
}

nlohmann::json CompareVerb::json_of_pair(const std::string& a, const std::string& b, const Pair& pair) const {
    nlohmann::json row = json_of(pair.row).front();
    row["a"] = a;
    row["b"] = b;
    write_notices(row, pair.notices);
    intervals.write_to(row, pair.resampling);
    return row;
}

/// Compares the first entry with each of the others. All use the longest block length, so that the first
/// entry has a single interval. \p compare(at, options): the comparison with entry \p at.
template <class Compare>
auto compare_with_first(std::size_t entries, const BootstrapOptions& options, const Compare& compare) {
    std::vector<decltype(compare(entries, options))> found;
    BootstrapOptions settled = options;
    settled.block_from_data = true;
    for (std::size_t at = 1; at < entries; ++at) {
        found.push_back(compare(at, options));
        settled.block = std::max(settled.block, found.back().resampling.block);
    }
    for (std::size_t at = 1; at < entries; ++at) {
        if (found[at - 1].resampling.block < settled.block) {
            found[at - 1] = compare(at, settled);
        }
    }
    return found;
}

/// A method: its runs, joined by commas.
std::vector<OpenedRun> open_method(const std::string& text) {
    std::vector<std::string> runs;
    for (const std::string_view run : split_at(text, ',')) {
        if (!run.empty()) {
            runs.emplace_back(run);
        }
    }
    return open_runs(runs);
}

void CompareVerb::run_seeds(ProgressPrinter& printer) const {
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    if (references.size() < 2) {
        throw InputError(
            ErrorId::usage_missing,
            "compare --seeds: expected at least two methods, found " + std::to_string(references.size()) +
                "; give each method as its runs joined by commas, or as a trace with all its runs.");
    }
    std::vector<std::vector<SeedRun>> methods;
    for (const std::string& text : references) {
        methods.emplace_back();
        for (OpenedRun& one : open_method(text)) {
            methods.back().push_back({one.reader, std::move(one.run)});
        }
    }
    const auto comparisons =
        compare_with_first(methods.size(), bootstrap, [&](std::size_t at, const BootstrapOptions& options) {
            return compare_seeds(read_seeds(methods.front(), methods[at], printer.sink(), options.stop),
                                 paired_seeds, options);
        });
    std::vector<Pair> pairs;
    nlohmann::json rows = nlohmann::json::array();
    for (std::size_t at = 1; at < methods.size(); ++at) {
        const SeedComparison& found = comparisons[at - 1];
        pairs.push_back(pair_of(found));
        rows.push_back(json_of_pair(references.front(), references[at], pairs.back()));
        rows.back()["runs_a"] = found.means_a;
        rows.back()["runs_b"] = found.means_b;
    }
    printer.finish();
    print(references.front(), {references.begin() + 1, references.end()}, pairs, {{"methods", rows}});
}

void CompareVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    if (seeds || paired_seeds) {
        run_seeds(printer);
        return;
    }
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    const std::vector<OpenedRun> runs = open_runs(references);
    if (runs.size() < 2) {
        throw InputError(ErrorId::usage_missing,
                         "compare: expected at least two runs, found " + std::to_string(runs.size()) +
                             "; name runs as TRACE.ponder#RUN, or a trace with several runs.");
    }
    const OpenedRun& a = runs.front();
    const std::vector<Pair> found =
        compare_with_first(runs.size(), bootstrap, [&](std::size_t at, const BootstrapOptions& options) {
            return pair_of(compare_paired(pair_runs(*a.reader, a.run, *runs[at].reader, runs[at].run,
                                                    {printer.sink(), options.stop, options.threads}),
                                          options));
        });
    nlohmann::json pairs = nlohmann::json::array();
    std::vector<std::string> others;
    for (std::size_t at = 1; at < runs.size(); ++at) {
        others.push_back(runs[at].reference);
        pairs.push_back(json_of_pair(a.reference, others.back(), found[at - 1]));
    }
    printer.finish();
    nlohmann::json report{{"pairs", pairs}};
    intervals.write_to(report, found.front().resampling);
    print(a.reference, others, found, std::move(report));
    if (!json) {
        std::cout << "Each run is one checkpoint: the intervals hold for these checkpoints, not for their "
                     "methods (--seeds compares methods).\n";
    }
}

} // namespace

void add_compare(CLI::App& program) {
    auto [app, verb] = add_verb<CompareVerb>(program, "compare");
    app.add_option("run", verb.references,
                   "TRACE.ponder#RUN, or TRACE.ponder for all its runs; with --seeds, the runs of a method "
                   "joined by commas")
        ->required();
    app.add_flag(
        "--seeds", verb.seeds,
        "Compare methods, each given as its runs from several seeds; seeds and text are resampled together");
    app.add_flag(
        "--paired-seeds", verb.paired_seeds,
        "As --seeds, with run i of one method paired with run i of the other (same data order, for example)");
    verb.add_to(app);
    app.footer("Differences are A - B: negative means that A predicts better. What the numbers assume: "
               "resources/docs/statistics.md.\n"
               "Example:\n  ponderscope compare story.ponder#vanilla-neox-1m story.ponder#ponderlm-neox-1m\n"
               "  ponderscope compare --seeds a.ponder#s1,a.ponder#s2,a.ponder#s3 b.ponder");
}

} // namespace ponderscope::cli
