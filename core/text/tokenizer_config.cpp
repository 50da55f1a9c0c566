// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/tokenizer_config.h"

#include "core/base/error.h"
#include "core/base/utf8.h"

#include <utility>

namespace ponderscope {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t last_id = (std::int64_t{1} << 24) - 1;

// A special token of the configuration: a string, or an object with its flags; empty where there is none.
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

// All that have a name, and those of the lists, which newer files write as objects by use.
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

} // namespace

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

AddedTokens::AddedTokens(TokenizerParts& parts) : parts_(parts) {
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
    const TokenTexts& texts = parts_.model.texts();
    const std::string remedy = "take the tokenizer's files from their source again";
    const std::string described = "\"" + printable(token.content) + "\" with id " + std::to_string(token.id);
    const std::int32_t in_vocabulary = texts.find(token.content);
    if (in_vocabulary >= 0 && in_vocabulary != token.id) {
        throw InputError(file, "added tokens that agree with the vocabulary",
                         described + ", which has id " + std::to_string(in_vocabulary) + " there", remedy);
    }
    if (in_vocabulary < 0 && texts.has(token.id)) {
        throw InputError(file, "added tokens that agree with the vocabulary",
                         described + ", which is \"" + printable(texts.text(token.id)) + "\" there", remedy);
    }
    const bool new_content = by_content_.emplace(token.content, parts_.added.size()).second;
    const bool new_id = by_id_.emplace(token.id, parts_.added.size()).second;
    if (!new_content || !new_id) {
        const AddedToken& same = parts_.added[new_content ? by_id_[token.id] : by_content_[token.content]];
        throw InputError(file, "each added token once",
                         described + " beside \"" + printable(same.content) + "\" with id " +
                             std::to_string(same.id),
                         remedy);
    }
    parts_.added.push_back(std::move(token));
}

TokenizerConfig::TokenizerConfig(const fs::path& folder, const std::string& usual)
    : config_file_(folder / "tokenizer_config.json"), added_file_(folder / "added_tokens.json") {
    const auto read = [&](const fs::path& file) {
        if (!fs::exists(file)) {
            return nlohmann::json(nlohmann::json::object());
        }
        files_.push_back(file);
        return read_json_file(file);
    };
    config_ = read(config_file_);
    if (!config().has("added_tokens_decoder")) { // which lists them all
        const fs::path file = folder / "special_tokens_map.json";
        const nlohmann::json map = read(file);
        (void)special_tokens(JsonObject(map, file)); // what is wrong there is said of that file
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
    const std::vector<AddedToken> before = parts.added;
    AddedTokens added(parts);
    add_listed(parts, added);
    const std::size_t listed = parts.added.size();
    for (AddedToken& token : special_tokens(config())) {
        token.id = parts.model.texts().find(token.content);
        if (AddedToken* known = added.find(token.content)) {
            if (known >= parts.added.data() + listed) { // it has two names: the flags of the later one
                *known = token;
            }
            known->special = true;
        } else if (token.id >= 0 && !token.content.empty()) {
            added.add(std::move(token), config_file_);
        }
    }
    parts.files.insert(parts.files.end(), files_.begin(), files_.end());
    if (parts.added == before) {
        return;
    }
    nlohmann::json all;
    for (const AddedToken& token : parts.added) {
        all.push_back({token.id, token.content, token.special, token.normalized, token.lstrip, token.rstrip,
                       token.single_word});
    }
    parts.beside += all.dump();
}

void TokenizerConfig::add_listed(TokenizerParts& parts, AddedTokens& added) const {
    const auto declare = [&](AddedToken token, const fs::path& file) {
        if (const std::int32_t id = parts.model.texts().find(token.content); id >= 0) {
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
        if (added.find(content) == nullptr) { // a tokenizer.json knows more of it
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
    parts.beside += nlohmann::json::array({parts.prefix, parts.suffix}).dump();
}

} // namespace ponderscope
