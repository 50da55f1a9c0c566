// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/options.h"
#include "app/cli/report.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/stats/byte_alignment.h"
#include "core/stats/paired.h"
#include "core/trace/reader.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <iostream>
#include <memory>
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
    return {{"tokens", comparison.tokens},
            {"difference", json_of(comparison.difference)},
            {"mean_nll_a", json_of(comparison.mean_a)},
            {"mean_nll_b", json_of(comparison.mean_b)},
            {"perplexity_a", json_of(comparison.perplexity_a)},
            {"perplexity_b", json_of(comparison.perplexity_b)},
            {"perplexity_ratio", json_of(comparison.perplexity_ratio)},
            {"bits_per_byte_a", json_of(comparison.bits_per_byte_a)},
            {"bits_per_byte_b", json_of(comparison.bits_per_byte_b)},
            {"pearson", json_of(comparison.pearson)},
            {"spearman", json_of(comparison.spearman)},
            {"share_b_better", number(comparison.share_b_better)},
            {"notices", comparison.notices}};
}

nlohmann::json to_json(const ByteComparison& comparison) {
    return {{"by", "bytes"},
            {"segments", comparison.segments},
            {"bytes", comparison.bytes},
            {"bits_per_byte_a", json_of(comparison.bits_per_byte_a)},
            {"bits_per_byte_b", json_of(comparison.bits_per_byte_b)},
            {"bits_per_byte_difference", json_of(comparison.difference)},
            {"notices", comparison.notices}};
}

std::string with_interval(const Estimate& estimate, int decimals) {
    return fixed(estimate.value, decimals) + " [" + fixed(estimate.low, decimals) + ", " +
           fixed(estimate.high, decimals) + "]";
}

struct CompareVerb {
    std::vector<std::string> references;
    IntervalOptions intervals;
    ProgressOption progress;
    bool json = false;

    void run();
    void print(const PairedComparison& pair) const;
    void print(const ByteComparison& pair) const;
};

void CompareVerb::print(const PairedComparison& pair) const {
    std::cout << "   common scored tokens  " << with_separators(pair.tokens) << "\n"
              << "   NLL B - A             " << with_interval(pair.difference, 4) << " nats a token\n"
              << "   NLL A, B              " << with_interval(pair.mean_a, 4) << "   "
              << with_interval(pair.mean_b, 4) << "\n"
              << "   perplexity A, B       " << with_interval(pair.perplexity_a, 2) << "   "
              << with_interval(pair.perplexity_b, 2) << "\n"
              << "   perplexity B / A      " << with_interval(pair.perplexity_ratio, 4) << "\n";
    if (!std::isnan(pair.bits_per_byte_a.value)) {
        std::cout << "   bits per byte A, B    " << with_interval(pair.bits_per_byte_a, 4) << "   "
                  << with_interval(pair.bits_per_byte_b, 4) << "\n";
    }
    std::cout << "   correlation           Pearson " << with_interval(pair.pearson, 3) << "   Spearman "
              << with_interval(pair.spearman, 3) << "\n"
              << "   B better on           " << fixed(100 * pair.share_b_better, 1) << " % of the tokens\n";
    for (const std::string& notice : pair.notices) {
        std::cout << "   note: " << notice << "\n";
    }
}

void CompareVerb::print(const ByteComparison& pair) const {
    std::cout << "   common scored bytes   " << with_separators(pair.bytes) << " in "
              << with_separators(pair.segments) << " stretches\n"
              << "   bits per byte B - A   " << with_interval(pair.difference, 4) << "\n"
              << "   bits per byte A, B    " << with_interval(pair.bits_per_byte_a, 4) << "   "
              << with_interval(pair.bits_per_byte_b, 4) << "\n";
    for (const std::string& notice : pair.notices) {
        std::cout << "   note: " << notice << "\n";
    }
}

void CompareVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    const BootstrapOptions& bootstrap = intervals.bootstrap;
    const std::vector<Opened> runs = open_runs(references);
    if (runs.size() < 2) {
        throw InputError("compare: expected at least two runs, found " + std::to_string(runs.size()) +
                         "; name them as TRACE.ponder#RUN, or a trace with several.");
    }
    // Tokens of one tokenizer are compared one by one, those of several by the bytes under them.
    std::vector<std::variant<PairedComparison, ByteComparison>> comparisons;
    nlohmann::json pairs = nlohmann::json::array();
    const Opened& a = runs.front();
    for (std::size_t at = 1; at < runs.size(); ++at) {
        const Opened& b = runs[at];
        const bool by_bytes =
            a.run.tokenizer_digest != b.run.tokenizer_digest && a.run.text_digest == b.run.text_digest;
        nlohmann::json pair;
        if (by_bytes) {
            ByteComparison comparison = compare_by_bytes(
                pair_runs_by_bytes(*a.reader, a.run, *b.reader, b.run, printer.sink(), bootstrap.stop),
                bootstrap);
            pair = to_json(comparison);
            comparisons.emplace_back(std::move(comparison));
        } else {
            PairedComparison comparison = compare_paired(
                pair_runs(*a.reader, a.run, *b.reader, b.run, printer.sink(), bootstrap.stop), bootstrap);
            pair = to_json(comparison);
            comparisons.emplace_back(std::move(comparison));
        }
        pair["a"] = a.reference;
        pair["b"] = b.reference;
        pairs.push_back(std::move(pair));
    }
    printer.finish();
    if (json) {
        nlohmann::json report{{"pairs", pairs}};
        intervals.write_to(report);
        std::cout << report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        return;
    }
    std::cout << "A  " << a.reference << "\n";
    for (std::size_t at = 0; at < comparisons.size(); ++at) {
        std::cout << "B  " << runs[at + 1].reference << "\n";
        std::visit([this](const auto& comparison) { print(comparison); }, comparisons[at]);
    }
    std::cout << intervals.sentence() << "\n";
}

} // namespace

void add_compare(CLI::App& program) {
    auto verb = std::make_shared<CompareVerb>();
    CLI::App* app = program.add_subcommand(
        "compare",
        "Compare runs of one text: the first with each of the others, token by token, or byte by byte "
        "where their tokenizers differ");
    app->add_option("run", verb->references, "TRACE.ponder#RUN, or TRACE.ponder for all its runs")
        ->required();
    verb->intervals.add_to(*app);
    verb->progress.add_to(*app);
    app->add_flag("--json", verb->json, "Print the result as JSON");
    app->footer("Differences are B - A: negative means that B predicts better.\n"
                "Example:\n  ponderscope compare story.ponder#vanilla-neox-1m story.ponder#ponderlm-neox-1m");
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
