// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ponderscope {

/// Token texts by id and ids by text, in one pool of bytes.
class TokenTexts {
public:
    /// InputError naming \p file: an id that is negative, too large, or given twice.
    void build(std::vector<std::pair<std::string_view, std::int64_t>> tokens,
               const std::filesystem::path& file);

    [[nodiscard]] std::int32_t size() const {
        return static_cast<std::int32_t>(begin_.empty() ? 0 : begin_.size() - 1);
    }
    [[nodiscard]] std::int32_t count() const { return count_; } ///< of tokens; less than size() with holes
    [[nodiscard]] bool has(std::int32_t id) const;
    [[nodiscard]] std::string_view text(std::int32_t id) const;   ///< empty for ids without a token
    [[nodiscard]] std::int32_t find(std::string_view text) const; ///< -1 when absent
    [[nodiscard]] std::size_t longest() const { return longest_; }

private:
    std::string pool_;
    std::vector<std::uint32_t> begin_; // size() + 1
    std::vector<bool> present_;
    std::vector<std::int32_t> slots_; // open addressing, a power of two, -1 free
    std::size_t longest_ = 0;
    std::int32_t count_ = 0;
};

/// Byte-pair encoding of single words (Sennrich et al. 2016), as in the "model" of a tokenizer.json.
/// Immutable; several threads, each with a Workspace of its own.
class Bpe {
public:
    struct Settings {
        bool byte_level =
            false; ///< symbols are bytes and the vocabulary is written in the byte-level alphabet
        bool byte_fallback = false; ///< unknown characters become <0xNN> tokens
        bool fuse_unk = false;      ///< neighbouring unknown characters are one unknown token
        bool ignore_merges = false; ///< a word of the vocabulary is one token, without merges
        std::optional<std::string> unk_token;
    };

    /// One token of a word: bytes [begin, end) of the word.
    struct Token {
        std::int32_t id;
        std::uint32_t begin, end;
    };

    /// Buffers, and a cache of words already encoded, for one thread at a time.
    class Workspace {
    public:
        std::vector<Token> tokens; ///< result of encode()

    private:
        friend class Bpe;
        struct Entry {
            std::uint64_t hash = 0;
            std::uint32_t key = 0;      // offset into arena_ of the word, followed by its tokens
            std::uint16_t key_size = 0; // 0: free
            std::uint16_t count = 0;
        };
        std::vector<Entry> entries_;
        std::size_t used_ = 0;
        std::vector<char> arena_;
        std::vector<Token> symbols_;
        std::vector<std::uint32_t> ranks_;
        std::vector<std::int32_t> next_, previous_;
        std::vector<std::uint64_t> heap_;
    };

    /// \p merges: pairs of token texts, best first. InputError names \p file.
    static Bpe build(std::vector<std::pair<std::string_view, std::int64_t>> vocabulary,
                     const std::vector<std::pair<std::string_view, std::string_view>>& merges,
                     Settings settings, const std::filesystem::path& file);

    [[nodiscard]] const TokenTexts& texts() const { return texts_; }
    [[nodiscard]] const Settings& settings() const { return settings_; }

    /// Tokens of \p word (valid UTF-8 unless byte-level) into workspace.tokens. Time is n log n in its
    /// length.
    void encode(std::string_view word, Workspace& workspace) const;

private:
    struct Merge {
        std::uint64_t pair = ~std::uint64_t{0};
        std::uint32_t rank = 0;
        std::int32_t id = 0;
    };
    static std::uint64_t pair_of(std::int32_t a, std::int32_t b) {
        return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
    }
    [[nodiscard]] const Merge* find_merge(std::int32_t a, std::int32_t b) const;
    [[nodiscard]] std::int32_t symbol_of(char32_t character) const;
    [[nodiscard]] bool may_join(std::int32_t a, std::int32_t b) const;
    void prepare_symbols();
    void prepare_cuts();
    void encode_part(std::string_view part, std::uint32_t offset, bool is_word, Workspace& workspace) const;
    void make_symbols(std::string_view part, std::vector<Token>& symbols) const;
    void merge_few(Workspace& workspace) const;
    void merge_many(Workspace& workspace) const;

    Settings settings_;
    TokenTexts texts_;
    std::vector<Merge> merges_; // open addressing, a power of two
    unsigned merge_shift_ = 64;
    std::vector<std::int32_t> symbols_; // byte-level: by byte; else by character below 0x10000. -1: unknown
    std::vector<std::int32_t> byte_tokens_; // <0xNN>, -1 when absent; empty without byte_fallback
    std::int32_t unk_ = -1;
    bool vanishes_ = false; // an unknown character becomes nothing
    bool cuts_ = false;
    std::vector<std::uint64_t>
        joins_; // a bit for each hashed pair of first symbols that some merge brings together
};

} // namespace ponderscope
