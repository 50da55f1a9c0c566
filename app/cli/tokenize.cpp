// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/options.h"
#include "app/cli/verbs.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace ponderscope::cli {
namespace {

struct TokenizeVerb {
    std::filesystem::path folder;
    InputOptions input;
    std::filesystem::path decode;
    bool spans = false;
    bool json = false;

    void run() const;
};

void TokenizeVerb::run() const {
    const Tokenizer tokenizer = Tokenizer::load_folder(folder);
    if (!decode.empty()) {
        nlohmann::json texts = nlohmann::json::array();
        for (const std::vector<std::int32_t>& row : read_ids(decode)) {
            texts.push_back(tokenizer.decode(row, !input.reading.adds()));
            if (!json) {
                std::cout << texts.back().get_ref<const std::string&>() << '\n';
            }
        }
        if (json) {
            std::cout << texts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        }
        return;
    }
    input.check();
    nlohmann::json rows = nlohmann::json::array();
    for (const SequenceInput& sequence : input.read_texts(tokenizer)) {
        if (!spans) {
            rows.push_back(sequence.ids);
            continue;
        }
        nlohmann::json row = nlohmann::json::array();
        for (std::size_t t = 0; t < sequence.ids.size(); ++t) {
            row.push_back({{"id", sequence.ids[t]}, {"begin", sequence.begin[t]}, {"end", sequence.end[t]}});
        }
        rows.push_back(std::move(row));
    }
    std::cout << rows.dump() << '\n';
    ProgressPrinter(ProgressStyle::automatic).note(tokenizer.notices());
}

} // namespace

void add_tokenize(CLI::App& program) {
    auto [app, verb] = add_verb<TokenizeVerb>(program, "tokenize");
    app.add_option("checkpoint", verb.folder, "Checkpoint folder, or a tokenizer.json")->required();
    verb.input.add_to(app, false);
    app.add_option("--decode", verb.decode, "Token ids to turn into text (JSON or safetensors)")
        ->type_name("FILE");
    app.add_flag("--spans", verb.spans, "Also print each token's span in bytes of the text");
    app.add_flag("--json", verb.json, "Print the text of --decode as JSON");
    app.footer("Example:\n  ponderscope tokenize sample_models/vanilla-neox-1m --prompt 'The lamp was lit.'");
}

} // namespace ponderscope::cli
