// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/unigram.h"

#include "core/base/error.h"
#include "core/base/utf8.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ponderscope {
namespace {

/// An unknown character scores this much less than the least likely token, as in SentencePiece.
constexpr double unknown_penalty = 10.0;

/// The best split of the word up to an offset.
struct BestPath {
    double score = 0;
    std::uint32_t begin = 0; ///< beginning of the last token
    std::int32_t token = -1; ///< -1: an unknown character
    bool reached = false;
};

} // namespace

Unigram Unigram::build(const std::vector<std::pair<std::string_view, double>>& vocabulary,
                       std::optional<std::int64_t> unk_id, bool byte_fallback,
                       const std::filesystem::path& file) {
    Unigram model;
    std::vector<std::pair<std::string_view, std::int64_t>> tokens;
    double lowest = 0;
    for (const auto& [text, score] : vocabulary) {
        if (!std::isfinite(score)) {
            throw InputError(ErrorId::tokenizer_file, file, "a finite score for each token",
                             "another score for \"" + printable(text) + '"',
                             "take the tokenizer file from its source again");
        }
        lowest = tokens.empty() ? score : std::min(lowest, score);
        tokens.emplace_back(text, static_cast<std::int64_t>(tokens.size()));
        model.scores_.push_back(score);
    }
    model.unknown_score_ = lowest - unknown_penalty;
    const auto size = static_cast<std::int64_t>(vocabulary.size());
    if (unk_id && (*unk_id < 0 || *unk_id >= size)) {
        throw InputError(ErrorId::tokenizer_file, file, "an unk_id below " + std::to_string(size),
                         std::to_string(*unk_id), "take the tokenizer file from its source again");
    }
    model.unk_ = static_cast<std::int32_t>(unk_id.value_or(-1));
    model.texts_.build(std::move(tokens), file);
    if (byte_fallback) {
        model.byte_tokens_ = fallback_tokens(model.texts_);
    }
    return model;
}

void Unigram::encode(std::string_view word, std::vector<Bpe::Token>& tokens) const {
    tokens.clear();
    std::vector<BestPath> best(word.size() + 1);
    const auto offer = [&](std::size_t end, const BestPath& path) {
        if (!best[end].reached || path.score > best[end].score) {
            best[end] = path;
        }
    };
    for (std::size_t begin = 0; begin < word.size();) {
        const double score = best[begin].score;
        const std::size_t character = utf8_at(word, begin).bytes;
        const std::size_t last = std::min(word.size(), begin + texts_.longest());
        const auto from = static_cast<std::uint32_t>(begin);
        bool has_character = false;
        for (std::size_t end = begin; end < last;) {
            end += utf8_at(word, end).bytes;
            if (const std::int32_t token = texts_.find(word.substr(begin, end - begin)); token >= 0) {
                offer(end, {score + scores_[static_cast<std::size_t>(token)], from, token, true});
                has_character = has_character || end == begin + character;
            }
        }
        if (!has_character) {
            offer(begin + character, {score + unknown_score_, from, -1, true});
        }
        begin += character;
    }
    std::uint32_t unknown_end = 0; ///< end of a run of unknown characters; 0: none
    for (auto end = static_cast<std::uint32_t>(word.size()); end > 0; end = best[end].begin) {
        const BestPath& path = best[end];
        const bool is_unknown = path.token < 0 || path.token == unk_;
        if (is_unknown && unknown_end == 0) {
            unknown_end = end;
        }
        if (!is_unknown && unknown_end > 0) {
            put_unknown(word, end, unknown_end, tokens);
            unknown_end = 0;
        }
        if (!is_unknown) {
            tokens.push_back({path.token, path.begin, end});
        } else if (path.begin == 0) {
            put_unknown(word, 0, unknown_end, tokens);
        }
    }
    std::reverse(tokens.begin(), tokens.end());
}

/// Appends the tokens of unknown characters, the last one first, because encode() collects tokens backwards.
void Unigram::put_unknown(std::string_view word, std::uint32_t begin, std::uint32_t end,
                          std::vector<Bpe::Token>& tokens) const {
    const std::string_view part = word.substr(begin, end - begin);
    const std::int32_t whole = texts_.find(part); // for example, the text of the unknown token
    const auto token_of = [&](char byte) { return byte_tokens_[static_cast<unsigned char>(byte)]; };
    if (whole < 0 && !byte_tokens_.empty() &&
        std::all_of(part.begin(), part.end(), [&](char byte) { return token_of(byte) >= 0; })) {
        for (std::uint32_t at = end; at-- > begin;) {
            tokens.push_back({token_of(word[at]), at, at + 1});
        }
        return;
    }
    if (whole < 0 && unk_ < 0) {
        throw InputError(ErrorId::text_tokenizer,
                         "The text: expected characters that the tokenizer knows, found \"" +
                             printable(part) +
                             "\", and the tokenizer has no token for unknown characters; remove them.");
    }
    tokens.push_back({whole >= 0 ? whole : unk_, begin, end});
}

} // namespace ponderscope
