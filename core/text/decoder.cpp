// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/decoder.h"

#include "core/base/utf8.h"
#include "core/text/byte_level.h"
#include "core/text/pattern.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

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

std::string replace_matches(std::string_view text, const Pattern& pattern, std::string_view with) {
    std::string out;
    std::size_t last = 0;
    pattern.each_match(text, [&](std::size_t begin, std::size_t end) {
        out += text.substr(last, begin - last);
        out += with;
        last = end;
    });
    out += text.substr(last);
    return out;
}

std::string concatenated(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) {
        all += part;
    }
    return all;
}

/// Joins adjacent <0xNN> tokens into one text of their bytes.
std::vector<std::string> with_bytes_joined(std::vector<std::string> tokens) {
    std::vector<std::string> joined;
    bool in_bytes = false;
    for (std::string& token : tokens) {
        const std::optional<char> byte = fallback_byte(token);
        if (!byte) {
            joined.push_back(std::move(token));
        } else if (in_bytes) {
            joined.back() += *byte;
        } else {
            joined.emplace_back(1, *byte);
        }
        in_bytes = byte.has_value();
    }
    return joined;
}

} // namespace

TokenDecoder TokenDecoder::parse(const std::optional<JsonObject>& json) {
    TokenDecoder decoder;
    decoder.present_ = json.has_value();
    each_component(json, "decoders",
                   [&](const JsonObject& object, const std::string& type) { decoder.add(object, type); });
    return decoder;
}

void TokenDecoder::add(const JsonObject& object, const std::string& type) {
    if (type == "ByteLevel") {
        steps_.emplace_back([](std::vector<std::string>& tokens, bool /*whole_text*/) {
            for (std::string& token : tokens) {
                token = from_byte_level(token).value_or(token);
            }
            tokens = {concatenated(tokens)};
        });
    } else if (type == "Replace") {
        steps_.emplace_back([pattern = Pattern::parse(object), with = object.required_text("content")](
                                std::vector<std::string>& tokens, bool /*whole_text*/) {
            for (std::string& token : tokens) {
                // Patterns need UTF-8, but ByteFallback may leave other bytes.
                if (is_valid_utf8(token)) {
                    token = replace_matches(token, pattern, with);
                }
            }
        });
    } else if (type == "ByteFallback") {
        steps_.emplace_back([](std::vector<std::string>& tokens, bool /*whole_text*/) {
            tokens = with_bytes_joined(std::move(tokens));
        });
    } else if (type == "Fuse") {
        steps_.emplace_back(
            [](std::vector<std::string>& tokens, bool /*whole_text*/) { tokens = {concatenated(tokens)}; });
    } else if (type == "Strip") {
        const std::string what = one_character(object, "content", object.required_text("content"));
        steps_.emplace_back([what, start = object.integer("start", 0).value_or(0),
                             stop = object.integer("stop", 0).value_or(0)](std::vector<std::string>& tokens,
                                                                           bool whole_text) {
            for (std::string& token : tokens) {
                for (std::int64_t i = 0; whole_text && i < start && token.starts_with(what); ++i) {
                    token.erase(0, what.size());
                }
                for (std::int64_t i = 0; whole_text && i < stop && token.ends_with(what); ++i) {
                    token.resize(token.size() - what.size());
                }
            }
        });
    } else if (type == "Metaspace") {
        const std::string what =
            one_character(object, "replacement", object.text("replacement").value_or("\u2581"));
        const auto scheme = object.text("prepend_scheme");
        const bool drops_first =
            scheme ? *scheme != "never" : object.boolean("add_prefix_space").value_or(true);
        steps_.emplace_back([what = Pattern::literal(what), drops_first](std::vector<std::string>& tokens,
                                                                         bool whole_text) {
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                tokens[i] = replace_matches(tokens[i], what, i == 0 && whole_text && drops_first ? "" : " ");
            }
        });
    } else if (type == "BPEDecoder") {
        steps_.emplace_back([suffix = Pattern::literal(object.text("suffix").value_or("</w>"))](
                                std::vector<std::string>& tokens, bool whole_text) {
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                tokens[i] =
                    replace_matches(tokens[i], suffix, i + 1 == tokens.size() && whole_text ? "" : " ");
            }
        });
    } else {
        object.fail(
            "type",
            "a decoder among ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, BPEDecoder, Sequence",
            "this decoder is not supported");
    }
}

std::vector<std::string> TokenDecoder::run(std::vector<std::string> tokens, bool whole_text) const {
    for (const Step& step : steps_) {
        step(tokens, whole_text);
    }
    return tokens;
}

std::string TokenDecoder::decode(std::vector<std::string> tokens) const {
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

std::string TokenDecoder::decode_one(std::string_view token) const {
    return concatenated(run({std::string(token)}, false));
}

} // namespace ponderscope
