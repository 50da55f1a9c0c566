// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace ponderscope {

/// A token from "added_tokens" of a tokenizer.json. The tokenizer finds it in a text before all other steps.
struct AddedToken {
    std::string content;
    std::int32_t id = 0;
    bool special = false;
    bool normalized = true;   ///< searched in the normalised text
    bool lstrip = false;      ///< the match includes the white space before the token
    bool rstrip = false;      ///< the match includes the white space after the token
    bool single_word = false; ///< matches only without an adjacent letter, mark, digit or connector
};

/// Finds added tokens in a text. Chooses the leftmost match, and the longest of the matches at one position.
class AddedTokenFinder {
public:
    /// \p pattern: the bytes to find (the content, normalised or not). Ignores an empty pattern, and a
    /// pattern that was already added.
    void add(std::string_view pattern, const AddedToken& token);

    struct Part {
        std::size_t begin, end;
        std::int32_t id; ///< -1: text between tokens
    };
    /// Calls \p sink(Part) for all parts of \p text, in order. \p with_special: also find special tokens.
    template <class Sink>
    void split(std::string_view text, bool with_special, Sink&& sink) const {
        std::size_t from = 0; // where the search continues
        std::size_t done = 0;
        Part part{};
        while (find(text, from, done, with_special, part)) {
            if (done < part.begin) {
                sink(Part{done, part.begin, -1});
            }
            sink(part);
            done = part.end;
        }
        if (done < text.size()) {
            sink(Part{done, text.size(), -1});
        }
    }

private:
    bool find(std::string_view text, std::size_t& from, std::size_t done, bool with_special,
              Part& part) const;
    /// The token with the longest pattern at the beginning of \p text; nullptr: there is none.
    [[nodiscard]] const std::pair<const std::string, AddedToken>* longest_at(std::string_view text,
                                                                             bool with_special) const;

    std::map<std::string, AddedToken, std::less<>> tokens_; ///< by pattern
    std::bitset<256> first_bytes_;                          ///< the first byte of each pattern
};

} // namespace ponderscope
