// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/text/tokenizer_parts.h"

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

namespace ponderscope {

/// The pre-tokenizer of Qwen2Tokenizer (\p qwen2) or GPT2Tokenizer, in the form of a tokenizer.json.
nlohmann::json pre_tokenizer_of_class(bool qwen2, bool add_prefix_space);

/// Reads an entry of "added_tokens" or "added_tokens_decoder", except for its id. InputError.
AddedToken read_added_token(const JsonObject& object);

/// Fills parts.added. Each text and each id appears once and matches the vocabulary.
class AddedTokens {
public:
    explicit AddedTokens(TokenizerParts& parts); ///< \p parts must outlive the object
    [[nodiscard]] AddedToken* find(const std::string& content);
    /// Adds a token with its id. InputError names \p file: the token conflicts with another token.
    void add(AddedToken token, const std::filesystem::path& file);
    /// Adds a token with the id that the library `tokenizers` assigns: the vocabulary's id, or the next free
    /// id. Ignores the token's own id. If its text was added before, keeps that id and replaces the flags.
    void append(AddedToken token);

private:
    TokenizerParts& parts_;
    std::unordered_map<std::string, std::size_t> by_content_;
    std::unordered_map<std::int32_t, std::size_t> by_id_;
    std::int32_t next_id_; ///< next free id, for append()
};

/// The tokenizer settings in a folder's tokenizer_config.json. If this file has no "added_tokens_decoder",
/// reads special_tokens_map.json and added_tokens.json too (files from before 2023).
class TokenizerConfig {
public:
    /// \p usual: the default of the start, end and unknown token. InputError.
    explicit TokenizerConfig(const std::filesystem::path& folder, const std::string& usual = {});
    [[nodiscard]] JsonObject config() const { return {config_, config_file_}; }

    /// Adds the configured tokens to the vocabulary's tokens, as transformers 5 does. Added tokens keep the
    /// flags of the files. A token of the vocabulary keeps the vocabulary's id. Named tokens (bos_token, ...)
    /// and tokens of additional_special_tokens or extra_special_tokens are special. Differs from transformers
    /// in two points. Ids after a gap stay (transformers closes gaps). Named tokens without an id are not
    /// added (transformers gives them ids beyond the model's rows). InputError.
    void add_to(TokenizerParts& parts) const;
    /// Adds the start token before a text (add_bos_token) and the end token after it (add_eos_token). Call it
    /// after add_to, if no tokenizer.json has a post-processor. InputError.
    void put_around(TokenizerParts& parts) const;
    /// Sets the start and end token to the tokens in the files, or else to the defaults of the folder's
    /// tokenizer class. Call it after add_to.
    void name_start_and_end(TokenizerParts& parts) const;
    /// Changes \p parts as the folder's tokenizer class in transformers 5 does. \p document: their
    /// tokenizer.json. Adds notices about differences from transformers 4 or 5. GPTNeoXTokenizer drops the
    /// start and end tokens of the post-processor. add_bos_token and add_eos_token have no effect if a
    /// tokenizer.json exists. For some classes transformers 5 builds its own normalizer and pre-tokenizer;
    /// this function keeps the parts of tokenizer.json.
    void follow_class(TokenizerParts& parts, const nlohmann::json& document) const;

private:
    [[nodiscard]] std::string class_name() const;
    [[nodiscard]] bool names_class() const; ///< whether tokenizer_config.json names the class
    void add_listed(TokenizerParts& parts, AddedTokens& added) const;

    std::filesystem::path config_file_, added_file_, model_config_file_;
    nlohmann::json config_ = nlohmann::json::object();
    nlohmann::json added_ = nlohmann::json::object();
    std::vector<std::filesystem::path> files_;
};

} // namespace ponderscope
