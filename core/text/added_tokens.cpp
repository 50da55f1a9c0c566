// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/added_tokens.h"

#include "core/base/utf8.h"
#include "core/text/characters.h"

#include <algorithm>

namespace ponderscope {

namespace {

char32_t character_before(std::string_view text, std::size_t offset) {
    return utf8_at(text, utf8_boundary_before(text, offset - 1)).code;
}

} // namespace

std::uint32_t AddedTokenFinder::child(std::uint32_t node, unsigned char byte) const {
    const auto found = nodes_[node].next.find(byte);
    return found != nodes_[node].next.end() ? found->second : 0;
}

void AddedTokenFinder::add(std::string_view pattern, const AddedToken& token) {
    if (pattern.empty()) {
        return;
    }
    if (nodes_.empty()) {
        nodes_.emplace_back();
        starts_.assign(0x10000, false);
    }
    std::uint32_t node = 0;
    for (const char c : pattern) {
        const auto byte = static_cast<unsigned char>(c);
        std::uint32_t next = child(node, byte);
        if (next == 0) {
            next = static_cast<std::uint32_t>(nodes_.size());
            nodes_.emplace_back();
            nodes_[node].next.emplace(byte, next);
        }
        node = next;
    }
    if (nodes_[node].token >= 0) {
        return;
    }
    nodes_[node].token = static_cast<std::int32_t>(tokens_.size());
    tokens_.push_back(token);
    const auto first = static_cast<unsigned char>(pattern[0]);
    for (unsigned second = 0; second < 256; ++second) {
        if (pattern.size() == 1 || second == static_cast<unsigned char>(pattern[1])) {
            starts_[first * 256u + second] = true;
        }
    }
}

bool AddedTokenFinder::find(std::string_view text, std::size_t& from, std::size_t done, Part& part) const {
    if (tokens_.empty()) {
        return false;
    }
    for (std::size_t i = from; i < text.size(); ++i) {
        const auto first = static_cast<unsigned char>(text[i]);
        // The last byte may still be a token of one byte; the zero stands for any second one.
        const auto second = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
        if (!starts_[first * 256u + second]) {
            continue;
        }
        std::int32_t best = -1;
        std::size_t end = i;
        std::uint32_t node = 0;
        for (std::size_t k = i; k < text.size(); ++k) {
            node = child(node, static_cast<unsigned char>(text[k]));
            if (node == 0) {
                break;
            }
            if (nodes_[node].token >= 0) {
                best = nodes_[node].token;
                end = k + 1;
            }
        }
        if (best < 0) {
            continue;
        }
        const AddedToken& token = tokens_[static_cast<std::size_t>(best)];
        if (token.single_word && ((i > 0 && characters::is_word(character_before(text, i))) ||
                                  (end < text.size() && characters::is_word(utf8_at(text, end).code)))) {
            i = end - 1; // the original's search goes on behind it
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
