// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/world.h"
#include "core/train/trainer.h"

#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope::cli {
namespace {

struct TrainVerb {
    std::filesystem::path recipe;
    std::vector<std::string> changes;
    TrainOptions options;
    ProgressOption progress;
    bool resume = false;
    bool overwrite = false;
    bool json = false;

    void run();
};

void TrainVerb::run() {
    if (const World world = world_from_environment(); world.size > 1) {
        throw InputError(ErrorId::usage_unsuited, "train runs in one process, but " + world.launcher +
                                                      " started " + std::to_string(world.size) +
                                                      "; run the command without " + world.launcher + ".");
    }
    options.existing = resume      ? ExistingOutput::resume
                       : overwrite ? ExistingOutput::overwrite
                                   : ExistingOutput::refuse;
    ProgressPrinter printer(progress.style);
    options.progress = printer.sink();
    options.stop = stop_on_interrupt();
    options.notice = [&printer](const std::string& sentence) {
        printer.finish();
        std::fprintf(stderr, "note: %s\n", sentence.c_str());
    };
    if (progress.style == ProgressStyle::automatic) {
        options.logged = [&printer](const TrainLogRow& row) {
            printer.finish();
            const auto also = [](const char* name, const std::optional<double>& number) {
                return number ? std::string("  ") + name + " " + fixed(*number, 4) : std::string();
            };
            std::fprintf(stderr, "step %lld  loss %s  learning rate %s%s%s%s\n",
                         static_cast<long long>(row.step), fixed(row.loss, 4).c_str(),
                         fixed(row.learning_rate, 6).c_str(), also("mean steps", row.mean_steps).c_str(),
                         also("penalty", row.penalty).c_str(),
                         also("held-out NLL", row.held_out_nll).c_str());
        };
    }
    const TrainResult result = train(read_recipe(recipe, changes), options);
    printer.finish();
    if (json) {
        nlohmann::json report{{"output", options.output.string()},
                              {"steps", result.steps},
                              {"tokens", result.tokens},
                              {"parameters", result.parameters},
                              {"loss", result.loss},
                              {"held_out_nll", number_or_null(result.held_out_nll)},
                              {"held_out_tokens", result.held_out_tokens},
                              {"seconds", result.seconds},
                              {"tokens_per_second", result.tokens_per_second},
                              {"already_complete", result.already_complete}};
        std::cout << report.dump() << '\n';
        return;
    }
    std::cout << options.output.string() << "  " << with_separators(result.parameters) << " parameters, "
              << with_separators(result.steps) << " steps, " << with_separators(result.tokens)
              << " tokens, loss " << fixed(result.loss, 4);
    if (!std::isnan(result.held_out_nll)) {
        std::cout << ", held-out NLL " << fixed(result.held_out_nll, 4);
    }
    std::cout << (result.already_complete ? " (was complete already)" : "") << '\n';
}

} // namespace

void add_train(CLI::App& program) {
    auto [app, verb] = add_verb<TrainVerb>(program, "train");
    app.add_option("recipe", verb.recipe, "Recipe; resources/docs/training.md lists its keys")
        ->required()
        ->type_name("RECIPE.json");
    app.add_option("-o,--output", verb.options.output, "Checkpoint folder to write")
        ->required()
        ->type_name("DIR");
    app.add_option("--texts", verb.options.texts, "Folder of the texts, instead of the recipe's folder")
        ->type_name("DIR");
    app.add_option("--set", verb.changes,
                   "Replace a value of the recipe, such as training.seed=2; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    app.add_option("--device", verb.options.device, "Where to compute: cpu, cuda or cuda:N")
        ->capture_default_str();
    CLI::Option* resume = app.add_flag("--resume", verb.resume, "Continue an interrupted training");
    app.add_flag("--overwrite", verb.overwrite, "Start again in a folder that is not empty")
        ->excludes(resume);
    verb.progress.add_to(app);
    app.add_flag("--json", verb.json, "Print the result as JSON");
    app.footer(
        "Example:\n  ponderscope train sample_models/recipes/chains/vanilla.json -o build/chains/vanilla\n"
        "First write its texts:\n"
        "  python3 sample_models/known_difficulty/chains.py build/chains\n"
        "With texts of your own, which the recipe names by patterns:\n"
        "  ponderscope train RECIPE.json --texts DIR -o build/mine");
}

} // namespace ponderscope::cli
