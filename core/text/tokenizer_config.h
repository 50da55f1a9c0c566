// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/text/tokenizer_parts.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ponderscope {

/// The pre-tokenizer that the classes of Qwen 2 or GPT-2 build, as a tokenizer.json writes it.
nlohmann::json pre_tokenizer_of_class(bool qwen2, bool add_prefix_space);

/// One of "added_tokens" of a tokenizer.json, or of "added_tokens_decoder"; without its id. InputError.
AddedToken read_added_token(const JsonObject& object);

/// Fills parts.added: each text and each id once, in agreement with parts.model.
class AddedTokens {
public:
    explicit AddedTokens(TokenizerParts& parts); ///< which must outlive this
    [[nodiscard]] AddedToken* find(const std::string& content);
    /// With the id that it has. InputError of \p file: in conflict with another token.
    void add(AddedToken token, const std::filesystem::path& file);
    /// With the id that the library `tokenizers` gives it, whatever its own: the vocabulary's, or the next
    /// free one. Of a text that stands twice the later flags count.
    void append(AddedToken token);

private:
    TokenizerParts& parts_;
    std::unordered_map<std::string, std::size_t> by_content_;
    std::unordered_map<std::int32_t, std::size_t> by_id_;
    std::int32_t next_id_; ///< of append()
};

/// A folder's settings of its tokenizer beside the vocabulary: tokenizer_config.json, and if that has no
/// "added_tokens_decoder", special_tokens_map.json and added_tokens.json (of before 2023) too.
class TokenizerConfig {
public:
    /// \p usual: the default start, end and unknown tokens. InputError.
    explicit TokenizerConfig(const std::filesystem::path& folder, const std::string& usual = {});
    [[nodiscard]] JsonObject config() const { return {config_, config_file_}; }

    /// Adds the tokens of the configuration to the tokens of the vocabulary, as transformers 5 does. Added
    /// tokens of the files come with their flags; a token that the vocabulary has keeps the vocabulary's id.
    /// Tokens with a name (bos_token, ...) and tokens of the lists are special. Two things differ: an id
    /// after a gap is kept (transformers closes gaps), and a name without a token adds none (transformers
    /// gives it an id beyond the model's rows). InputError.
    void add_to(TokenizerParts& parts) const;
    /// The tokens around a text by add_bos_token and add_eos_token: these count if no tokenizer.json has a
    /// post-processor. Behind add_to. InputError.
    void put_around(TokenizerParts& parts) const;
    /// The start and end token that the files name, or else the folder's tokenizer class. Behind add_to.
    void name_start_and_end(TokenizerParts& parts) const;
    /// Changes a tokenizer.json, \p document, as the folder's tokenizer class does in transformers 5, and
    /// reports differences from transformers 4 or 5: GPTNeoXTokenizer drops start and end tokens of a
    /// template; add_bos_token and add_eos_token do not count beside a tokenizer.json; classes that are built
    /// from vocabulary and merges lose its normalizer and pre-tokenizer, which are kept here.
    void follow_class(TokenizerParts& parts, const nlohmann::json& document) const;

private:
    [[nodiscard]] std::string class_name() const;
    [[nodiscard]] bool names_class() const; ///< tokenizer_config.json does
    void add_listed(TokenizerParts& parts, AddedTokens& added) const;

    std::filesystem::path config_file_, added_file_, model_config_file_;
    nlohmann::json config_ = nlohmann::json::object();
    nlohmann::json added_ = nlohmann::json::object();
    std::vector<std::filesystem::path> files_;
};

} // namespace ponderscope
