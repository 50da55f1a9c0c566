// SPDX-License-Identifier: GPL-3.0-or-later
// `lineage`: tests whether two checkpoints have a common origin.
#include "core/lineage/lineage.h"

#include "app/cli/console.h"
#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/utf8.h"

#include <cmath>
#include <iostream>

namespace ponderscope::cli {
namespace {

struct LineageVerb {
    std::filesystem::path a;
    std::filesystem::path b;
    LineageOptions options;
    ProgressOption progress;
    bool json = false;

    void run();
};

nlohmann::json pair_of(const LayerPair& pair) {
    return {pair.a, pair.b};
}

nlohmann::json to_json(const AttentionMatch& awm) {
    nlohmann::json pairs = nlohmann::json::array();
    nlohmann::json query = nlohmann::json::object();
    nlohmann::json key = nlohmann::json::object();
    for (const AttentionMatch::Layer& layer : awm.layers) {
        pairs.push_back(pair_of(layer.pair));
        query[std::to_string(layer.pair.a)] = layer.query;
        key[std::to_string(layer.pair.a)] = layer.key;
    }
    return {{"aligned", awm.aligned},
            {"shared_tokens", awm.shared_tokens},
            {"base", awm.base_is_a ? "a" : "b"},
            {"base_dimension", awm.base_dimension},
            {"sign", awm.sign},
            {"mean_cosine", number_or_null(awm.aligned ? awm.mean_cosine : std::nan(""))},
            {"dimensions_in_place", awm.dimensions_in_place()},
            {"signs_flipped", awm.signs_flipped()},
            {"layer_pairs", pairs},
            {"Wq", query},
            {"Wk", key},
            {"average_Wq", awm.query_mean},
            {"average_Wk", awm.key_mean},
            {"similarity", awm.similarity},
            {"n", awm.dimensions()},
            {"chance_deviation", awm.chance_deviation},
            {"z", awm.z},
            {"z_published", awm.z_published},
            {"common_origin_from", awm.similarity_at(common_origin_z)}};
}

nlohmann::json to_json(const InvariantTerms& huref) {
    nlohmann::json pairs = nlohmann::json::array();
    for (const LayerPair& pair : huref.layers) {
        pairs.push_back(pair_of(pair));
    }
    const auto numbers = [](const std::vector<double>& values) {
        nlohmann::json list = nlohmann::json::array();
        for (const double value : values) {
            list.push_back(number_or_null(value));
        }
        return list;
    };
    return {{"tokens", huref.tokens},
            {"layer_pairs", pairs},
            {"WqWk", numbers(huref.correlation[InvariantTerms::query_key])},
            {"WvWo", numbers(huref.correlation[InvariantTerms::value_output])},
            {"WuWd", numbers(huref.correlation[InvariantTerms::up_down])},
            {"ics", number_or_null(huref.ics)}};
}

std::string sentence_of(LineageVerdict verdict) {
    switch (verdict) {
    case LineageVerdict::common_origin:
        return "One model is derived from the other, or both have the same initial weights; the same random "
               "seed is enough. The test does not tell which model came first.";
    case LineageVerdict::undecided:
        return "The models are more alike than chance makes likely, but less than related models are.";
    case LineageVerdict::none_found:
        break;
    }
    return "The models are no more alike than independent models. This does not prove independence.";
}

void print(const AttentionMatch& awm) {
    std::cout << "  AWM    similarity " << fixed(awm.similarity, 4) << "  z " << fixed(awm.z, 1)
              << " (chance deviation " << fixed(awm.chance_deviation, 4) << " at width " << awm.dimensions()
              << ")  z by the published deviation " << fixed(awm.z_published, 1) << "\n";
    if (awm.aligned) {
        std::cout << "         " << with_separators(awm.shared_tokens) << " shared tokens align "
                  << awm.dimensions() << " dimensions at mean |cosine| " << fixed(awm.mean_cosine, 4) << "; "
                  << awm.dimensions_in_place() << " stay in place, " << awm.signs_flipped()
                  << " are flipped\n";
    }
    std::cout << "         layer A  layer B       W_q       W_k\n";
    for (const AttentionMatch::Layer& layer : awm.layers) {
        std::cout << "         " << right(std::to_string(layer.pair.a), 7)
                  << right(std::to_string(layer.pair.b), 9) << right(fixed(layer.query, 4), 10)
                  << right(fixed(layer.key, 4), 10) << "\n";
    }
    std::cout << "         mean            " << right(fixed(awm.query_mean, 4), 10)
              << right(fixed(awm.key_mean, 4), 10) << "\n";
}

void print(const InvariantTerms& huref) {
    std::cout << "  HuRef  ICS " << fixed(huref.ics, 4) << " over " << with_separators(huref.tokens)
              << " tokens; ICS does not decide the verdict (a low value proves nothing)\n"
              << "         layer A  layer B     Wq Wk     Wv Wo     Wu Wd\n";
    for (std::size_t i = 0; i < huref.layers.size(); ++i) {
        std::cout << "         " << right(std::to_string(huref.layers[i].a), 7)
                  << right(std::to_string(huref.layers[i].b), 9);
        for (const std::vector<double>& term : huref.correlation) {
            std::cout << right(fixed(term[i], 4), 10);
        }
        std::cout << "\n";
    }
}

void LineageVerb::run() {
    ProgressPrinter printer(progress.style);
    const Checkpoint model_a = Checkpoint::open(a);
    const Checkpoint model_b = Checkpoint::open(b);
    const Lineage lineage = compare_lineage(model_a, model_b, options, printer.sink(), stop_on_interrupt());
    printer.finish();
    if (json) {
        nlohmann::json report{{"a", a.string()},
                              {"b", b.string()},
                              {"verdict", to_string(lineage.verdict)},
                              {"sentence", sentence_of(lineage.verdict)},
                              {"basis", lineage_basis},
                              {"awm", to_json(lineage.awm)},
                              {"huref", lineage.huref ? to_json(*lineage.huref) : nlohmann::json(nullptr)}};
        write_notices(report, lineage.notices);
        if (!lineage.huref) {
            report["why_no_huref"] = lineage.why_no_huref;
        }
        print_json(report);
        return;
    }
    const auto describe = [](const char* name, const std::filesystem::path& path, const Checkpoint& model) {
        std::cout << name << "  " << path.string() << "  " << to_string(model.config.architecture) << ", "
                  << model.config.layers << " layers, width " << model.config.hidden_size << "\n";
    };
    describe("A", a, model_a);
    describe("B", b, model_b);
    std::cout << to_string(lineage.verdict) << ": " << sentence_of(lineage.verdict) << "\n";
    print(lineage.awm);
    if (lineage.huref) {
        print(*lineage.huref);
    } else {
        std::cout << "  HuRef  not computed: " << lineage.why_no_huref << "\n";
    }
    for (const Notice& notice : lineage.notices) {
        std::cout << visible(notice.text) << "\n";
    }
    std::cout << "Basis: " << lineage_basis << "\n";
}

} // namespace

void add_lineage(CLI::App& program) {
    auto [app, verb] = add_verb<LineageVerb>(program, "lineage");
    app.add_option("a", verb.a, "Checkpoint folder in Hugging Face layout")
        ->required()
        ->type_name("CHECKPOINT");
    app.add_option("b", verb.b, "Another checkpoint folder, of any backbone and width")
        ->required()
        ->type_name("CHECKPOINT");
    add_number(app, "--tokens", verb.options.tokens,
               "Maximum number of shared tokens for HuRef, taken from the highest ids", 2,
               std::int64_t{1} << 24);
    verb.progress.add_to(app);
    app.add_flag("--json", verb.json, "Print the result as JSON");
    app.footer(
        "AWM (arXiv 2510.06738) decides; HuRef (arXiv 2312.04828) is shown for comparison.\n"
        "resources/docs/lineage.md explains the layers, similarities and thresholds.\n"
        "Example:\n  ponderscope lineage sample_models/vanilla-neox-1m sample_models/ponderlm-neox-1m");
}

} // namespace ponderscope::cli
