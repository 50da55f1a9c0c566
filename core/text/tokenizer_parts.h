// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
#include "core/text/added_tokens.h"
#include "core/text/bpe.h"
#include "core/text/decoder.h"
#include "core/text/normalizer.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/tokenizer_digest.h"
#include "core/text/unigram.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// The parts of a tokenizer, read from its files.
struct TokenizerParts {
    std::vector<std::filesystem::path> files; ///< all files, the vocabulary first
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    Bpe model;
    CuttingRules rules;             ///< for content_digest()
    std::optional<Unigram> unigram; ///< replaces `model`
    TokenDecoder decoder;
    std::vector<AddedToken> added;
    std::vector<std::int32_t> prefix; ///< tokens that the post-processor adds before a text
    std::vector<std::int32_t> suffix; ///< tokens that the post-processor adds after a text
    std::optional<std::int32_t> bos;  ///< the start token that the files name, even if no text gets it
    std::optional<std::int32_t> eos;  ///< the end token that the files name
    Notices notices;                  ///< for the user, for example differences from other libraries

    [[nodiscard]] const TokenTexts& texts() const { return unigram ? unigram->texts() : model.texts(); }
    /// Writes the tokens of a word to workspace.tokens.
    void encode_word(std::string_view word, Bpe::Workspace& workspace) const {
        if (unigram) {
            unigram->encode(word, workspace.tokens);
        } else {
            model.encode(word, workspace);
        }
    }
    [[nodiscard]] const std::filesystem::path& file() const { return files.front(); } ///< for messages
};

/// The parts of a tokenizer.json. InputError names \p file, or \p merges_file if the merges come from another
/// file.
TokenizerParts parts_of(const nlohmann::json& document, const std::filesystem::path& file,
                        const std::filesystem::path& merges_file);
/// Reads vocab.json, merges.txt and the files beside them (tokenizer_config.h). InputError.
TokenizerParts read_vocabulary_and_merges(const std::filesystem::path& folder);

} // namespace ponderscope
