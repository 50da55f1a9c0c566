// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// The usual names of a tokenizer's files.
inline constexpr std::array<const char*, 6> tokenizer_file_names{
    "tokenizer.json",          "vocab.json",       "merges.txt", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json"};

/// Tokens of a text. All three vectors have one entry for each token.
struct Encoding {
    std::vector<std::int32_t> ids;
    std::vector<std::uint64_t> begin; ///< first byte of the span in the given text (before normalisation)
    std::vector<std::uint64_t> end;   ///< one past the last byte; tokens not in the text have an empty span
    // Spans are in order, do not overlap, and cover the text except for parts that the tokenizer omits (such
    // as white space).
};

/// A Hugging Face tokenizer.json: byte-level BPE (GPT-2, GPT-NeoX, Llama 3, Qwen), SentencePiece-style BPE
/// with byte fallback (Llama 2), or Unigram. Immutable after loading; encode and decode may be called from
/// several threads.
class Tokenizer {
public:
    /// Throws InputError, which names unsupported parts.
    static Tokenizer load(const std::filesystem::path& tokenizer_json);
    /// Loads the tokenizer of a checkpoint folder: tokenizer.json, or else vocab.json with merges.txt.
    /// Includes the tokens that tokenizer_config.json and similar files add to the vocabulary or around a
    /// text (tokenizer_config.h). If \p folder is a file, reads only this file, as a tokenizer.json.
    static Tokenizer load_folder(const std::filesystem::path& folder);

    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;
    ~Tokenizer();

    /// \p text must be valid UTF-8 (otherwise InputError with the byte offset). \p add_special: add the
    /// tokens that the post-processor adds by default (for example a start token). \p parse_special: find
    /// special tokens in the text; false: they are plain text.
    [[nodiscard]] Encoding encode(std::string_view text, bool add_special = true,
                                  bool parse_special = true) const;
    /// The bytes of the tokens, as in Hugging Face's decode. \p skip_special: without special tokens. Ids
    /// without a token (in a padded vocabulary) decode to no bytes. Invalid UTF-8 bytes stay, where Hugging
    /// Face writes U+FFFD.
    [[nodiscard]] std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const;
    /// The bytes of one token, possibly a part of a character.
    [[nodiscard]] std::string token_bytes(std::int32_t id) const;
    /// The token's text in the vocabulary ("Ġthe", "▁the", "<0x0A>"); empty for ids without a token. The
    /// result is valid while this object lives.
    [[nodiscard]] std::string_view token_text(std::int32_t id) const;
    [[nodiscard]] std::optional<std::int32_t>
    id_of(std::string_view token) const;     ///< by its text in the vocabulary
    [[nodiscard]] std::int32_t size() const; ///< largest id plus one, including added tokens
    [[nodiscard]] bool is_special(std::int32_t id) const;
    /// The token that encode(…, true) adds before a text, if any.
    [[nodiscard]] std::optional<std::int32_t> start_token() const;
    [[nodiscard]] bool adds_start_token() const { return start_token().has_value(); }
    /// The start and end tokens in the files (bos_token, eos_token), also if encode does not add them.
    [[nodiscard]] std::optional<std::int32_t> bos_token() const;
    [[nodiscard]] std::optional<std::int32_t> eos_token() const;
    /// Notices for the user, for example that versions of transformers read a file differently.
    [[nodiscard]] const Notices& notices() const;

    /// Digest of vocabulary and splitting rules, independent of the form of the files (tokenizer_digest.h).
    [[nodiscard]] std::string content_digest() const;
    /// The files of the tokenizer. Copies of these files in another folder give the same tokenizer.
    [[nodiscard]] const std::vector<std::filesystem::path>& files() const;

    /// InputError: the id of a token in the vocabulary, or of a token added to every text, is beyond the \p
    /// vocabulary_size rows of a model's embedding. Other added tokens beyond these rows are an error only if
    /// \p encoding contains them.
    void require_vocabulary(std::int64_t vocabulary_size) const;
    void require_vocabulary(std::int64_t vocabulary_size, const Encoding& encoding) const;

private:
    struct Impl;
    explicit Tokenizer(std::unique_ptr<const Impl> impl);
    std::unique_ptr<const Impl> impl_;
};

} // namespace ponderscope
