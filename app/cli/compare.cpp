// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/progress_option.h"
#include "app/cli/report.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/stats/byte_alignment.h"
#include "core/stats/pair_reading.h"
#include "core/stats/paired.h"
#include "core/stats/seeds.h"
#include "core/stats/sensitivity.h"
#include "core/trace/reader.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <variant>

namespace ponderscope::cli {
namespace {

struct Opened {
    std::string reference; ///< as the user named it
    std::shared_ptr<TraceReader> reader;
    RunInfo run;
};

/// A trace without a run name stands for all its runs.
std::vector<Opened> open_runs(const std::vector<std::string>& references) {
    std::vector<Opened> opened;
    for (const std::string& text : references) {
        const RunReference reference = parse_run_reference(text);
        auto reader = std::make_shared<TraceReader>(TraceReader::open(reference.trace));
        std::vector<RunInfo> runs;
        if (reference.run.empty()) {
            runs = reader->runs();
        } else {
            runs.push_back(find_run(*reader, reference.run));
        }
        for (RunInfo& run : runs) {
            const std::string name = reference.trace.string() + "#" + run.name;
            opened.push_back({name, reader, std::move(run)});
        }
    }
    return opened;
}

nlohmann::json to_json(const PairedComparison& comparison) {
    const DocumentMeans& documents = comparison.documents;
    nlohmann::json json{{"tokens", comparison.tokens},
                        {"difference", json_of(comparison.difference)},
                        {"p", number_or_null(comparison.p)},
                        {"mean_nll_a", json_of(comparison.mean_a)},
                        {"mean_nll_b", json_of(comparison.mean_b)},
                        {"perplexity_a", json_of(comparison.perplexity_a)},
                        {"perplexity_b", json_of(comparison.perplexity_b)},
                        {"perplexity_ratio", json_of(comparison.perplexity_ratio)},
                        {"bits_per_byte_a", json_of(comparison.bits_per_byte_a)},
                        {"bits_per_byte_b", json_of(comparison.bits_per_byte_b)},
                        {"bits_per_byte_difference", json_of(comparison.bits_per_byte_difference)},
                        {"over_documents",
                         {{"documents", comparison.resampling.clusters},
                          {"mean_nll_a", json_of(documents.a)},
                          {"mean_nll_b", json_of(documents.b)},
                          {"difference", json_of(documents.difference)},
                          {"bits_per_byte_a", json_of(documents.bits_per_byte_a)},
                          {"bits_per_byte_b", json_of(documents.bits_per_byte_b)},
                          {"bits_per_byte_difference", json_of(documents.bits_per_byte_difference)}}},
                        {"pearson", json_of(comparison.pearson)},
                        {"spearman", json_of(comparison.spearman)},
                        {"share_b_better", number_or_null(comparison.share_b_better)},
                        {"notices", comparison.notices}};
    if (comparison.flips) {
        const Flips& flips = *comparison.flips;
        json["top_token"] = {{"both_right", flips.both_right},
                             {"only_a_right", flips.only_a},
                             {"only_b_right", flips.only_b},
                             {"both_wrong", flips.both_wrong},
                             {"share_right_difference", json_of(flips.difference)},
                             {"p", number_or_null(flips.p)},
                             {"mcnemar_p_tokens_independent", number_or_null(flips.mcnemar)}};
    }
    if (comparison.equivalence) {
        const Equivalence& test = *comparison.equivalence;
        json["equivalence"] = {{"margin", test.margin},
                               {"p", number_or_null(test.p)},
                               {"p_above", number_or_null(test.p_above)},
                               {"p_below", number_or_null(test.p_below)},
                               {"low", number_or_null(test.low)},
                               {"high", number_or_null(test.high)}};
    }
    return json;
}

nlohmann::json to_json(const ByteComparison& comparison) {
    return {{"by", "bytes"},
            {"segments", comparison.segments},
            {"bytes", comparison.bytes},
            {"bits_per_byte_a", json_of(comparison.bits_per_byte_a)},
            {"bits_per_byte_b", json_of(comparison.bits_per_byte_b)},
            {"bits_per_byte_difference", json_of(comparison.difference)},
            {"p", number_or_null(comparison.p)},
            {"notices", comparison.notices}};
}

/// What was said of one pair.
struct Pair {
    std::variant<PairedComparison, ByteComparison> found;
    std::vector<BlockRow> by_block; ///< of the difference
    [[nodiscard]] const Resampling& resampling() const {
        return std::visit([](const auto& one) -> const Resampling& { return one.resampling; }, found);
    }
};

struct CompareVerb {
    std::vector<std::string> references;
    IntervalOptions intervals;
    std::optional<double> margin;
    bool seeds = false;
    bool paired_seeds = false;
    bool sensitivity = false;
    ProgressOption progress;
    bool json = false;

    void run();
    void run_seeds(ProgressPrinter& printer) const;
    void print(const PairedComparison& pair) const;
    void print(const ByteComparison& pair) const;
    void print(const SeedComparison& seeds_found) const;
};

std::string p_text(double p) {
    return std::isnan(p) ? "p -" : p < 1e-4 ? "p < 0.0001" : "p " + fixed(p, 4);
}

void print_notices(const std::vector<std::string>& notices) {
    for (const std::string& notice : notices) {
        std::cout << "   note: " << visible(notice) << "\n";
    }
}

void CompareVerb::print(const PairedComparison& pair) const {
    const auto both = [](const char* name, const Estimate& a, const Estimate& b, int decimals) {
        std::cout << "   " << padded(name, 22) << interval(a, decimals) << "   " << interval(b, decimals)
                  << "\n";
    };
    std::cout << "   common scored tokens  " << with_separators(pair.tokens) << "\n"
              << "   NLL B - A             " << interval(pair.difference, 4) << " nats a token, "
              << p_text(pair.p) << ", smallest detectable " << fixed(pair.difference.detectable, 4) << "\n";
    if (pair.resampling.clusters > 1) {
        std::cout << "     over documents      " << interval(pair.documents.difference, 4) << " ("
                  << with_separators(pair.resampling.clusters) << ", each of the same weight)\n";
    }
    if (pair.equivalence) {
        const Equivalence& test = *pair.equivalence;
        std::cout << "   as well as            "
                  << (test.p <= 1 - intervals.bootstrap.level ? "" : "not shown to be ") << "within "
                  << test.margin << " nats: " << p_text(test.p) << ", "
                  << fixed(100 * (2 * intervals.bootstrap.level - 1), 0) << " % interval ["
                  << fixed(test.low, 4) << ", " << fixed(test.high, 4) << "]\n";
    }
    both("NLL A, B", pair.mean_a, pair.mean_b, 4);
    if (pair.resampling.clusters > 1) {
        both("  over documents", pair.documents.a, pair.documents.b, 4);
    }
    both("perplexity A, B", pair.perplexity_a, pair.perplexity_b, 2);
    std::cout << "   perplexity B / A      " << interval(pair.perplexity_ratio, 4) << "\n";
    if (!std::isnan(pair.bits_per_byte_a.value)) {
        both("bits per byte A, B", pair.bits_per_byte_a, pair.bits_per_byte_b, 4);
        std::cout << "   bits per byte B - A   " << interval(pair.bits_per_byte_difference, 4) << "\n";
        if (pair.resampling.clusters > 1) {
            both("  over documents", pair.documents.bits_per_byte_a, pair.documents.bits_per_byte_b, 4);
        }
    }
    std::cout << "   correlation           Pearson " << interval(pair.pearson, 3) << "   Spearman "
              << interval(pair.spearman, 3) << "\n"
              << "   B better on           " << fixed(100 * pair.share_b_better, 1) << " % of the tokens\n";
    if (pair.flips) {
        const Flips& flips = *pair.flips;
        std::cout << "   top token right       both " << with_separators(flips.both_right) << ", only A "
                  << with_separators(flips.only_a) << ", only B " << with_separators(flips.only_b)
                  << ", neither " << with_separators(flips.both_wrong) << "\n"
                  << "     share, B - A        " << interval(flips.difference, 4) << ", " << p_text(flips.p)
                  << "; McNemar over tokens as independent " << p_text(flips.mcnemar) << "\n";
    }
    print_notices(pair.notices);
}

void CompareVerb::print(const ByteComparison& pair) const {
    std::cout << "   common scored bytes   " << with_separators(pair.bytes) << " in "
              << with_separators(pair.segments) << " stretches\n"
              << "   bits per byte B - A   " << interval(pair.difference, 4) << ", " << p_text(pair.p)
              << ", smallest detectable " << fixed(pair.difference.detectable, 4) << "\n"
              << "   bits per byte A, B    " << interval(pair.bits_per_byte_a, 4) << "   "
              << interval(pair.bits_per_byte_b, 4) << "\n";
    print_notices(pair.notices);
}

void CompareVerb::print(const SeedComparison& found) const {
    const auto deviation = [](double value) {
        return std::isnan(value) ? std::string("one run") : "deviation of runs " + fixed(value, 4);
    };
    std::cout << "   common scored tokens  " << with_separators(found.tokens) << "\n"
              << "   NLL B - A             " << interval(found.difference, 4) << " nats a token, "
              << p_text(found.p) << ", smallest detectable " << fixed(found.difference.detectable, 4) << "\n"
              << "   NLL A                 " << interval(found.mean_a, 4) << " over " << found.means_a.size()
              << " (" << deviation(found.deviation_a) << ")\n"
              << "   NLL B                 " << interval(found.mean_b, 4) << " over " << found.means_b.size()
              << " (" << deviation(found.deviation_b) << ")\n";
    if (!std::isnan(found.share_of_seeds)) {
        std::cout << "   variance from seeds   " << fixed(100 * found.share_of_seeds, 0)
                  << " %, degrees of freedom " << fixed(found.degrees, 1) << "\n";
    }
    print_notices(found.notices);
}

/// The length of blocks that all pairs of a report have, so that a run has one interval.
BootstrapOptions one_length(BootstrapOptions options, std::int64_t block) {
    options.block = block;
    options.block_from_data = true;
    return options;
}

/// A method: its runs, joined by commas.
std::vector<Opened> open_method(const std::string& text) {
    std::vector<std::string> runs;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        if (end > begin) {
            runs.push_back(text.substr(begin, end - begin));
        }
        begin = end + 1;
    }
    return open_runs(runs);
}

void CompareVerb::run_seeds(ProgressPrinter& printer) const {
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    if (references.size() < 2) {
        throw InputError("compare --seeds: expected at least two methods, found " +
                         std::to_string(references.size()) +
                         "; name the runs of each joined by commas, or a trace with all of them.");
    }
    std::vector<std::vector<SeedRun>> methods;
    for (const std::string& text : references) {
        methods.emplace_back();
        for (Opened& one : open_method(text)) {
            methods.back().push_back({one.reader, std::move(one.run)});
        }
    }
    nlohmann::json pairs = nlohmann::json::array();
    std::vector<SeedComparison> comparisons;
    const auto compare = [&](std::size_t at, const BootstrapOptions& options) {
        return compare_seeds(read_seeds(methods.front(), methods[at], printer.sink(), options.stop),
                             paired_seeds, options);
    };
    std::int64_t longest = 0;
    for (std::size_t at = 1; at < methods.size(); ++at) {
        comparisons.push_back(compare(at, bootstrap));
        longest = std::max(longest, comparisons.back().resampling.block);
    }
    for (std::size_t at = 1; at < methods.size(); ++at) {
        SeedComparison& found = comparisons[at - 1];
        if (found.resampling.block < longest) {
            found = compare(at, one_length(bootstrap, longest));
        }
        nlohmann::json row{{"a", references.front()},
                           {"b", references[at]},
                           {"tokens", found.tokens},
                           {"seeds_a", found.means_a.size()},
                           {"seeds_b", found.means_b.size()},
                           {"paired_seeds", found.paired},
                           {"difference", json_of(found.difference)},
                           {"p", number_or_null(found.p)},
                           {"degrees_of_freedom", number_or_null(found.degrees)},
                           {"mean_nll_a", json_of(found.mean_a)},
                           {"mean_nll_b", json_of(found.mean_b)},
                           {"runs_a", found.means_a},
                           {"runs_b", found.means_b},
                           {"deviation_of_runs_a", number_or_null(found.deviation_a)},
                           {"deviation_of_runs_b", number_or_null(found.deviation_b)},
                           {"share_of_variance_from_seeds", number_or_null(found.share_of_seeds)},
                           {"notices", found.notices}};
        intervals.write_to(row, found.resampling);
        pairs.push_back(std::move(row));
    }
    printer.finish();
    if (json) {
        const nlohmann::json report{{"methods", pairs}};
        std::cout << report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        return;
    }
    std::cout << "A  " << visible(references.front()) << "\n";
    for (std::size_t at = 0; at < comparisons.size(); ++at) {
        std::cout << "B  " << visible(references[at + 1]) << "\n";
        print(comparisons[at]);
        std::cout << "   " << intervals.sentence(comparisons[at].resampling)
                  << (paired_seeds ? ", pairs of runs drawn apart from them\n"
                                   : ", runs drawn apart from them\n");
    }
}

void CompareVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    if (seeds || paired_seeds) {
        if (margin || sensitivity || intervals.bootstrap.kind == IntervalKind::bca) {
            throw InputError(
                "compare --seeds: --equivalence, --block-sensitivity and --interval bca are for one "
                "run a side; leave them out.");
        }
        run_seeds(printer);
        return;
    }
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    const std::vector<Opened> runs = open_runs(references);
    if (runs.size() < 2) {
        throw InputError("compare: expected at least two runs, found " + std::to_string(runs.size()) +
                         "; name them as TRACE.ponder#RUN, or a trace with several.");
    }
    const Opened& a = runs.front();
    const auto by_bytes = [&](const Opened& b) {
        return a.run.text_digest == b.run.text_digest &&
               !have_same_tokens(*a.reader, a.run, *b.reader, b.run);
    };
    const auto compare = [&](const Opened& b, const BootstrapOptions& options) {
        // Tokens of one tokenizer are compared one by one, those of several by the bytes under them.
        std::optional<PairedSample> sample; // where its tokens are needed
        if (by_bytes(b) || sensitivity) {
            sample =
                by_bytes(b)
                    ? pair_runs_by_bytes(*a.reader, a.run, *b.reader, b.run, printer.sink(), options.stop)
                    : pair_runs(*a.reader, a.run, *b.reader, b.run, printer.sink(), options.stop);
        }
        Pair pair;
        if (by_bytes(b)) {
            pair.found = compare_by_bytes(*sample, options);
        } else {
            pair.found = sample ? compare_paired(*sample, options, margin)
                                : compare_runs(*a.reader, a.run, *b.reader, b.run, options, margin);
        }
        if (sensitivity) {
            std::vector<double> apart;
            for (std::size_t i = 0; i < sample->a.size(); ++i) {
                apart.push_back(sample->b[i] - sample->a[i]);
            }
            pair.by_block = block_sensitivity(apart, sample->layout, options);
        }
        return pair;
    };
    std::vector<Pair> found;
    std::map<bool, std::int64_t> longest; // by the unit: tokens, or stretches of bytes
    for (std::size_t at = 1; at < runs.size(); ++at) {
        if (by_bytes(runs[at]) && margin) {
            throw InputError("compare --equivalence: the margin is in nats a token, and " + a.reference +
                             " and " + runs[at].reference + " have different tokenizers; leave it out.");
        }
        found.push_back(compare(runs[at], bootstrap));
        std::int64_t& block = longest[by_bytes(runs[at])];
        block = std::max(block, found.back().resampling().block);
    }
    // One length of blocks for all pairs: the first run has one interval.
    nlohmann::json pairs = nlohmann::json::array();
    for (std::size_t at = 1; at < runs.size(); ++at) {
        Pair& pair = found[at - 1];
        const std::int64_t block = longest[by_bytes(runs[at])];
        if (pair.resampling().block < block) {
            pair = compare(runs[at], one_length(bootstrap, block));
        }
        nlohmann::json row =
            std::visit([](const auto& comparison) { return to_json(comparison); }, pair.found);
        if (sensitivity) {
            row["by_block_length"] = json_of(pair.by_block);
        }
        row["a"] = a.reference;
        row["b"] = runs[at].reference;
        intervals.write_to(row, pair.resampling());
        pairs.push_back(std::move(row));
    }
    printer.finish();
    if (json) {
        nlohmann::json report{{"pairs", pairs}};
        intervals.write_to(report, found.front().resampling());
        std::cout << report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        return;
    }
    std::cout << "A  " << visible(a.reference) << "\n";
    for (std::size_t at = 0; at < found.size(); ++at) {
        std::cout << "B  " << visible(runs[at + 1].reference) << "\n";
        std::visit([this](const auto& comparison) { print(comparison); }, found[at].found);
        std::cout << lines_of(found[at].by_block, "   difference (nats)") << "   "
                  << intervals.sentence(found[at].resampling()) << "\n";
    }
    std::cout
        << "Runs are single checkpoints: the intervals hold for these, not for their methods (--seeds).\n";
}

} // namespace

void add_compare(CLI::App& program) {
    auto verb = std::make_shared<CompareVerb>();
    CLI::App* app = add_verb(program, "compare");
    app->add_option(
           "run", verb->references,
           "TRACE.ponder#RUN, or TRACE.ponder for all its runs; with --seeds: a method, its runs joined "
           "by commas")
        ->required();
    app->add_option("--equivalence", verb->margin,
                    "Also test that B is as good as A: two one-sided tests with this margin, nats a token")
        ->check(number_above(0))
        ->type_name("MARGIN");
    app->add_flag(
        "--seeds", verb->seeds,
        "Every argument is a method, its runs trained from several seeds: seeds and text are resampled "
        "together");
    app->add_flag("--paired-seeds", verb->paired_seeds,
                  "As --seeds; run i of one method belongs to run i of the other (same data order, say)");
    app->add_flag("--block-sensitivity", verb->sensitivity,
                  "Also show the difference's interval with blocks of half, once and twice the length");
    verb->intervals.add_to(*app);
    verb->progress.add_to(*app);
    app->add_flag("--json", verb->json, "Print the result as JSON");
    app->footer("Differences are B - A: negative means that B predicts better. What the numbers assume: "
                "resources/docs/statistics.md.\n"
                "Example:\n  ponderscope compare story.ponder#vanilla-neox-1m story.ponder#ponderlm-neox-1m\n"
                "  ponderscope compare --equivalence 0.01 long.ponder#plain long.ponder#ponder\n"
                "  ponderscope compare --seeds a.ponder#s1,a.ponder#s2,a.ponder#s3 b.ponder");
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
