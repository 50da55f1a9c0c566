// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer_config.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace ponderscope {

namespace {

using Path = std::filesystem::path;

nlohmann::json read_merges(const Path& file) {
    const std::string content = read_file(file);
    if (const std::size_t bad = first_invalid_utf8(content); bad != std::string_view::npos) {
        throw InputError(ErrorId::text_bytes, file, "UTF-8",
                         "an invalid byte at offset " + std::to_string(bad),
                         "take the file from its source again");
    }
    nlohmann::json merges = nlohmann::json::array();
    std::istringstream lines(content);
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with('\r')) {
            line.pop_back();
        }
        if (!line.empty() && !line.starts_with("#version")) {
            merges.push_back(line);
        }
    }
    return merges;
}

} // namespace

TokenizerParts read_vocabulary_and_merges(const Path& folder) {
    const Path vocabulary = folder / "vocab.json";
    const Path merges = folder / "merges.txt";
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
            ErrorId::tokenizer_file, config.source(),
            "a tokenizer_class that works like GPT-2's or Qwen 2's beside vocab.json and merges.txt",
            "\"" + printable(kind) + "\"", "add the tokenizer.json of this checkpoint to the folder");
    }
    const bool add_prefix_space = config.boolean("add_prefix_space").value_or(false);
    // The tokenizer.json that such a folder would have.
    nlohmann::json document{{"pre_tokenizer", pre_tokenizer_of_class(qwen, add_prefix_space)},
                            {"decoder", {{"type", "ByteLevel"}}},
                            {"model", {{"type", "BPE"}}}};
    if (qwen) {
        document["normalizer"] = {{"type", "NFC"}};
    }
    document["model"]["vocab"] = read_json_file(vocabulary, {.python = true});
    document["model"]["merges"] = read_merges(merges);
    TokenizerParts parts = parts_of(document, vocabulary, merges);
    parts.files = {vocabulary, merges};
    beside.add_to(parts);
    beside.put_around(parts);
    beside.name_start_and_end(parts);
    return parts;
}

} // namespace ponderscope
