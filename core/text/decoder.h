// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/text/pattern.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// The "decoder" of a tokenizer.json: ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, BPEDecoder
/// and sequences of them. Others are refused by name. Bytes that are no UTF-8 stay what they are.
class Decoder {
public:
    Decoder() = default; ///< joins tokens with spaces, as the original does when a file has none
    static Decoder parse(const nlohmann::json& json, const std::filesystem::path& file); ///< null included
    static Decoder byte_level();

    /// Token texts, as in the vocabulary, to the text.
    [[nodiscard]] std::string decode(std::vector<std::string> tokens) const;
    /// One token alone, without what happens only at the ends of a text.
    [[nodiscard]] std::string decode_one(std::string_view token) const;

private:
    enum class Kind : std::uint8_t {
        byte_level,
        replace,
        byte_fallback,
        fuse,
        strip,
        metaspace,
        end_of_word
    };
    struct Step {
        Kind kind;
        std::optional<Pattern> pattern; // replace
        std::string text;               // replace: with; strip, metaspace: a character; end_of_word: a suffix
        std::size_t start = 0, stop = 0;
        bool keeps_first = false; // metaspace
    };
    void add(const nlohmann::json& json, const std::string& name, const std::filesystem::path& file);
    std::vector<std::string> run(std::vector<std::string> tokens, bool whole_text) const;
    std::vector<Step> steps_;
    bool present_ = false;
};

} // namespace ponderscope
