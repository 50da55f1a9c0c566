// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/words.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {

std::vector<std::string_view> split_at(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= text.size(); begin += parts.back().size() + 1) {
        parts.push_back(text.substr(begin, text.find(separator, begin) - begin));
    }
    return parts;
}

std::string rounded(double value, int digits) {
    std::array<char, 64> text{};
    return {
        text.data(),
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr};
}

std::optional<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& known) {
    std::optional<std::string_view> best;
    std::size_t best_distance = std::numeric_limits<std::size_t>::max();
    for (const auto candidate : known) {
        // Optimal string alignment. Swaps of adjacent letters need the last three rows of the table.
        const std::size_t columns = candidate.size() + 1;
        std::vector<std::size_t> before(columns);
        std::vector<std::size_t> last(columns);
        std::vector<std::size_t> row(columns);
        for (std::size_t j = 0; j < columns; ++j) {
            last[j] = j;
        }
        for (std::size_t i = 1; i <= word.size(); ++i) {
            row[0] = i;
            for (std::size_t j = 1; j < columns; ++j) {
                const bool equal = word[i - 1] == candidate[j - 1];
                row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (equal ? 0U : 1U)});
                if (i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1]) {
                    row[j] = std::min(row[j], before[j - 2] + 1);
                }
            }
            std::swap(before, last);
            std::swap(last, row);
        }
        const std::size_t most = std::max<std::size_t>(2, std::max(word.size(), candidate.size()) / 3);
        const bool begins = word.size() >= 3 && candidate.starts_with(word);
        if ((last.back() <= most || begins) && last.back() < best_distance) {
            best_distance = last.back();
            best = candidate;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
    const auto near = nearest(word.substr(0, 60), known); // bounds the time for a long word
    return near ? "; did you mean " + std::string(*near) + "?" : ".";
}

std::string did_you_mean_or_list(std::string_view word, const std::vector<std::string_view>& known) {
    constexpr std::size_t few = 10;
    const std::string end = did_you_mean(word, known);
    return known.size() > few && end != "." ? end : end + " Known are " + joined(known) + ".";
}

} // namespace ponderscope

namespace ponderscope::plain_text {

std::string with_separators(std::int64_t value) {
    std::string digits = std::to_string(value);
    const std::ptrdiff_t sign = value < 0 ? 1 : 0;
    for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > sign; at -= 3) {
        digits.insert(static_cast<std::size_t>(at), ",");
    }
    return digits;
}

std::string fixed(double value, int decimals) {
    if (std::isnan(value)) {
        return "NaN";
    }
    std::array<char, 400> buffer{};
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                            std::chars_format::fixed, decimals);
    return error == std::errc() ? std::string(buffer.data(), end) : std::string("?");
}

std::string human_count(double value) {
    constexpr std::array<const char*, 6> prefixes{"", "k", "M", "G", "T", "P"};
    std::size_t prefix = 0;
    while (value >= 1000 && prefix + 1 < prefixes.size()) {
        value /= 1000;
        ++prefix;
    }
    return fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : 2) + " " + prefixes[prefix];
}

std::string human_bytes(double bytes) {
    constexpr std::array<const char*, 5> units{"B", "kB", "MB", "GB", "TB"};
    std::size_t unit = 0;
    while (bytes >= 1000 && unit + 1 < units.size()) {
        bytes /= 1000;
        ++unit;
    }
    return fixed(bytes, unit == 0 || bytes >= 100 ? 0 : 1) + " " + units[unit];
}

} // namespace ponderscope::plain_text
