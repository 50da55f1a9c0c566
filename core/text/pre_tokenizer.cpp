// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/pre_tokenizer.h"

#include "core/base/utf8.h"
#include "core/text/byte_level.h"

#include <algorithm>

namespace ponderscope {

namespace {

// GPT-2 (Radford et al. 2019): contractions, words, numbers and signs, each with one space before it; then
// spaces.
constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct Part {
    Piece piece;
    bool is_match;
};

// As the library tokenizers defines them.
constexpr std::string_view white_space = R"(\s)";
constexpr std::string_view punctuation = R"([!-/:-@\[-`{-~\p{P}])";

} // namespace

void PreTokenizer::split_piece(const Step& step, std::string_view text, Piece piece,
                               std::vector<Piece>& out) {
    std::string_view subject = text.substr(piece.begin, piece.end - piece.begin);
    std::string letters;
    if (step.on_alphabet) {
        letters = to_byte_level(subject);
        subject = letters;
    }
    std::vector<Part> parts;
    const auto add = [&](std::size_t begin, std::size_t end, bool is_match) {
        parts.push_back(
            {{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)}, is_match != step.invert});
    };
    std::size_t last = 0;
    step.pattern->each_match(subject, [&](std::size_t begin, std::size_t end) {
        if (begin != last) {
            add(last, begin, false);
        }
        add(begin, end, true);
        last = end;
    });
    if (last != subject.size()) {
        add(last, subject.size(), false);
    }

    const auto joins = [&](bool before, bool is_match) { // whether a part joins the previous part
        switch (step.behavior) {
        case Behavior::merged_with_previous:
            return is_match && !before;
        case Behavior::merged_with_next:
            return !is_match && before;
        case Behavior::contiguous:
            return is_match == before;
        default:
            return false;
        }
    };
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0 && joins(parts[i - 1].is_match, parts[i].is_match)) {
            pieces.back().end = parts[i].piece.end;
        } else if (step.behavior != Behavior::removed || !parts[i].is_match) {
            pieces.push_back(parts[i].piece);
        }
    }

    std::size_t letter = 0; // offset in `letters`
    std::uint32_t byte = 0; // offset of the byte that the letter stands for
    const auto bytes_before = [&](std::uint32_t offset) {
        if (!step.on_alphabet) {
            return offset;
        }
        while (letter < offset) {
            letter += utf8_at(letters, letter).bytes;
            ++byte;
        }
        return byte;
    };
    for (const Piece p : pieces) {
        if (p.begin != p.end) {
            const std::uint32_t begin = bytes_before(p.begin);
            out.push_back({piece.begin + begin, piece.begin + bytes_before(p.end)});
        }
    }
}

std::vector<Piece> PreTokenizer::split(NormalizedText& text, bool at_text_begin) const {
    std::vector<Piece> pieces;
    if (!text.text().empty()) {
        pieces.push_back({0, static_cast<std::uint32_t>(text.text().size())});
    }
    for (const Step& step : steps_) {
        std::vector<Piece> finer;
        if (step.kind == Kind::pattern) {
            for (const Piece piece : pieces) {
                split_piece(step, text.text(), piece, finer);
            }
            pieces = std::move(finer);
            continue;
        }
        Rewriter rewriter(text);
        const std::string_view in = rewriter.input();
        for (const Piece piece : pieces) {
            rewriter.keep_until(piece.begin);
            const auto begin = static_cast<std::uint32_t>(rewriter.output_position());
            const std::string_view part = in.substr(piece.begin, piece.end - piece.begin);
            if (step.kind == Kind::prefix_space) {
                if (part.front() != ' ') {
                    rewriter.replace(0, " ");
                }
                rewriter.keep_until(piece.end);
            } else {
                const bool begins = part.front() == ' ' || part.starts_with(step.replacement);
                // As in the library tokenizers, removed or inserted text before the piece also prevents
                // Prepend::first.
                const bool wanted = step.prepend == Prepend::always ||
                                    (step.prepend == Prepend::first && at_text_begin && piece.begin == 0);
                if (wanted && !begins) {
                    rewriter.replace(0, step.replacement);
                }
                for (std::size_t i = piece.begin; i < piece.end;) {
                    const std::size_t space = std::min<std::size_t>(in.find(' ', i), piece.end);
                    rewriter.keep_until(space);
                    if (space < piece.end) {
                        rewriter.replace(1, step.replacement);
                    }
                    i = space + 1;
                }
            }
            finer.push_back({begin, static_cast<std::uint32_t>(rewriter.output_position())});
        }
        rewriter.finish();
        pieces = std::move(finer);
    }
    return pieces;
}

PreTokenizer PreTokenizer::parse(const std::optional<JsonObject>& json) {
    PreTokenizer p;
    each_component(json, "pretokenizers",
                   [&](const JsonObject& object, const std::string& type) { p.add(object, type); });
    return p;
}

void PreTokenizer::add_pattern(Pattern pattern, Behavior behavior, bool invert) {
    Step step;
    step.pattern = std::move(pattern);
    step.behavior = behavior;
    step.invert = invert;
    step.on_alphabet = byte_level_;
    steps_.push_back(std::move(step));
}

void PreTokenizer::add(const JsonObject& object, const std::string& type) {
    const std::filesystem::path& file = object.source();
    const auto behavior = [&] {
        return choice<Behavior>(object, "behavior",
                                {{"Removed", Behavior::removed},
                                 {"Isolated", Behavior::isolated},
                                 {"MergedWithPrevious", Behavior::merged_with_previous},
                                 {"MergedWithNext", Behavior::merged_with_next},
                                 {"Contiguous", Behavior::contiguous}});
    };
    if (type == "ByteLevel") {
        if (byte_level_) {
            object.fail("type", "at most one ByteLevel in a sequence", "this combination is not supported");
        }
        if (object.boolean("add_prefix_space").value_or(true)) {
            Step prefix;
            prefix.kind = Kind::prefix_space;
            steps_.push_back(std::move(prefix));
        }
        if (object.boolean("use_regex").value_or(true)) {
            add_pattern(Pattern::regex(gpt2_pattern, file), Behavior::isolated);
        }
        byte_level_ = true;
    } else if (type == "Split") {
        add_pattern(Pattern::parse(object), behavior(), object.boolean("invert").value_or(false));
    } else if (type == "Digits") {
        add_pattern(Pattern::regex(R"(\p{N})", file), object.boolean("individual_digits").value_or(false)
                                                          ? Behavior::isolated
                                                          : Behavior::contiguous);
    } else if (type == "Punctuation") {
        add_pattern(Pattern::regex(punctuation, file),
                    object.has("behavior") ? behavior() : Behavior::isolated);
    } else if (type == "Whitespace") {
        const std::string word = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\u200c\u200d"; // Rust's \w
        add_pattern(Pattern::regex("[" + word + "]+|[^" + word + "\\s]+", file), Behavior::removed, true);
    } else if (type == "WhitespaceSplit" || type == "BertPreTokenizer") {
        add_pattern(Pattern::regex(white_space, file), Behavior::removed);
        if (type == "BertPreTokenizer") {
            add_pattern(Pattern::regex(punctuation, file), Behavior::isolated);
        }
    } else if (type == "CharDelimiterSplit") {
        add_pattern(Pattern::literal(one_character(object, "delimiter", object.required_text("delimiter"))),
                    Behavior::removed);
    } else if (type == "Metaspace") {
        if (byte_level_) {
            object.fail("type", "no Metaspace after ByteLevel", "this combination is not supported");
        }
        Step step;
        step.kind = Kind::metaspace;
        step.replacement =
            one_character(object, "replacement", object.text("replacement").value_or("\u2581"));
        step.prepend = choice<Prepend>(
            object, "prepend_scheme",
            {{"always", Prepend::always}, {"first", Prepend::first}, {"never", Prepend::never}},
            object.boolean("add_prefix_space").value_or(true) ? Prepend::always : Prepend::never);
        steps_.push_back(step);
        if (object.boolean("split").value_or(true)) {
            add_pattern(Pattern::literal(step.replacement), Behavior::merged_with_next);
        }
    } else {
        object.fail("type",
                    "a pre-tokenizer among ByteLevel, Split, Digits, Punctuation, Metaspace, Whitespace, "
                    "WhitespaceSplit, "
                    "CharDelimiterSplit, BertPreTokenizer, Sequence",
                    "this pre-tokenizer is not supported");
    }
}

} // namespace ponderscope
