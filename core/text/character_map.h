// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/normalized_text.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// SentencePiece's replacement of characters before a text is split (precompiled_charsmap). A double-array
/// tree (Darts) maps byte sequences to offsets in a list of texts.
class CharacterMap {
public:
    /// \p base64: the value in a tokenizer.json. InputError names \p file.
    static CharacterMap parse(std::string_view base64, const std::filesystem::path& file);

    /// Replaces whole grapheme clusters of less than six bytes, else single characters, as the library
    /// `tokenizers` does.
    void apply(NormalizedText& text) const;

private:
    /// The replacement for the shortest mapped prefix of \p part; null: none.
    [[nodiscard]] const char* find(std::string_view part) const;

    std::vector<std::uint32_t> tree_;
    std::string texts_; ///< each ends with a zero byte
};

} // namespace ponderscope
