// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/normalizer.h"

#include "core/base/utf8.h"
#include "core/text/character_map.h"
#include "core/text/characters.h"
#include "core/text/pattern.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ponderscope {

namespace {

constexpr std::pair<std::string_view, characters::Form> forms[] = {{"NFC", characters::Form::nfc},
                                                                   {"NFD", characters::Form::nfd},
                                                                   {"NFKC", characters::Form::nfkc},
                                                                   {"NFKD", characters::Form::nfkd}};

/// Calls \p rewrite(rewriter, character) for each character. \p rewrite keeps or replaces this character.
template <class Rewrite>
void each_character(NormalizedText& normalized, const Rewrite& rewrite) {
    Rewriter rewriter(normalized);
    const std::string_view text = rewriter.input();
    while (rewriter.position() < text.size()) {
        rewrite(rewriter, utf8_at(text, rewriter.position()));
    }
    rewriter.finish();
}

void lower_case(NormalizedText& normalized) {
    std::string lower;
    each_character(normalized, [&](Rewriter& rewriter, const Utf8Character& c) {
        lower.clear();
        characters::append_lower_case(lower, c.code);
        rewriter.replace(c.bytes, lower);
    });
}

void strip_accents(NormalizedText& normalized) {
    each_character(normalized, [](Rewriter& rewriter, const Utf8Character& c) {
        characters::is_mark(c.code) ? rewriter.replace(c.bytes, {}) : rewriter.keep(c.bytes);
    });
}

void strip(NormalizedText& normalized, bool left, bool right) {
    Rewriter rewriter(normalized);
    const std::string_view text = rewriter.input();
    std::size_t begin = 0;
    while (left && begin < text.size()) {
        const Utf8Character c = utf8_at(text, begin);
        if (!characters::is_white_space(c.code)) {
            break;
        }
        begin += c.bytes;
    }
    std::size_t end = text.size();
    while (right && end > begin) {
        const std::size_t before = utf8_boundary_before(text, end - 1);
        if (!characters::is_white_space(utf8_at(text, before).code)) {
            break;
        }
        end = before;
    }
    rewriter.replace(begin, {});
    rewriter.keep_until(end);
    rewriter.replace(text.size() - end, {});
    rewriter.finish();
}

void replace(NormalizedText& normalized, const Pattern& pattern, std::string_view with) {
    Rewriter rewriter(normalized);
    pattern.each_match(rewriter.input(), [&](std::size_t begin, std::size_t end) {
        rewriter.keep_until(begin);
        rewriter.replace(end - begin, with);
    });
    rewriter.finish();
}

} // namespace

Normalizer Normalizer::parse(const std::optional<JsonObject>& json) {
    Normalizer normalizer;
    each_component(json, "normalizers",
                   [&](const JsonObject& object, const std::string& type) { normalizer.add(object, type); });
    return normalizer;
}

void Normalizer::add(const JsonObject& object, const std::string& type) {
    if (const auto* const form = std::find_if(std::begin(forms), std::end(forms),
                                              [&](const auto& one) { return one.first == type; });
        form != std::end(forms)) {
        steps_.emplace_back(
            [form = form->second](NormalizedText& text) { characters::normalize(text, form); });
    } else if (type == "Lowercase") {
        steps_.emplace_back(lower_case);
    } else if (type == "StripAccents") {
        steps_.emplace_back(strip_accents);
    } else if (type == "Strip") {
        steps_.emplace_back([left = object.boolean("strip_left").value_or(true),
                             right = object.boolean("strip_right").value_or(true)](NormalizedText& text) {
            strip(text, left, right);
        });
    } else if (type == "Prepend") {
        steps_.emplace_back([what = object.required_text("prepend")](NormalizedText& text) {
            if (!text.text().empty()) {
                Rewriter rewriter(text);
                rewriter.replace(0, what);
                rewriter.finish();
            }
        });
    } else if (type == "Replace") {
        steps_.emplace_back([pattern = Pattern::parse(object), with = object.required_text("content")](
                                NormalizedText& text) { replace(text, pattern, with); });
    } else if (type == "Precompiled") {
        if (const std::string map = object.text("precompiled_charsmap").value_or(""); !map.empty()) {
            steps_.emplace_back(
                [map = CharacterMap::parse(map, object.source())](NormalizedText& text) { map.apply(text); });
        }
    } else {
        object.fail("type",
                    "a normalizer among NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, "
                    "Replace, Precompiled, Sequence",
                    "this normalizer is not supported");
    }
}

} // namespace ponderscope
