// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/added_tokens.h"

#include "core/base/utf8.h"
#include "core/text/characters.h"

#include <algorithm>
#include <iterator>

namespace ponderscope {

namespace {

char32_t character_before(std::string_view text, std::size_t offset) {
    return utf8_at(text, utf8_boundary_before(text, offset - 1)).code;
}

} // namespace

void AddedTokenFinder::add(std::string_view pattern, const AddedToken& token) {
    if (!pattern.empty()) {
        tokens_.emplace(pattern, token);
        first_bytes_.set(static_cast<unsigned char>(pattern.front()));
    }
}

const std::pair<const std::string, AddedToken>* AddedTokenFinder::longest_at(std::string_view text,
                                                                             bool with_special) const {
    for (auto next = tokens_.upper_bound(text); next != tokens_.begin();) {
        const auto& found = *std::prev(next);
        const std::string& pattern = found.first;
        const auto differs = std::mismatch(pattern.begin(), pattern.end(), text.begin(), text.end()).first;
        const bool begins = differs == pattern.end();
        if (begins && (with_special || !found.second.special)) {
            return &found;
        }
        // Only patterns up to this length can still begin the text.
        text = text.substr(0, static_cast<std::size_t>(differs - pattern.begin()) - (begins ? 1 : 0));
        next = tokens_.upper_bound(text);
    }
    return nullptr;
}

bool AddedTokenFinder::find(std::string_view text, std::size_t& from, std::size_t done, bool with_special,
                            Part& part) const {
    for (std::size_t i = from; i < text.size(); ++i) {
        if (!first_bytes_.test(static_cast<unsigned char>(text[i]))) {
            continue;
        }
        const auto* const found = longest_at(text.substr(i), with_special);
        if (found == nullptr) {
            continue;
        }
        const AddedToken& token = found->second;
        std::size_t end = i + found->first.size();
        if (token.single_word && ((i > 0 && characters::is_word(character_before(text, i))) ||
                                  (end < text.size() && characters::is_word(utf8_at(text, end).code)))) {
            i = end - 1; // the library tokenizers also continues after this match
            continue;
        }
        from = end;
        std::size_t begin = i;
        while (token.lstrip && begin > done && characters::is_white_space(character_before(text, begin))) {
            begin = utf8_boundary_before(text, begin - 1);
        }
        while (token.rstrip && end < text.size() && characters::is_white_space(utf8_at(text, end).code)) {
            end += utf8_at(text, end).bytes;
        }
        part = {std::max(begin, done), std::max(end, done), token.id};
        return true;
    }
    return false;
}

} // namespace ponderscope
