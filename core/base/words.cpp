// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/words.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {

std::string rounded(double value, int digits) {
    std::array<char, 64> text{};
    return {
        text.data(),
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr};
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
