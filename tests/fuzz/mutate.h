// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/splitmix.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ponderscope::testing {

/// Damages valid input in ways that parsers have fallen for: flipped bits, lying numbers, lost and doubled
/// parts. A function of the seed alone, so that a failure can be made again from its number.
class Mutator {
public:
    explicit Mutator(std::uint64_t seed) : seed_(seed) {}

    std::string operator()(std::string text) {
        const std::uint64_t times = 1 + draw(4);
        for (std::uint64_t i = 0; i < times && !text.empty(); ++i) {
            mutate(text);
        }
        return text;
    }

    /// In [0, bound).
    std::uint64_t draw(std::uint64_t bound) { return bounded(splitmix64(seed_, draws_++), bound); }

private:
    void mutate(std::string& text) {
        const std::size_t at = draw(text.size());
        const std::size_t length = 1 + draw(16);
        switch (draw(9)) {
        case 0:
            text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << draw(8)));
            break;
        case 1:
            text[at] = static_cast<char>(draw(256));
            break;
        case 2:
            text.resize(at);
            break;
        case 3:
            text.erase(at, length);
            break;
        case 4:
            text.insert(at, text.substr(draw(text.size()), length));
            break;
        case 5:
            text.insert(at, std::string(length, static_cast<char>(draw(256))));
            break;
        case 6:
            replace_number(text, at);
            break;
        case 7:
            text.insert(at, pieces[draw(pieces.size())]);
            break;
        default:
            std::swap(text[at], text[draw(text.size())]);
            break;
        }
    }

    /// The digits at or after \p at become a number that overflows something.
    void replace_number(std::string& text, std::size_t at) {
        const std::size_t begin = text.find_first_of("0123456789", at);
        if (begin == std::string::npos) {
            return;
        }
        const std::size_t end = text.find_first_not_of("0123456789", begin);
        text.replace(begin, (end == std::string::npos ? text.size() : end) - begin,
                     numbers[draw(numbers.size())]);
    }

    static constexpr std::array<std::string_view, 12> numbers{"0",
                                                              "1",
                                                              "-1",
                                                              "255",
                                                              "65536",
                                                              "4294967296",
                                                              "9223372036854775807",
                                                              "9223372036854775808",
                                                              "18446744073709551615",
                                                              "1e308",
                                                              "1e-400",
                                                              "0.5"};
    static constexpr std::array<std::string_view, 12> pieces{"[", "{", "}",       "]",    "\"",   "null",
                                                             ",", ":", "\\u0000", "\xC3", "true", "[[[[[[[["};

    std::uint64_t seed_;
    std::uint64_t draws_ = 0;
};

} // namespace ponderscope::testing
