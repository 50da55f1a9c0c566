// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/decoder.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/byte_level.h"

#include <charconv>

namespace ponderscope {

namespace {

std::optional<char> fallback_byte(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') {
        return std::nullopt;
    }
    unsigned value = 0;
    const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
    if (error != std::errc() || end != token.data() + 5) {
        return std::nullopt;
    }
    return static_cast<char>(value);
}

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
    std::string out;
    if (what.empty()) {
        return std::string(text);
    }
    for (std::size_t i = 0;;) {
        const std::size_t at = text.find(what, i);
        out += text.substr(i, at - i);
        if (at == std::string_view::npos) {
            return out;
        }
        out += with;
        i = at + what.size();
    }
}

std::string replace_matches(std::string_view text, const Pattern& pattern, std::string_view with,
                            MatchState& state) {
    std::string out;
    std::size_t last = 0;
    Pattern::Search search(pattern, text, state);
    Pattern::Match match;
    while (search.next(match)) {
        out += text.substr(last, match.begin - last);
        out += with;
        last = match.end;
    }
    out += text.substr(last);
    return out;
}

} // namespace

Decoder Decoder::parse(const nlohmann::json& json, const std::filesystem::path& file) {
    Decoder decoder;
    if (!json.is_null()) {
        decoder.present_ = true;
        decoder.add(json, "decoder", file);
    }
    return decoder;
}

Decoder Decoder::byte_level() {
    Decoder decoder;
    decoder.present_ = true;
    decoder.steps_.push_back({Kind::byte_level, {}, {}});
    return decoder;
}

void Decoder::add(const nlohmann::json& json, const std::string& name, const std::filesystem::path& file) {
    const JsonObject object(json, file, name);
    const std::string type = object.required_text("type");
    if (type == "Sequence") {
        for (const nlohmann::json& part : object.required_array("decoders")) {
            add(part, name + ".decoders", file);
        }
    } else if (type == "ByteLevel") {
        steps_.push_back({Kind::byte_level, {}, {}});
    } else if (type == "Replace") {
        Pattern pattern = Pattern::parse(object);
        steps_.push_back({Kind::replace, std::move(pattern), object.required_text("content")});
    } else if (type == "ByteFallback") {
        steps_.push_back({Kind::byte_fallback, {}, {}});
    } else if (type == "Fuse") {
        steps_.push_back({Kind::fuse, {}, {}});
    } else if (type == "Strip") {
        Step step{Kind::strip, {}, object.required_text("content")};
        if (utf8_length(step.text) != 1) {
            object.fail("content", "one character");
        }
        step.start = static_cast<std::size_t>(object.integer("start", 0).value_or(0));
        step.stop = static_cast<std::size_t>(object.integer("stop", 0).value_or(0));
        steps_.push_back(std::move(step));
    } else if (type == "Metaspace") {
        Step step{Kind::metaspace, {}, object.text("replacement").value_or("\u2581")};
        if (utf8_length(step.text) != 1) {
            object.fail("replacement", "one character");
        }
        const auto scheme = object.text("prepend_scheme");
        step.keeps_first = scheme ? *scheme == "never" : !object.boolean("add_prefix_space").value_or(true);
        steps_.push_back(std::move(step));
    } else if (type == "BPEDecoder") {
        steps_.push_back({Kind::end_of_word, {}, object.text("suffix").value_or("</w>")});
    } else {
        object.fail(
            "type",
            "a decoder among ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, BPEDecoder, Sequence",
            "this decoder is not supported");
    }
}

std::vector<std::string> Decoder::run(std::vector<std::string> tokens, bool whole_text) const {
    std::optional<MatchState> state;
    for (const Step& step : steps_) {
        switch (step.kind) {
        case Kind::byte_level: {
            std::string joined;
            for (const std::string& token : tokens) {
                joined += from_byte_level(token).value_or(token);
            }
            tokens = {std::move(joined)};
            break;
        }
        case Kind::replace:
            if (!state) {
                state.emplace();
            }
            for (std::string& token : tokens) {
                // What ByteFallback left may be no UTF-8, which patterns need.
                if (is_valid_utf8(token)) {
                    token = replace_matches(token, *step.pattern, step.text, *state);
                }
            }
            break;
        case Kind::byte_fallback: {
            std::vector<std::string> joined;
            bool in_bytes = false;
            for (std::string& token : tokens) {
                if (const auto byte = fallback_byte(token)) {
                    if (!in_bytes) {
                        joined.emplace_back();
                    }
                    joined.back() += *byte;
                    in_bytes = true;
                } else {
                    joined.push_back(std::move(token));
                    in_bytes = false;
                }
            }
            tokens = std::move(joined);
            break;
        }
        case Kind::fuse: {
            std::string joined;
            for (const std::string& token : tokens) {
                joined += token;
            }
            tokens = {std::move(joined)};
            break;
        }
        case Kind::strip:
            for (std::string& token : tokens) {
                for (std::size_t i = 0; whole_text && i < step.start && token.starts_with(step.text); ++i) {
                    token.erase(0, step.text.size());
                }
                for (std::size_t i = 0; whole_text && i < step.stop && token.ends_with(step.text); ++i) {
                    token.resize(token.size() - step.text.size());
                }
            }
            break;
        case Kind::metaspace:
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                tokens[i] =
                    replace_all(tokens[i], step.text, i == 0 && whole_text && !step.keeps_first ? "" : " ");
            }
            break;
        case Kind::end_of_word:
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                tokens[i] =
                    replace_all(tokens[i], step.text, i + 1 == tokens.size() && whole_text ? "" : " ");
            }
            break;
        }
    }
    return tokens;
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
    std::string text;
    const std::vector<std::string> parts = run(std::move(tokens), true);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0 && !present_) {
            text += ' ';
        }
        text += parts[i];
    }
    return text;
}

std::string Decoder::decode_one(std::string_view token) const {
    std::string text;
    for (const std::string& part : run({std::string(token)}, false)) {
        text += part;
    }
    return text;
}

} // namespace ponderscope
