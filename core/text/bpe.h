// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ponderscope {

/// Finds a token's text by its id, and its id by its text. One pool holds all texts. Movable, not copyable.
class TokenTexts {
public:
    TokenTexts() = default;
    TokenTexts(TokenTexts&&) noexcept = default;
    TokenTexts& operator=(TokenTexts&&) noexcept = default;
    TokenTexts(const TokenTexts&) = delete;
    TokenTexts& operator=(const TokenTexts&) = delete;

    /// InputError names \p file: an id that is negative, too large, or repeated.
    void build(std::vector<std::pair<std::string_view, std::int64_t>> tokens,
               const std::filesystem::path& file);

    [[nodiscard]] std::int32_t size() const {
        return static_cast<std::int32_t>(begin_.empty() ? 0 : begin_.size() - 1);
    }
    /// Number of tokens; less than size() if ids have gaps.
    [[nodiscard]] std::int32_t count() const { return count_; }
    [[nodiscard]] bool has(std::int32_t id) const;
    [[nodiscard]] std::string_view text(std::int32_t id) const;   ///< empty for ids without a token
    [[nodiscard]] std::int32_t find(std::string_view text) const; ///< -1 when absent
    [[nodiscard]] std::size_t longest() const { return longest_; }

private:
    std::vector<char> pool_;           // the keys of ids_ refer to these bytes; after a
                                       // move, a vector keeps its bytes at their addresses
    std::vector<std::uint32_t> begin_; // size() + 1
    std::vector<bool> present_;
    std::unordered_map<std::string_view, std::int32_t> ids_;
    std::size_t longest_ = 0;
    std::int32_t count_ = 0;
};

/// The ids of <0x00> to <0xFF>, which replace the bytes of unknown characters; -1 if absent.
std::vector<std::int32_t> fallback_tokens(const TokenTexts& texts);

/// Byte-pair encoding of single words (Sennrich et al. 2016), the "model" of a tokenizer.json. Immutable.
/// Threads may share a Bpe, each thread with its own Workspace.
class Bpe {
public:
    struct Settings {
        bool byte_level = false;    ///< symbols are bytes, and the vocabulary uses the byte-level alphabet
        bool byte_fallback = false; ///< unknown characters become <0xNN> tokens
        bool fuse_unk = false;      ///< adjacent unknown characters become one unknown token
        bool ignore_merges = false; ///< a word in the vocabulary is one token, whatever the merges
        std::optional<std::string> unk_token;
    };

    /// One token of a word: bytes [begin, end) of the word.
    struct Token {
        std::int32_t id;
        std::uint32_t begin, end;
    };

    /// A cache of encoded words, for one thread at a time.
    class Workspace {
    public:
        std::vector<Token> tokens; ///< result of encode()

    private:
        friend class Bpe;
        struct Hash : std::hash<std::string_view> {
            using is_transparent = void;
        };
        std::unordered_map<std::string, std::vector<Token>, Hash, std::equal_to<>> known_;
    };

    /// \p merges: pairs of token texts, in the order of priority. InputError names \p file.
    static Bpe build(std::vector<std::pair<std::string_view, std::int64_t>> vocabulary,
                     const std::vector<std::pair<std::string_view, std::string_view>>& merges,
                     Settings settings, const std::filesystem::path& file);

    [[nodiscard]] const TokenTexts& texts() const { return texts_; }
    [[nodiscard]] const Settings& settings() const { return settings_; }

    /// Writes the tokens of \p word (valid UTF-8 unless byte-level) to workspace.tokens. Time: n log n for n
    /// bytes.
    void encode(std::string_view word, Workspace& workspace) const;

private:
    struct Merge {
        std::uint32_t rank = 0;
        std::int32_t id = 0;
    };
    static std::uint64_t pair_of(std::int32_t a, std::int32_t b) {
        return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
    }
    [[nodiscard]] const Merge* find_merge(std::int32_t a, std::int32_t b) const;
    void make_symbols(std::string_view word, std::vector<Token>& symbols) const;
    void merge(std::vector<Token>& symbols) const;

    Settings settings_;
    TokenTexts texts_;
    std::unordered_map<std::uint64_t, Merge> merges_; // by pair
    std::vector<std::int32_t> byte_symbols_;          // by byte, -1 if absent; empty unless byte-level
    std::vector<std::int32_t> byte_tokens_;           // <0xNN>, -1 if absent; empty without byte_fallback
    std::int32_t unk_ = -1;
};

} // namespace ponderscope
