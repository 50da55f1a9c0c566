// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/text/character_map.h"
#include "core/text/normalized_text.h"
#include "core/text/pattern.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ponderscope {

/// The "normalizer" of a tokenizer.json: NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend,
/// Replace, Precompiled and sequences of them. Others are refused by name.
class Normalizer {
public:
    Normalizer() = default; ///< changes nothing
    /// \p json: the value of "normalizer", null included. InputError.
    static Normalizer parse(const nlohmann::json& json, const std::filesystem::path& file);
    /// NFC alone, for tokenizers without a tokenizer.json.
    static Normalizer nfc();

    void apply(NormalizedText& text, MatchState& state) const;

private:
    enum class Kind : std::uint8_t {
        nfc,
        nfd,
        nfkc,
        nfkd,
        lower_case,
        strip_accents,
        strip,
        prepend,
        replace,
        precompiled
    };
    struct Step {
        Kind kind;
        std::string text;               // prepend, replace: what is put in
        std::optional<Pattern> pattern; // replace
        bool left = false, right = false;
        std::shared_ptr<const CharacterMap> map = nullptr; // precompiled
    };
    void add(const nlohmann::json& json, const std::string& name, const std::filesystem::path& file);
    std::vector<Step> steps_;
};

} // namespace ponderscope
