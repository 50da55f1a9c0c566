// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/character_map.h"

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/base/utf8.h"

#include <utf8proc.h>

#include <cstring>

namespace ponderscope {
namespace {

// The fields of a unit of the tree.
constexpr bool unit_has_leaf(std::uint32_t unit) {
    return (unit >> 8 & 1) != 0;
}
constexpr std::uint32_t unit_value(std::uint32_t unit) {
    return unit & 0x7FFFFFFFu;
}
constexpr std::uint32_t unit_label(std::uint32_t unit) {
    return unit & 0x800000FFu;
}
constexpr std::uint32_t unit_offset(std::uint32_t unit) {
    return unit >> 10 << ((unit & (1u << 9)) >> 6);
}

} // namespace

CharacterMap CharacterMap::parse(std::string_view base64, const std::filesystem::path& file) {
    const std::string bytes = from_base64(base64);
    std::uint32_t tree_bytes = 0;
    if (bytes.size() >= sizeof tree_bytes) {
        std::memcpy(&tree_bytes, bytes.data(), sizeof tree_bytes);
    }
    if (tree_bytes == 0 || tree_bytes % 4 != 0 || tree_bytes > bytes.size() - sizeof tree_bytes) {
        throw InputError(ErrorId::tokenizer_file, file, "a precompiled_charsmap of SentencePiece",
                         "a damaged precompiled_charsmap", "take the tokenizer file from its source again");
    }
    CharacterMap map;
    map.tree_.resize(tree_bytes / 4);
    std::memcpy(map.tree_.data(), bytes.data() + sizeof tree_bytes, tree_bytes);
    map.texts_ = bytes.substr(sizeof tree_bytes + tree_bytes);
    map.texts_ += '\0';
    if (!is_valid_utf8(map.texts_)) {
        throw InputError(ErrorId::tokenizer_file, file, "a precompiled_charsmap of UTF-8 texts",
                         "bytes that are not UTF-8", "take the tokenizer file from its source again");
    }
    return map;
}

const char* CharacterMap::find(std::string_view part) const {
    std::uint32_t at = unit_offset(tree_[0]);
    for (const char c : part) {
        const auto byte = static_cast<unsigned char>(c);
        at ^= byte;
        if (byte == 0 || at >= tree_.size() || unit_label(tree_[at]) != byte) {
            return nullptr;
        }
        const std::uint32_t unit = tree_[at];
        at ^= unit_offset(unit);
        if (unit_has_leaf(unit)) {
            const std::uint32_t place = at < tree_.size() ? unit_value(tree_[at]) : ~0u;
            return place < texts_.size() ? texts_.data() + place : nullptr;
        }
    }
    return nullptr;
}

void CharacterMap::apply(NormalizedText& text) const {
    Rewriter rewriter(text);
    const std::string_view in = rewriter.input();
    constexpr std::size_t longest_cluster = 6;
    for (std::size_t begin = 0; begin < in.size();) {
        // Find the end of the grapheme cluster that begins here.
        Utf8Character last = utf8_at(in, begin);
        std::size_t end = begin + last.bytes;
        utf8proc_int32_t state = 0;
        while (end < in.size()) {
            const Utf8Character next = utf8_at(in, end);
            if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code),
                                                 static_cast<utf8proc_int32_t>(next.code), &state)) {
                break;
            }
            end += next.bytes;
            last = next;
        }
        const char* const whole =
            end - begin < longest_cluster ? find(in.substr(begin, end - begin)) : nullptr;
        if (whole != nullptr) {
            rewriter.replace(end - begin, whole);
            begin = end;
        }
        while (begin < end) {
            const std::size_t bytes = utf8_at(in, begin).bytes;
            if (const char* const one = find(in.substr(begin, bytes))) {
                rewriter.replace(bytes, one);
            } else {
                rewriter.keep(bytes);
            }
            begin += bytes;
        }
    }
    rewriter.finish();
}

} // namespace ponderscope
