// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/tokenizer_config.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/base/words.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ponderscope {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t last_id = (std::int64_t{1} << 24) - 1;

// A special token of the configuration, stored as a string or as an object with flags. Empty: no such token.
AddedToken special_token(const JsonObject& config, std::string_view key) {
    AddedToken token;
    token.normalized = false;
    if (const nlohmann::json* value = config.find(key); value != nullptr && value->is_object()) {
        const JsonObject object = config.required_object(key);
        token = read_added_token(object);
        token.normalized = object.boolean("normalized").value_or(false);
    } else {
        token.content = config.text(key).value_or("");
    }
    token.special = true;
    return token;
}

// All named special tokens, and the tokens of the lists. Newer files write a list as an object: use -> token.
std::vector<AddedToken> special_tokens(const JsonObject& config) {
    std::vector<AddedToken> tokens;
    for (const char* name :
         {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
        tokens.push_back(special_token(config, name));
    }
    for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
        const nlohmann::json* list = config.find(key);
        if (list != nullptr && list->is_object()) {
            const JsonObject uses = config.required_object(key);
            for (const std::string& use : uses.keys()) {
                tokens.push_back(special_token(uses, use));
            }
        } else if (list != nullptr) {
            for (const nlohmann::json& item : config.required_array(key)) {
                const nlohmann::json one{{key, item}};
                tokens.push_back(special_token(JsonObject(one, config.source()), key));
            }
        }
    }
    return tokens;
}

/// The types of the steps of a canonical_component().
std::string step_names(const nlohmann::json& component) {
    if (component.is_null()) {
        return "none";
    }
    return joined(component.value("sequence", nlohmann::json::array({component})),
                  [](const nlohmann::json& step) { return step.value("type", std::string("?")); });
}

/// The class that transformers 5 registers for a model_type. It applies if the folder names no class, or if
/// `wins`. The general class reads tokenizer.json unchanged.
struct RegisteredClass {
    std::string_view model_type, name;
    bool wins = false; ///< applies even if the folder names another class
};
constexpr std::string_view general_class = "TokenizersBackend";
constexpr RegisteredClass registered_classes[] = {
    {"gpt2", "GPT2Tokenizer"},           {"gpt_neox", "GPTNeoXTokenizer"}, {"olmo", "GPTNeoXTokenizer"},
    {"olmoe", "GPTNeoXTokenizer"},       {"opt", "GPT2Tokenizer"},         {"phi", "GPT2Tokenizer"},
    {"qwen2", "Qwen2Tokenizer", true},   {"qwen2_moe", "Qwen2Tokenizer"},  {"qwen3", "Qwen2Tokenizer"},
    {"qwen3_moe", "Qwen2Tokenizer"},     {"mistral", general_class, true}, {"ministral", general_class, true},
    {"ministral3", general_class, true}, {"mixtral", general_class, true}, {"olmo2", general_class, true},
    {"olmo3", general_class, true},      {"phi3", general_class, true},    {"granite", general_class, true}};

} // namespace

nlohmann::json pre_tokenizer_of_class(bool qwen2, bool add_prefix_space) {
    // Qwen 2 splits words from the signs before them and digits one by one.
    constexpr std::string_view qwen2_pattern =
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    const nlohmann::json bytes{
        {"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"use_regex", !qwen2}};
    const nlohmann::json split{{"type", "Split"},
                               {"pattern", {{"Regex", qwen2_pattern}}},
                               {"behavior", "Isolated"},
                               {"invert", false}};
    return qwen2 ? nlohmann::json{{"type", "Sequence"}, {"pretokenizers", {split, bytes}}} : bytes;
}

AddedToken read_added_token(const JsonObject& object) {
    AddedToken token;
    token.content = object.required_text("content");
    token.special = object.boolean("special").value_or(false);
    token.normalized = object.boolean("normalized").value_or(!token.special);
    token.lstrip = object.boolean("lstrip").value_or(false);
    token.rstrip = object.boolean("rstrip").value_or(false);
    token.single_word = object.boolean("single_word").value_or(false);
    return token;
}

AddedTokens::AddedTokens(TokenizerParts& parts) : parts_(parts), next_id_(parts.texts().count()) {
    for (std::size_t i = 0; i < parts.added.size(); ++i) {
        by_content_.emplace(parts.added[i].content, i);
        by_id_.emplace(parts.added[i].id, i);
    }
}

AddedToken* AddedTokens::find(const std::string& content) {
    const auto found = by_content_.find(content);
    return found == by_content_.end() ? nullptr : &parts_.added[found->second];
}

void AddedTokens::add(AddedToken token, const fs::path& file) {
    const TokenTexts& texts = parts_.texts();
    const std::string remedy = "take the tokenizer's files from their source again";
    const std::string described = "\"" + printable(token.content) + "\" with id " + std::to_string(token.id);
    const std::int32_t in_vocabulary = texts.find(token.content);
    if (in_vocabulary >= 0 && in_vocabulary != token.id) {
        throw InputError(ErrorId::tokenizer_file, file, "added tokens that agree with the vocabulary",
                         described + ", which has id " + std::to_string(in_vocabulary) + " in it", remedy);
    }
    if (in_vocabulary < 0 && texts.has(token.id)) {
        throw InputError(ErrorId::tokenizer_file, file, "added tokens that agree with the vocabulary",
                         described + ", which is \"" + printable(texts.text(token.id)) + "\" in it", remedy);
    }
    const bool new_content = by_content_.emplace(token.content, parts_.added.size()).second;
    const bool new_id = by_id_.emplace(token.id, parts_.added.size()).second;
    if (!new_content || !new_id) {
        const AddedToken& same = parts_.added[new_content ? by_id_[token.id] : by_content_[token.content]];
        throw InputError(ErrorId::tokenizer_file, file, "each added token once",
                         described + " beside \"" + printable(same.content) + "\" with id " +
                             std::to_string(same.id),
                         remedy);
    }
    parts_.added.push_back(std::move(token));
}

void AddedTokens::append(AddedToken token) {
    if (token.content.empty()) {
        return;
    }
    const std::int32_t written = token.id;
    const std::int32_t in_vocabulary = parts_.texts().find(token.content);
    if (AddedToken* known = find(token.content)) {
        token.id = known->id;
        *known = token;
    } else {
        token.id = in_vocabulary >= 0 ? in_vocabulary : next_id_;
        next_id_ = std::max(next_id_, token.id + 1);
        by_content_.emplace(token.content, parts_.added.size());
        by_id_.emplace(token.id, parts_.added.size());
        parts_.added.push_back(token);
    }
    if (token.id != written) {
        parts_.notices.push_back(
            {NoticeId::tokenizer_ids,
             "The added token \"" + printable(token.content) + "\" has id " + std::to_string(token.id) +
                 ", as the library tokenizers counts; the file says " + std::to_string(written) + "."});
    }
}

TokenizerConfig::TokenizerConfig(const fs::path& folder, const std::string& usual)
    : config_file_(folder / "tokenizer_config.json"),
      added_file_(folder / "added_tokens.json"),
      model_config_file_(folder / "config.json") {
    const auto read = [&](const fs::path& file) {
        if (!fs::exists(file)) {
            return nlohmann::json(nlohmann::json::object());
        }
        files_.push_back(file);
        return read_json_file(file, {.python = true});
    };
    config_ = read(config_file_);
    if (!config().has("added_tokens_decoder")) { // such a list is complete
        const fs::path file = folder / "special_tokens_map.json";
        const nlohmann::json map = read(file);
        (void)special_tokens(JsonObject(map, file)); // so that errors name this file
        config_.update(map);
        added_ = read(added_file_);
    }
    for (const char* name : {"bos_token", "eos_token", "unk_token"}) {
        if (!usual.empty() && !config().has(name)) {
            config_[name] = usual;
        }
    }
}

void TokenizerConfig::add_to(TokenizerParts& parts) const {
    AddedTokens added(parts);
    add_listed(parts, added);
    const std::size_t listed = parts.added.size();
    for (AddedToken& token : special_tokens(config())) {
        token.id = parts.texts().find(token.content);
        if (AddedToken* known = added.find(token.content)) {
            if (known >= parts.added.data() + listed) { // two names: the later flags win
                *known = token;
            }
            known->special = true;
        } else if (token.id >= 0 && !token.content.empty()) {
            added.add(std::move(token), config_file_);
        }
    }
    parts.files.insert(parts.files.end(), files_.begin(), files_.end());
}

void TokenizerConfig::add_listed(TokenizerParts& parts, AddedTokens& added) const {
    const auto declare = [&](AddedToken token, const fs::path& file) {
        if (const std::int32_t id = parts.texts().find(token.content); id >= 0) {
            token.id = id;
        }
        if (AddedToken* known = added.find(token.content)) {
            token.id = known->id;
            *known = std::move(token);
        } else if (!token.content.empty()) {
            added.add(std::move(token), file);
        }
    };
    if (const auto list = config().object("added_tokens_decoder")) {
        for (const std::string& key : list->keys()) {
            if (key.empty() || key.size() > 7 || key.find_first_not_of("0123456789") != std::string::npos) {
                list->fail(key, "a token id as the key");
            }
            AddedToken token = read_added_token(list->required_object(key));
            token.id = std::stoi(key);
            declare(std::move(token), config_file_);
        }
    }
    const JsonObject list(added_, added_file_);
    for (const std::string& content : list.keys()) {
        const auto id = static_cast<std::int32_t>(list.required_integer(content, 0, last_id));
        if (added.find(content) == nullptr) { // else keep the flags of tokenizer.json
            declare({.content = content, .id = id}, added_file_);
        }
    }
}

void TokenizerConfig::put_around(TokenizerParts& parts) const {
    const auto wanted = [&](const char* wish, const char* name) -> std::vector<std::int32_t> {
        const std::string content = special_token(config(), name).content;
        if (!config().boolean(wish).value_or(false) || content.empty()) {
            return {};
        }
        const AddedToken* token = AddedTokens(parts).find(content);
        if (token == nullptr) {
            config().fail(name, "a token of the vocabulary, because " + std::string(wish) + " is true");
        }
        return {token->id};
    };
    parts.prefix = wanted("add_bos_token", "bos_token");
    parts.suffix = wanted("add_eos_token", "eos_token");
}

bool TokenizerConfig::names_class() const {
    return config().has("tokenizer_class");
}

std::string TokenizerConfig::class_name() const {
    std::string named = config().text("tokenizer_class").value_or("");
    if (fs::exists(model_config_file_)) {
        const nlohmann::json document = read_json_file(model_config_file_, {.python = true});
        const JsonObject model(document, model_config_file_);
        const std::string type = model.text("model_type").value_or("");
        if (named.empty()) {
            named = model.text("tokenizer_class").value_or("");
        }
        const auto* const registered =
            std::find_if(std::begin(registered_classes), std::end(registered_classes),
                         [&](const RegisteredClass& one) { return one.model_type == type; });
        if (registered != std::end(registered_classes) && (named.empty() || registered->wins)) {
            return std::string(registered->name);
        }
    }
    if (named.ends_with("Fast")) {
        named.resize(named.size() - 4);
    }
    return named;
}

void TokenizerConfig::name_start_and_end(TokenizerParts& parts) const {
    const std::string kind = class_name();
    const bool gpt = kind == "GPT2Tokenizer" || kind == "GPTNeoXTokenizer";
    const bool llama = kind == "LlamaTokenizer" || kind == "CodeLlamaTokenizer";
    const auto find = [&](const char* name, const char* usual) -> std::optional<std::int32_t> {
        const std::string content =
            config().value().contains(name) ? special_token(config(), name).content : std::string(usual);
        const AddedToken* const known = AddedTokens(parts).find(content);
        const std::int32_t id = known != nullptr ? known->id : parts.texts().find(content);
        return content.empty() || id < 0 ? std::nullopt : std::optional(id);
    };
    parts.bos = find("bos_token", gpt ? "<|endoftext|>" : llama ? "<s>" : "");
    parts.eos = find("eos_token", gpt || kind == "Qwen2Tokenizer" ? "<|endoftext|>" : llama ? "</s>" : "");
}

void TokenizerConfig::follow_class(TokenizerParts& parts, const nlohmann::json& document) const {
    const std::string kind = class_name();
    const auto is_one_of = [&](std::initializer_list<std::string_view> kinds) {
        return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    };
    if (kind == "GPTNeoXTokenizer" && !(parts.prefix.empty() && parts.suffix.empty())) {
        parts.prefix.clear();
        parts.suffix.clear();
        parts.notices.push_back({NoticeId::tokenizer_added_tokens,
                                 "The post_processor of tokenizer.json adds start or end tokens, which the "
                                 "class GPTNeoXTokenizer of transformers drops: Ponderscope adds none."});
    }
    const auto compare_wish = [&](const char* wish, const char* name, const char* what,
                                  const std::vector<std::int32_t>& ids) {
        const std::optional<bool> wanted = config().boolean(wish);
        const AddedToken token = special_token(config(), name);
        if (!wanted || token.content.empty()) {
            return;
        }
        const AddedToken* const known = AddedTokens(parts).find(token.content);
        const bool adds = known != nullptr && std::find(ids.begin(), ids.end(), known->id) != ids.end();
        if (adds == *wanted) {
            return;
        }
        const bool heeded_before = is_one_of({"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer",
                                              "CohereTokenizer", "GPTNeoXTokenizer"});
        parts.notices.push_back(
            {NoticeId::tokenizer_added_tokens,
             std::string("tokenizer_config.json says ") + wish + " = " + (*wanted ? "true" : "false") +
                 ", and tokenizer.json adds " + (adds ? "the " : "no ") + what + " " +
                 printable(token.content) + ": " +
                 (heeded_before
                      ? "transformers 4 follows the former, transformers 5 and Ponderscope the latter."
                      : "transformers and Ponderscope follow the latter.")});
    };
    compare_wish("add_bos_token", "bos_token", "start token", parts.prefix);
    compare_wish("add_eos_token", "eos_token", "end token", parts.suffix);

    if (!is_one_of({"GPT2Tokenizer", "GPTNeoXTokenizer", "Qwen2Tokenizer"})) {
        return;
    }
    nlohmann::json built{
        {"pre_tokenizer", pre_tokenizer_of_class(kind == "Qwen2Tokenizer",
                                                 config().boolean("add_prefix_space").value_or(false))}};
    if (kind != "GPT2Tokenizer") {
        built["normalizer"] = {{"type", "NFC"}};
    }
    for (const char* const key : {"normalizer", "pre_tokenizer"}) {
        const nlohmann::json here = canonical_component(document.value(key, nlohmann::json()));
        const nlohmann::json there = canonical_component(built.value(key, nlohmann::json()));
        // Do not report another normalizer if only the model_type determines the class.
        const bool is_told = key == std::string_view("pre_tokenizer") || names_class();
        if (here != there && is_told) {
            parts.notices.push_back(
                {NoticeId::tokenizer_steps,
                 "The class " + kind + " of transformers 5 builds its own " + key + " (" + step_names(there) +
                     ") instead of using tokenizer.json's (" + step_names(here) +
                     "), and may cut texts differently. This program follows tokenizer.json, as "
                     "transformers 4 does."});
        }
    }
}

} // namespace ponderscope
