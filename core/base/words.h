// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ponderscope {

/// Joins the elements of \p range: "a, b, c". Lists at most \p most elements and counts the rest: "a, b, c
/// and 4 more". \p text converts an element to text.
template <typename Range, typename Text = std::identity>
std::string joined(const Range& range, Text text = {},
                   std::size_t most = std::numeric_limits<std::size_t>::max()) {
    std::string all;
    std::size_t count = 0;
    for (const auto& one : range) {
        if (count++ < most) {
            all += count > 1 ? ", " : "";
            all += std::invoke(text, one);
        }
    }
    return count > most ? all + " and " + std::to_string(count - most) + " more" : all;
}

/// The parts of \p text between separators: at least one part, which may be empty.
std::vector<std::string_view> split_at(std::string_view text, char separator);

/// The fewest digits that read back as the same number; "inf", "-inf", "nan".
template <typename Number>
std::string shortest(Number value) {
    std::array<char, 32> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// The number in \p text. No value: \p text is not only a number, or the number is out of the type's range.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}
/// The whole number in \p text, at least 0. -1: \p text is not such a number.
inline std::int64_t parse_count(std::string_view text) {
    const std::int64_t value = parse_number<std::int64_t>(text).value_or(-1);
    return value < 0 ? -1 : value;
}

/// The number as "%g" with \p digits significant digits. The decimal sign is "." in every locale.
std::string rounded(double value, int digits = 6);

/// The word of \p known with the smallest edit distance to \p word (omitted, inserted, changed or swapped
/// letters). Of equally near words, the first. No value if the distance exceeds 2 and also exceeds a third of
/// the longer word's length. If \p word has three letters or more, a known word that begins with \p word also
/// matches.
std::optional<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& known);

/// The end of a message about an unknown word: "; did you mean NEAREST?", or "." if no known word is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);
/// Like did_you_mean(), but lists the known words if no word is near or the list is short.
std::string did_you_mean_or_list(std::string_view word, const std::vector<std::string_view>& known);

} // namespace ponderscope

/// Numbers as text for terminals and files, with a decimal point in every locale.
namespace ponderscope::plain_text {

std::string with_separators(std::int64_t value); ///< "1,234,567"
std::string fixed(double value, int decimals);   ///< "NaN" for NaN
std::string human_count(double value);           ///< "8.85 M", powers of 1000
std::string human_bytes(double bytes);           ///< "8.9 MB", powers of 1000

} // namespace ponderscope::plain_text
