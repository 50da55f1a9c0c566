// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// Tokens of a text. All three vectors have one entry a token.
struct Encoding {
    std::vector<std::int32_t> ids;
    std::vector<std::uint64_t> begin; ///< first byte of the token's span in the text that was given (before normalisation)
    std::vector<std::uint64_t> end;   ///< one past its last byte. Tokens that a template adds have an empty span.
};

/// A Hugging Face tokenizer.json: byte-level BPE (GPT-2, GPT-NeoX, Llama 3, Qwen) or SentencePiece-style BPE with byte fallback
/// (Llama 2). Immutable after loading; encode and decode may be called from several threads.
class Tokenizer {
public:
    /// Throws InputError; what is not supported is refused by name.
    static Tokenizer load(const std::filesystem::path& tokenizer_json);

    Tokenizer(Tokenizer&&) noexcept;
    Tokenizer& operator=(Tokenizer&&) noexcept;
    ~Tokenizer();

    /// \p text must be valid UTF-8 (InputError otherwise, with the byte offset). \p add_special: the tokens that the post-processor
    /// adds by default (a start token, say).
    [[nodiscard]] Encoding encode(std::string_view text, bool add_special = true) const;
    /// The bytes of the tokens, as the original's decode with special tokens kept.
    [[nodiscard]] std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const;
    /// What one token stands for, as bytes: a part of a character when the token splits one. For candidates and lists.
    [[nodiscard]] std::string token_bytes(std::int32_t id) const;
    [[nodiscard]] std::optional<std::int32_t> id_of(std::string_view token) const; ///< by its text in the vocabulary
    [[nodiscard]] std::int32_t size() const;       ///< one more than the largest id, added tokens included
    [[nodiscard]] bool is_special(std::int32_t id) const;
    [[nodiscard]] bool adds_start_token() const;   ///< encode(…, true) puts a special token first

private:
    struct Impl;
    explicit Tokenizer(std::unique_ptr<const Impl> impl);
    std::unique_ptr<const Impl> impl_;
};

} // namespace ponderscope
