// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/text/normalized_text.h"
#include "core/text/pattern.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// A part of a normalised text, in bytes.
struct Piece {
    std::uint32_t begin = 0, end = 0;
};

/// The "pre_tokenizer" of a tokenizer.json: ByteLevel, Split, Digits, Punctuation, Metaspace, Whitespace,
/// WhitespaceSplit, CharDelimiterSplit, BertPreTokenizer and sequences of them. Others are refused by name.
/// The bytes stay bytes: the alphabet of ByteLevel is the vocabulary's concern, and what comes after it in a
/// sequence sees the letters of the alphabet.
class PreTokenizer {
public:
    PreTokenizer() = default; ///< leaves the text in one piece
    static PreTokenizer parse(const nlohmann::json& json,
                              const std::filesystem::path& file); ///< null included
    /// ByteLevel with GPT-2's pattern, or the pattern given in its place; for tokenizers without a
    /// tokenizer.json.
    static PreTokenizer byte_level(bool add_prefix_space, std::optional<std::string_view> pattern,
                                   const std::filesystem::path& file);

    [[nodiscard]] bool is_byte_level() const { return byte_level_; }
    [[nodiscard]] bool rewrites() const; ///< apply_rewriting is needed

    /// Calls \p sink(Piece) for each piece of \p text, in order, none empty. Only when !rewrites().
    template <class Sink>
    void split(std::string_view text, MatchState& state, Sink&& sink) const {
        if (text.empty()) {
            return;
        }
        if (steps_.empty()) {
            sink(Piece{0, static_cast<std::uint32_t>(text.size())});
            return;
        }
        std::vector<Piece> pieces{{0, static_cast<std::uint32_t>(text.size())}};
        for (std::size_t i = 0; i + 1 < steps_.size(); ++i) {
            std::vector<Piece> finer;
            for (const Piece piece : pieces) {
                split_piece(steps_[i], text, piece, state, finer);
            }
            pieces = std::move(finer);
        }
        const Step& last = steps_.back();
        for (const Piece piece : pieces) {
            if (last.kind == Kind::pattern && last.behavior == Behavior::isolated && !last.on_alphabet) {
                isolate(*last.pattern, text, piece, state, sink);
            } else {
                std::vector<Piece> finer;
                split_piece(last, text, piece, state, finer);
                for (const Piece p : finer) {
                    sink(p);
                }
            }
        }
    }
    /// The same for pre-tokenizers that also change the text. \p at_text_begin: \p text is where the whole
    /// text begins.
    std::vector<Piece> split_rewriting(NormalizedText& text, bool at_text_begin, MatchState& state) const;

private:
    enum class Kind : std::uint8_t { pattern, characters, metaspace, prefix_space };
    enum class Behavior : std::uint8_t {
        removed,
        isolated,
        merged_with_previous,
        merged_with_next,
        contiguous
    };
    enum class Prepend : std::uint8_t { always, first, never };
    struct Step {
        Kind kind = Kind::pattern;
        Behavior behavior = Behavior::isolated;
        bool invert = false;
        bool on_alphabet = false;             // sees the letters of ByteLevel's alphabet
        std::optional<Pattern> pattern;       // pattern
        bool (*is_match)(char32_t) = nullptr; // characters, each of which is a match
        char32_t delimiter = 0;               // characters, when is_match is null
        std::string replacement;              // metaspace
        Prepend prepend = Prepend::always;
        bool splits = true;
    };

    template <class Sink>
    static void isolate(const Pattern& pattern, std::string_view text, Piece piece, MatchState& state,
                        Sink& sink) {
        Pattern::Search search(pattern, text.substr(piece.begin, piece.end - piece.begin), state);
        Pattern::Match match;
        std::uint32_t end = piece.begin;
        while (search.next(match)) {
            const auto match_begin = piece.begin + static_cast<std::uint32_t>(match.begin);
            const auto match_end = piece.begin + static_cast<std::uint32_t>(match.end);
            if (match_begin > end) {
                sink(Piece{end, match_begin});
            }
            if (match_end > match_begin) {
                sink(Piece{match_begin, match_end});
            }
            end = match_end;
        }
        if (end < piece.end) {
            sink(Piece{end, piece.end});
        }
    }
    static void split_piece(const Step& step, std::string_view text, Piece piece, MatchState& state,
                            std::vector<Piece>& out);
    void add(const nlohmann::json& json, const std::string& name, const std::filesystem::path& file);
    static Behavior parse_behavior(const JsonObject& object);
    void add_characters(bool (*is_match)(char32_t), Behavior behavior);

    std::vector<Step> steps_;
    bool byte_level_ = false;
};

} // namespace ponderscope
