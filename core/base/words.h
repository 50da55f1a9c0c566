// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ponderscope {

/// "a, b, c": the elements of \p range, or \p text of each.
template <typename Range, typename Text = std::identity>
std::string joined(const Range& range, Text text = {}) {
    std::string all;
    const char* between = "";
    for (const auto& one : range) {
        all += between;
        all += std::invoke(text, one);
        between = ", ";
    }
    return all;
}

/// The fewest digits that read back as the same number; "inf", "-inf", "nan".
template <typename Number>
std::string shortest(Number value) {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// The number that is the whole of \p text; no value: other characters around the number, or out of the
/// type's range.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}
/// The same of a whole number from 0; -1 if there is none.
inline std::int64_t parse_count(std::string_view text) {
    const std::int64_t value = parse_number<std::int64_t>(text).value_or(-1);
    return value < 0 ? -1 : value;
}

/// At most this number of significant digits, as "%g" with a decimal point: a window's locale may have a
/// comma there.
std::string rounded(double value, int digits = 6);

/// The word of \p known that is nearest to \p word, by the fewest omitted, inserted, changed or swapped
/// letters; the first of equals. Empty if the distance is more than a third of the longer word and more than
/// two, unless the word (of three letters or more) is a prefix of the known one.
std::optional<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& known);

/// The end of a sentence about an unknown word: "; did you mean NEAREST?", or "." without a near word.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);
/// The same, with the known words if none is near or there are few.
std::string did_you_mean_or_list(std::string_view word, const std::vector<std::string_view>& known);

} // namespace ponderscope
