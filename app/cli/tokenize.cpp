// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/record/jsonl.h"
#include "core/record/read_ahead.h"
#include "core/record/text_files.h"
#include "core/train/token_shards.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace ponderscope::cli {
namespace {

struct TokenizeVerb {
    std::filesystem::path folder;
    InputOptions input;
    std::filesystem::path decode;
    bool spans = false;
    bool json = false;
    std::filesystem::path shards;
    std::int64_t shard_tokens = std::int64_t{1} << 26;
    std::string document_end;
    JsonlOptions jsonl;
    ProgressOption progress;

    void run() const;
    void write_shards(const Tokenizer& tokenizer) const;
};

/// Part after part: what lies in memory is a shard, and some parts of texts or the longest line.
void TokenizeVerb::write_shards(const Tokenizer& tokenizer) const {
    if (input.texts.empty() == jsonl.file.empty() || !input.prompt.empty() || !decode.empty() || spans) {
        throw InputError("--shards takes texts by --text FILE... or by --jsonl FILE, one of them.");
    }
    std::optional<std::int32_t> end;
    if (!document_end.empty()) {
        end = tokenizer.id_of(document_end);
        if (!end) {
            throw InputError("--document-end: expected a token of " + tokenizer.files().front().string() +
                             ", found \"" + document_end + "\".");
        }
    }
    ProgressPrinter printer(progress.style);
    const std::stop_token stop = stop_on_interrupt();
    TokenShardWriter writer(shards, {tokenizer.digest(), tokenizer.size(), document_end, {}}, shard_tokens);
    std::vector<TokenShardInfo::Source> sources;
    const ProgressSink sink = printer.sink();
    // A text of a file is one document, whatever parts it is read in.
    const auto add_all = [&](TextSource& texts, const std::filesystem::path& from, bool one_document) {
        sources.push_back({from.filename().string(), "", 0, 0, 0});
        TokenShardInfo::Source& source = sources.back();
        const auto end_document = [&] {
            ++source.documents;
            if (end) {
                writer.add({*end});
                ++source.tokens;
            }
        };
        ReadAhead ahead(texts);
        while (const auto text = ahead.next()) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            writer.add(text->ids);
            source.bytes += static_cast<std::int64_t>(text->text.size());
            source.tokens += static_cast<std::int64_t>(text->ids.size());
            if (!one_document) {
                end_document();
            }
            if (sink) {
                sink({"tokenizing", source.bytes, texts.amount().total, "bytes"});
            }
        }
        if (stop.stop_requested()) {
            throw Cancelled();
        }
        if (one_document) {
            end_document();
        }
        source.sha256 = texts.text_digest();
    };
    for (const std::filesystem::path& one : input.texts) {
        TextFiles text({{one}, false}, tokenizer, sink, stop);
        add_all(text, one, true);
    }
    if (!jsonl.file.empty()) {
        JsonlOptions how = jsonl;
        how.special_tokens = false;
        JsonlSource lines(how, tokenizer, tokenizer.size(), sink, stop);
        add_all(lines, jsonl.file, false);
    }
    const std::int64_t tokens = writer.tokens();
    const std::int64_t written = writer.finish(std::move(sources));
    printer.finish();
    if (json) {
        std::cout
            << nlohmann::json{{"folder", shards.string()}, {"shards", written}, {"tokens", tokens}}.dump()
            << '\n';
    } else {
        std::cout << shards.string() << "  " << with_separators(tokens) << " tokens in "
                  << with_separators(written) << (written == 1 ? " shard\n" : " shards\n");
    }
}

void TokenizeVerb::run() const {
    const Tokenizer tokenizer = Tokenizer::load_folder(folder);
    if (!shards.empty()) {
        write_shards(tokenizer);
        return;
    }
    if (!jsonl.file.empty() || !document_end.empty()) {
        throw InputError("--jsonl and --document-end are of --shards DIR, which is not given.");
    }
    if (!decode.empty()) {
        nlohmann::json texts = nlohmann::json::array();
        for (const std::vector<std::int32_t>& row : read_ids(decode)) {
            texts.push_back(tokenizer.decode(row, input.no_special_tokens));
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
    std::vector<SequenceInput> sequences;
    if (!input.prompt.empty()) {
        sequences.push_back(sequence_from_prompt(input.prompt, tokenizer, !input.no_special_tokens));
    }
    for (const std::filesystem::path& file : input.texts) {
        sequences.push_back(sequence_from_text_file(file, tokenizer, !input.no_special_tokens));
    }
    nlohmann::json rows = nlohmann::json::array();
    for (const SequenceInput& sequence : sequences) {
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
}

} // namespace

void add_tokenize(CLI::App& program) {
    auto verb = std::make_shared<TokenizeVerb>();
    CLI::App* app = add_verb(program, "tokenize");
    app->add_option("checkpoint", verb->folder, "Checkpoint folder, or a tokenizer.json")->required();
    verb->input.add_to(*app, false);
    app->add_option("--decode", verb->decode, "Token ids (JSON or safetensors) to turn into text")
        ->type_name("FILE");
    app->add_flag("--spans", verb->spans, "Also each token's span in the text, in bytes");
    app->add_option("--shards", verb->shards,
                    "Write the tokens into this new folder, as what train maps instead of texts "
                    "(resources/docs/training.md)")
        ->type_name("DIR");
    app->add_option(
           "--jsonl", verb->jsonl.file,
           "With --shards: JSON Lines, one object with a text a line; .gz and .zst too, - for standard "
           "input")
        ->type_name("FILE");
    app->add_option("--text-field", verb->jsonl.text_field, "The field that holds the text")
        ->type_name("NAME")
        ->capture_default_str();
    app->add_flag("--skip-bad", verb->jsonl.skip_bad,
                  "Leave wrong lines of --jsonl out, those with fewer than two tokens too");
    app->add_option("--document-end", verb->document_end, "With --shards: a token put after each text")
        ->type_name("TOKEN");
    app->add_option("--shard-tokens", verb->shard_tokens, "Tokens a shard; memory grows with it")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
        ->capture_default_str();
    verb->progress.add_to(*app);
    app->add_flag("--json", verb->json, "Print JSON with --decode and --shards too (ids always are)");
    app->footer(
        "Example:\n  ponderscope tokenize sample_models/vanilla-neox-1m --prompt 'The lamp was lit.'\n"
        "  ponderscope tokenize sample_models/tokenizer/tokenizer.json --jsonl corpus.jsonl.gz "
        "--document-end '<|endoftext|>' --shards corpus.tokens");
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
