// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer_config.h"

#include <algorithm>
#include <array>

namespace ponderscope {

namespace {

using Path = std::filesystem::path;

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

/// What the tokenizer.json of such a folder says, but for the vocabulary.
nlohmann::json tokenizer_json_of(bool qwen, bool add_prefix_space,
                                 const std::vector<std::pair<std::string_view, std::string_view>>& merges) {
    nlohmann::json bytes{{"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"use_regex", !qwen}};
    nlohmann::json json{
        {"model", {{"merges", nlohmann::json::array()}}}, {"normalizer", nullptr}, {"pre_tokenizer", bytes}};
    for (const auto& [left, right] : merges) {
        json["model"]["merges"].push_back({left, right});
    }
    if (qwen) {
        json["normalizer"] = {{"type", "NFC"}};
        const nlohmann::json split{
            {"type", "Split"}, {"pattern", {{"Regex", qwen2_pattern}}}, {"behavior", "Isolated"}};
        json["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
    }
    return json;
}

} // namespace

TokenizerParts read_vocabulary_and_merges(const Path& folder) {
    TokenizerParts parts;
    const Path merges_file = folder / "merges.txt";
    parts.files = {folder / "vocab.json", merges_file};
    parts.vocabulary_files = parts.files.size();

    const TokenizerConfig beside(folder, "<|endoftext|>");
    const JsonObject config = beside.config();
    std::string kind = config.text("tokenizer_class").value_or("GPT2Tokenizer");
    if (kind.ends_with("Fast")) {
        kind.resize(kind.size() - 4);
    }
    const bool qwen = kind == "Qwen2Tokenizer";
    constexpr std::array<std::string_view, 4> gpt2_kinds{"GPT2Tokenizer", "CodeGenTokenizer",
                                                         "GPTNeoXTokenizer", "PreTrainedTokenizer"};
    if (!qwen && std::find(gpt2_kinds.begin(), gpt2_kinds.end(), kind) == gpt2_kinds.end()) {
        throw InputError(
            config.source(),
            "a tokenizer_class that works like GPT-2's or Qwen 2's beside vocab.json and merges.txt",
            "\"" + printable(kind) + "\"", "add the tokenizer.json of this checkpoint to the folder");
    }
    if (qwen) {
        parts.normalizer = Normalizer::nfc();
    }
    const bool add_prefix_space = config.boolean("add_prefix_space").value_or(false);
    parts.pre_tokenizer = PreTokenizer::byte_level(
        add_prefix_space, qwen ? std::optional(qwen2_pattern) : std::nullopt, parts.file());
    parts.decoder = Decoder::byte_level();

    const nlohmann::json vocab_json = read_json_file(parts.file(), {.python = true});
    const JsonObject vocab(vocab_json, parts.file());
    std::vector<std::pair<std::string_view, std::int64_t>> vocabulary;
    for (auto item = vocab_json.begin(); item != vocab_json.end(); ++item) {
        vocabulary.emplace_back(item.key(), vocab.required_integer(item.key()));
    }
    if (vocabulary.empty()) {
        throw InputError(parts.file(), "tokens and their ids", "an empty object",
                         "take the file from its source again");
    }
    const std::string merges_text = read_file(merges_file);
    if (const std::size_t bad = first_invalid_utf8(merges_text); bad != std::string_view::npos) {
        throw InputError(merges_file, "UTF-8", "an invalid byte at offset " + std::to_string(bad),
                         "take the file from its source again");
    }
    Bpe::Settings settings;
    settings.byte_level = true;
    const auto merges = parse_merges(merges_text, merges_file);
    parts.model = Bpe::build(std::move(vocabulary), merges, settings, merges_file);
    parts.rules = CuttingRules::of(tokenizer_json_of(qwen, add_prefix_space, merges));

    parts.beside = kind + (add_prefix_space ? " with a space in front" : "");
    beside.add_to(parts);
    beside.put_around(parts);
    beside.name_start_and_end(parts);
    return parts;
}

} // namespace ponderscope
