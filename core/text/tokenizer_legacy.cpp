// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer_parts.h"

#include <algorithm>
#include <array>

namespace ponderscope {

namespace {

using Path = std::filesystem::path;

// Qwen 2 splits words from the signs before them and digits one by one.
constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<std::pair<std::string_view, std::string_view>> parse_merges(std::string_view text,
                                                                        const Path& file) {
    std::vector<std::pair<std::string_view, std::string_view>> merges;
    std::size_t number = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        ++number;
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        if (line.empty() || line.starts_with("#version")) {
            continue;
        }
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
            throw InputError(file, "two tokens in each line",
                             "\"" + printable(line) + "\" in line " + std::to_string(number),
                             "take the file from its source again");
        }
        merges.emplace_back(line.substr(0, space), line.substr(space + 1));
    }
    return merges;
}

// The text of a token in tokenizer_config.json: a string, or an object with "content".
std::optional<std::string> token_text(const JsonObject& config, std::string_view key) {
    const nlohmann::json* value = config.find(key);
    if (value == nullptr || value->is_string()) {
        return config.text(key);
    }
    return config.required_object(key).text("content");
}

} // namespace

TokenizerParts read_vocabulary_and_merges(const Path& folder) {
    TokenizerParts parts;
    parts.file = folder / "vocab.json";
    const Path merges_file = folder / "merges.txt";

    nlohmann::json config_json = nlohmann::json::object();
    const Path config_file = folder / "tokenizer_config.json";
    if (std::filesystem::exists(config_file)) {
        config_json = read_json_file(config_file);
    }
    const JsonObject config(config_json, config_file);
    std::string kind = config.text("tokenizer_class").value_or("GPT2Tokenizer");
    if (kind.ends_with("Fast")) {
        kind.resize(kind.size() - 4);
    }
    const bool qwen = kind == "Qwen2Tokenizer";
    constexpr std::array<std::string_view, 4> gpt2_kinds{"GPT2Tokenizer", "CodeGenTokenizer",
                                                         "GPTNeoXTokenizer", "PreTrainedTokenizer"};
    if (!qwen && std::find(gpt2_kinds.begin(), gpt2_kinds.end(), kind) == gpt2_kinds.end()) {
        throw InputError(
            config_file,
            "a tokenizer_class that works like GPT-2's or Qwen 2's beside vocab.json and merges.txt",
            "\"" + printable(kind) + "\"", "add the tokenizer.json of this checkpoint to the folder");
    }
    if (qwen) {
        parts.normalizer = Normalizer::nfc();
    }
    parts.pre_tokenizer =
        PreTokenizer::byte_level(config.boolean("add_prefix_space").value_or(false),
                                 qwen ? std::optional(qwen2_pattern) : std::nullopt, parts.file);
    parts.decoder = Decoder::byte_level();

    const nlohmann::json vocab_json = read_json_file(parts.file);
    const JsonObject vocab(vocab_json, parts.file);
    std::vector<std::pair<std::string_view, std::int64_t>> vocabulary;
    for (auto item = vocab_json.begin(); item != vocab_json.end(); ++item) {
        vocabulary.emplace_back(item.key(), vocab.required_integer(item.key()));
    }
    if (vocabulary.empty()) {
        throw InputError(parts.file, "tokens and their ids", "an empty object",
                         "take the file from its source again");
    }
    const std::string merges_text = read_file(merges_file);
    if (const std::size_t bad = first_invalid_utf8(merges_text); bad != std::string_view::npos) {
        throw InputError(merges_file, "UTF-8", "an invalid byte at offset " + std::to_string(bad),
                         "take the file from its source again");
    }
    Bpe::Settings settings;
    settings.byte_level = true;
    parts.model =
        Bpe::build(std::move(vocabulary), parse_merges(merges_text, merges_file), settings, merges_file);

    const auto add = [&](AddedToken token) {
        const auto same = std::find_if(parts.added.begin(), parts.added.end(),
                                       [&](const AddedToken& t) { return t.content == token.content; });
        if (same == parts.added.end()) {
            parts.added.push_back(std::move(token));
        } else {
            same->special = same->special || token.special;
        }
    };
    if (const auto list = config.object("added_tokens_decoder")) {
        for (const std::string& key : list->keys()) {
            const JsonObject object = list->required_object(key);
            if (key.empty() || key.size() > 8 || key.find_first_not_of("0123456789") != std::string::npos) {
                list->fail(key, "a token id as the key");
            }
            AddedToken token;
            token.id = std::stoi(key);
            token.content = object.required_text("content");
            token.special = object.boolean("special").value_or(false);
            token.normalized = object.boolean("normalized").value_or(!token.special);
            token.lstrip = object.boolean("lstrip").value_or(false);
            token.rstrip = object.boolean("rstrip").value_or(false);
            token.single_word = object.boolean("single_word").value_or(false);
            add(std::move(token));
        }
    }
    if (const Path file = folder / "added_tokens.json"; std::filesystem::exists(file)) {
        const nlohmann::json json = read_json_file(file);
        const JsonObject list(json, file);
        for (const std::string& key : list.keys()) {
            AddedToken token;
            token.content = key;
            token.id = static_cast<std::int32_t>(list.required_integer(key, 0, (std::int64_t{1} << 24) - 1));
            add(std::move(token));
        }
    }
    // The special tokens of the configuration; GPT-2's own where it names none.
    for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
        std::optional<std::string> text = token_text(config, key);
        if (!text && std::string_view(key) == "eos_token") {
            text = "<|endoftext|>";
        }
        if (text) {
            AddedToken token;
            token.content = *text;
            token.id = parts.model.texts().find(*text);
            token.special = true;
            token.normalized = false;
            if (token.id >= 0) {
                add(std::move(token));
            }
        }
    }
    for (const AddedToken& token : parts.added) {
        const std::int32_t id = parts.model.texts().find(token.content);
        if ((id >= 0 && id != token.id) || (id < 0 && parts.model.texts().has(token.id))) {
            throw InputError(folder, "added tokens that agree with vocab.json",
                             "\"" + printable(token.content) + "\" with id " + std::to_string(token.id),
                             "take the files from their source again");
        }
    }
    if (config.boolean("add_bos_token").value_or(false)) {
        const std::string bos = token_text(config, "bos_token").value_or("<|endoftext|>");
        const auto token = std::find_if(parts.added.begin(), parts.added.end(),
                                        [&](const AddedToken& t) { return t.content == bos; });
        if (token == parts.added.end()) {
            config.fail("bos_token", "a token of the vocabulary, because add_bos_token is true");
        }
        parts.prefix.push_back(token->id);
    }
    return parts;
}

} // namespace ponderscope
