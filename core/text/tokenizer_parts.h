// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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
    std::vector<std::filesystem::path> files; ///< all that were read, the vocabulary first
    std::size_t vocabulary_files = 1;         ///< how many of them are the vocabulary: the first ones
    std::string beside;                       ///< the settings of the other parts as text; empty: none
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    Bpe model;
    CuttingRules rules;             ///< for the digest
    std::optional<Unigram> unigram; ///< in the place of `model`
    TokenDecoder decoder;
    std::vector<AddedToken> added;
    std::vector<std::int32_t> prefix; ///< tokens that the post-processor puts before a text
    std::vector<std::int32_t> suffix; ///< and behind it
    std::optional<std::int32_t> bos;  ///< the start token by name, whether or not it is put before texts
    std::optional<std::int32_t> eos;  ///< the end token by name
    std::vector<std::string> notices; ///< sentences for the user: where libraries read the files differently

    [[nodiscard]] const TokenTexts& texts() const { return unigram ? unigram->texts() : model.texts(); }
    /// Tokens of a word into workspace.tokens.
    void encode_word(std::string_view word, Bpe::Workspace& workspace) const {
        if (unigram) {
            unigram->encode(word, workspace.tokens);
        } else {
            model.encode(word, workspace);
        }
    }
    [[nodiscard]] const std::filesystem::path& file() const { return files.front(); } ///< for messages
};

/// The parts of a tokenizer.json. InputError names \p file, or \p merges_file where the merges came from
/// elsewhere.
TokenizerParts parts_of(const nlohmann::json& document, const std::filesystem::path& file,
                        const std::filesystem::path& merges_file);
/// vocab.json and merges.txt, with the files beside them (tokenizer_config.h). InputError.
TokenizerParts read_vocabulary_and_merges(const std::filesystem::path& folder);

} // namespace ponderscope
