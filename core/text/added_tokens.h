// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// A token from "added_tokens" of a tokenizer.json. The tokenizer finds it in a text before all other steps.
struct AddedToken {
    std::string content;
    std::int32_t id = 0;
    bool special = false;
    bool normalized = true;   ///< searched in the normalised text
    bool lstrip = false;      ///< includes the white space before it
    bool rstrip = false;      ///< includes the white space after it
    bool single_word = false; ///< matches only without an adjacent letter, mark, digit or connector
};

/// Finds added tokens in a text. The leftmost match wins, and of matches at one position the longest.
class AddedTokenFinder {
public:
    /// \p pattern: the bytes to find (the content, normalised or not). Empty patterns are ignored; of equal
    /// patterns the first counts.
    void add(std::string_view pattern, const AddedToken& token);
    [[nodiscard]] bool empty() const { return tokens_.empty(); }

    struct Part {
        std::size_t begin, end;
        std::int32_t id; ///< -1: text between tokens
    };
    /// Calls \p sink(Part) for all parts of \p text, in order.
    template <class Sink>
    void split(std::string_view text, Sink&& sink) const {
        std::size_t from = 0; // where the search continues
        std::size_t done = 0;
        Part part{};
        while (find(text, from, done, part)) {
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
    struct Node {
        std::map<unsigned char, std::uint32_t> next;
        std::int32_t token = -1; // index
    };
    bool find(std::string_view text, std::size_t& from, std::size_t done, Part& part) const;
    [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned char byte) const;

    std::vector<AddedToken> tokens_;
    std::vector<Node> nodes_;
    std::vector<bool> starts_; // by the first two bytes: first * 256 + second
};

} // namespace ponderscope
