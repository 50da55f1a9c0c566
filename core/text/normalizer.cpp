// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/normalizer.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/characters.h"
#include "core/text/unicode_forms.h"

namespace ponderscope {

namespace {

void lower_case(NormalizedText& normalized) {
    Rewriter rewriter(normalized);
    const std::string_view text = rewriter.input();
    std::string lower;
    for (std::size_t i = 0; i < text.size();) {
        const Utf8Character c = utf8_at(text, i);
        lower.clear();
        characters::append_lower_case(lower, c.code);
        rewriter.replace(c.bytes, lower);
        i += c.bytes;
    }
    rewriter.finish();
}

void strip_accents(NormalizedText& normalized) {
    Rewriter rewriter(normalized);
    const std::string_view text = rewriter.input();
    for (std::size_t i = 0; i < text.size();) {
        const Utf8Character c = utf8_at(text, i);
        if (characters::is_mark(c.code)) {
            rewriter.replace(c.bytes, {});
        } else {
            rewriter.keep(c.bytes);
        }
        i += c.bytes;
    }
    rewriter.finish();
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

void replace(NormalizedText& normalized, const Pattern& pattern, std::string_view with, MatchState& state) {
    Rewriter rewriter(normalized);
    Pattern::Search search(pattern, rewriter.input(), state);
    Pattern::Match match;
    while (search.next(match)) {
        rewriter.keep_until(match.begin);
        rewriter.replace(match.end - match.begin, with);
    }
    rewriter.finish();
}

} // namespace

Normalizer Normalizer::parse(const nlohmann::json& json, const std::filesystem::path& file) {
    Normalizer normalizer;
    if (!json.is_null()) {
        normalizer.add(json, "normalizer", file);
    }
    return normalizer;
}

Normalizer Normalizer::nfc() {
    Normalizer normalizer;
    normalizer.steps_.push_back({Kind::nfc, {}, {}});
    return normalizer;
}

void Normalizer::add(const nlohmann::json& json, const std::string& name, const std::filesystem::path& file) {
    const JsonObject object(json, file, name);
    const std::string type = object.required_text("type");
    if (type == "Sequence") {
        for (const nlohmann::json& part : object.required_array("normalizers")) {
            add(part, name + ".normalizers", file);
        }
    } else if (type == "NFC") {
        steps_.push_back({Kind::nfc, {}, {}});
    } else if (type == "NFD") {
        steps_.push_back({Kind::nfd, {}, {}});
    } else if (type == "NFKC") {
        steps_.push_back({Kind::nfkc, {}, {}});
    } else if (type == "NFKD") {
        steps_.push_back({Kind::nfkd, {}, {}});
    } else if (type == "Lowercase") {
        steps_.push_back({Kind::lower_case, {}, {}});
    } else if (type == "StripAccents") {
        steps_.push_back({Kind::strip_accents, {}, {}});
    } else if (type == "Strip") {
        steps_.push_back({Kind::strip,
                          {},
                          {},
                          object.boolean("strip_left").value_or(true),
                          object.boolean("strip_right").value_or(true)});
    } else if (type == "Prepend") {
        steps_.push_back({Kind::prepend, object.required_text("prepend"), {}});
    } else if (type == "Replace") {
        Pattern pattern = Pattern::parse(object);
        steps_.push_back({Kind::replace, object.required_text("content"), std::move(pattern)});
    } else if (type == "Precompiled") {
        if (const std::string map = object.text("precompiled_charsmap").value_or(""); !map.empty()) {
            steps_.push_back({Kind::precompiled, {}, {}});
            steps_.back().map = std::make_shared<const CharacterMap>(CharacterMap::parse(map, file));
        }
    } else {
        object.fail("type",
                    "a normalizer among NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, "
                    "Replace, Precompiled, Sequence",
                    "this normalizer is not supported");
    }
}

void Normalizer::apply(NormalizedText& text, MatchState& state) const {
    for (const Step& step : steps_) {
        switch (step.kind) {
        case Kind::nfc:
            normalize_unicode(text, UnicodeForm::nfc);
            break;
        case Kind::nfd:
            normalize_unicode(text, UnicodeForm::nfd);
            break;
        case Kind::nfkc:
            normalize_unicode(text, UnicodeForm::nfkc);
            break;
        case Kind::nfkd:
            normalize_unicode(text, UnicodeForm::nfkd);
            break;
        case Kind::lower_case:
            lower_case(text);
            break;
        case Kind::strip_accents:
            strip_accents(text);
            break;
        case Kind::strip:
            strip(text, step.left, step.right);
            break;
        case Kind::prepend:
            if (!text.text().empty()) {
                Rewriter rewriter(text);
                rewriter.replace(0, step.text);
                rewriter.finish();
            }
            break;
        case Kind::replace:
            replace(text, *step.pattern, step.text, state);
            break;
        case Kind::precompiled:
            step.map->apply(text);
            break;
        }
    }
}

} // namespace ponderscope
