// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/bpe.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace ponderscope {

/// A unigram language model over tokens (Kudo 2018), the "model" of type Unigram in a tokenizer.json: splits
/// a word into the tokens with the largest sum of scores. Immutable; threads may share it.
class Unigram {
public:
    /// \p vocabulary: tokens and their scores, by id. InputError names \p file.
    static Unigram build(const std::vector<std::pair<std::string_view, double>>& vocabulary,
                         std::optional<std::int64_t> unk_id, bool byte_fallback,
                         const std::filesystem::path& file);

    [[nodiscard]] const TokenTexts& texts() const { return texts_; }

    /// Writes the tokens of \p word (valid UTF-8). Adjacent unknown characters become the tokens of their
    /// bytes (byte_fallback), or one unknown token. InputError: the vocabulary has no such tokens.
    void encode(std::string_view word, std::vector<Bpe::Token>& tokens) const;

private:
    void put_unknown(std::string_view word, std::uint32_t begin, std::uint32_t end,
                     std::vector<Bpe::Token>& tokens) const;

    TokenTexts texts_;
    std::vector<double> scores_;
    std::vector<std::int32_t> byte_tokens_; ///< <0xNN>; empty unless the vocabulary has all of them
    std::int32_t unk_ = -1;
    double unknown_score_ = 0;
};

} // namespace ponderscope
