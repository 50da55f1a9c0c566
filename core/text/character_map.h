// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/normalized_text.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// SentencePiece's mapping of characters before it cuts a text, compiled into precompiled_charsmap: a
/// double-array tree (Darts) from byte sequences to places in a list of texts.
class CharacterMap {
public:
    /// \p base64: as it stands in a tokenizer.json. InputError names \p file.
    static CharacterMap parse(std::string_view base64, const std::filesystem::path& file);

    /// As the library tokenizers applies it: to whole grapheme clusters of less than six bytes, else to
    /// single characters.
    void apply(NormalizedText& text) const;

private:
    /// Replacement of the shortest mapped beginning of \p part; null: none.
    [[nodiscard]] const char* find(std::string_view part) const;

    std::vector<std::uint32_t> tree_;
    std::string texts_; ///< each ends with a zero byte
};

} // namespace ponderscope
