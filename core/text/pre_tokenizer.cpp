// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/pre_tokenizer.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/byte_level.h"
#include "core/text/characters.h"

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

char32_t single_character(const JsonObject& object, std::string_view key, const std::string& text) {
    if (utf8_length(text) != 1) {
        object.fail(key, "one character");
    }
    return utf8_at(text, 0).code;
}

} // namespace

void PreTokenizer::split_piece(const Step& step, std::string_view text, Piece piece, MatchState& state,
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
    if (step.kind == Kind::pattern) {
        Pattern::Search search(*step.pattern, subject, state);
        Pattern::Match match;
        while (search.next(match)) {
            if (match.begin != last) {
                add(last, match.begin, false);
            }
            add(match.begin, match.end, true);
            last = match.end;
        }
    } else {
        for (std::size_t i = 0; i < subject.size();) {
            const Utf8Character c = utf8_at(subject, i);
            if (step.is_match != nullptr ? step.is_match(c.code) : c.code == step.delimiter) {
                if (last < i) {
                    add(last, i, false);
                }
                add(i, i + c.bytes, true);
                last = i + c.bytes;
            }
            i += c.bytes;
        }
    }
    if (last != subject.size()) {
        add(last, subject.size(), false);
    }

    std::vector<Piece> pieces;
    bool previous = false;
    switch (step.behavior) {
    case Behavior::removed:
        for (const Part& p : parts) {
            if (!p.is_match) {
                pieces.push_back(p.piece);
            }
        }
        break;
    case Behavior::isolated:
        for (const Part& p : parts) {
            pieces.push_back(p.piece);
        }
        break;
    case Behavior::merged_with_previous:
        for (const Part& p : parts) {
            if (p.is_match && !previous && !pieces.empty()) {
                pieces.back().end = p.piece.end;
            } else {
                pieces.push_back(p.piece);
            }
            previous = p.is_match;
        }
        break;
    case Behavior::merged_with_next:
        for (auto p = parts.rbegin(); p != parts.rend(); ++p) {
            if (p->is_match && !previous && !pieces.empty()) {
                pieces.back().begin = p->piece.begin;
            } else {
                pieces.push_back(p->piece);
            }
            previous = p->is_match;
        }
        std::reverse(pieces.begin(), pieces.end());
        break;
    case Behavior::contiguous:
        for (const Part& p : parts) {
            if (p.is_match == previous && !pieces.empty()) {
                pieces.back().end = p.piece.end;
            } else {
                pieces.push_back(p.piece);
            }
            previous = p.is_match;
        }
        break;
    }

    std::size_t letter = 0; // byte in the letters
    std::uint32_t byte = 0; // and the byte that it stands for
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

std::vector<Piece> PreTokenizer::split(NormalizedText& text, bool at_text_begin, MatchState& state) const {
    std::vector<Piece> pieces;
    if (!text.text().empty()) {
        pieces.push_back({0, static_cast<std::uint32_t>(text.text().size())});
    }
    for (const Step& step : steps_) {
        std::vector<Piece> finer;
        if (step.kind == Kind::pattern || step.kind == Kind::characters) {
            for (const Piece piece : pieces) {
                split_piece(step, text.text(), piece, state, finer);
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
                // What was cut off or put in before the piece counts as text before it, as in the original.
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
        if (step.kind == Kind::metaspace && step.splits) {
            finer = {};
            Step cut;
            cut.kind = Kind::characters;
            cut.behavior = Behavior::merged_with_next;
            cut.delimiter = utf8_at(step.replacement, 0).code;
            for (const Piece piece : pieces) {
                split_piece(cut, text.text(), piece, state, finer);
            }
            pieces = std::move(finer);
        }
    }
    return pieces;
}

PreTokenizer PreTokenizer::parse(const nlohmann::json& json, const std::filesystem::path& file) {
    PreTokenizer p;
    if (!json.is_null()) {
        p.add(json, "pre_tokenizer", file);
    }
    return p;
}

void PreTokenizer::add_characters(bool (*is_match)(char32_t), Behavior behavior) {
    Step step;
    step.kind = Kind::characters;
    step.behavior = behavior;
    step.is_match = is_match;
    step.on_alphabet = byte_level_;
    steps_.push_back(std::move(step));
}

void PreTokenizer::add(const nlohmann::json& json, const std::string& name,
                       const std::filesystem::path& file) {
    const JsonObject object(json, file, name);
    const std::string type = object.required_text("type");
    const auto behavior = [&] {
        return choice<Behavior>(object, "behavior",
                                {{"Removed", Behavior::removed},
                                 {"Isolated", Behavior::isolated},
                                 {"MergedWithPrevious", Behavior::merged_with_previous},
                                 {"MergedWithNext", Behavior::merged_with_next},
                                 {"Contiguous", Behavior::contiguous}});
    };
    if (type == "Sequence") {
        for (const nlohmann::json& part : object.required_array("pretokenizers")) {
            add(part, name + ".pretokenizers", file);
        }
    } else if (type == "ByteLevel") {
        if (byte_level_) {
            object.fail("type", "one ByteLevel in a sequence", "this combination is not supported");
        }
        if (object.boolean("add_prefix_space").value_or(true)) {
            Step prefix;
            prefix.kind = Kind::prefix_space;
            steps_.push_back(std::move(prefix));
        }
        if (object.boolean("use_regex").value_or(true)) {
            Step step;
            step.pattern = Pattern::regex(gpt2_pattern, file);
            steps_.push_back(std::move(step));
        }
        byte_level_ = true;
    } else if (type == "Split") {
        Step step;
        step.pattern = Pattern::parse(object);
        step.behavior = behavior();
        step.invert = object.boolean("invert").value_or(false);
        step.on_alphabet = byte_level_;
        steps_.push_back(std::move(step));
    } else if (type == "Digits") {
        add_characters(characters::is_numeric, object.boolean("individual_digits").value_or(false)
                                                   ? Behavior::isolated
                                                   : Behavior::contiguous);
    } else if (type == "Punctuation") {
        add_characters(characters::is_punctuation, object.has("behavior") ? behavior() : Behavior::isolated);
    } else if (type == "Whitespace") {
        Step step;
        const std::string word = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\u200c\u200d"; // as Rust's \w has it
        step.pattern = Pattern::regex("[" + word + "]+|[^" + word + "\\s]+", file);
        step.behavior = Behavior::removed;
        step.invert = true;
        step.on_alphabet = byte_level_;
        steps_.push_back(std::move(step));
    } else if (type == "WhitespaceSplit") {
        add_characters(characters::is_white_space, Behavior::removed);
    } else if (type == "BertPreTokenizer") {
        add_characters(characters::is_white_space, Behavior::removed);
        add_characters(characters::is_punctuation, Behavior::isolated);
    } else if (type == "CharDelimiterSplit") {
        add_characters(nullptr, Behavior::removed);
        steps_.back().delimiter = single_character(object, "delimiter", object.required_text("delimiter"));
    } else if (type == "Metaspace") {
        if (byte_level_) {
            object.fail("type", "no Metaspace after ByteLevel", "this combination is not supported");
        }
        Step step;
        step.kind = Kind::metaspace;
        step.replacement = object.text("replacement").value_or("\u2581");
        single_character(object, "replacement", step.replacement);
        step.prepend = choice<Prepend>(
            object, "prepend_scheme",
            {{"always", Prepend::always}, {"first", Prepend::first}, {"never", Prepend::never}},
            object.boolean("add_prefix_space").value_or(true) ? Prepend::always : Prepend::never);
        step.splits = object.boolean("split").value_or(true);
        steps_.push_back(std::move(step));
    } else {
        object.fail("type",
                    "a pre-tokenizer among ByteLevel, Split, Digits, Punctuation, Metaspace, Whitespace, "
                    "WhitespaceSplit, "
                    "CharDelimiterSplit, BertPreTokenizer, Sequence",
                    "this pre-tokenizer is not supported");
    }
}

} // namespace ponderscope
