// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/words.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

namespace ponderscope::cli {

/// Checks that an option's number lies in a range, both ends included. All numeric options use it.
template <typename Number>
CLI::Validator number_from(Number low, Number high = std::numeric_limits<Number>::max(),
                           bool without_low = false) {
    std::string range = (without_low ? "above " : "from ") + shortest(low);
    range += high < std::numeric_limits<Number>::max()
                 ? (without_low ? ", at most " : " to ") + shortest(high)
             : without_low ? ""
                           : " on";
    return {[=](std::string& text) -> std::string {
                const auto value = parse_number<Number>(text);
                bool fits = value && *value >= low && *value <= high && !(without_low && *value == low);
                if constexpr (std::is_floating_point_v<Number>) {
                    fits = fits && std::isfinite(*value);
                }
                if (fits) {
                    text = shortest(*value); // replace the text by the parsed number: 010 is ten
                    return {};
                }
                return std::string("expected ") +
                       (std::is_integral_v<Number> ? "a whole number " : "a number ") + range + ", found " +
                       (text.empty() ? "nothing" : text.substr(0, 60)) + ".";
            },
            range};
}
/// Like number_from(), but \p low itself is outside the range.
inline CLI::Validator number_above(double low, double high = std::numeric_limits<double>::max()) {
    return number_from(low, high, true);
}

/// Adds an option for a number from \p low to \p high. The help shows the default if it lies in this range.
template <typename Number>
CLI::Option* add_number(CLI::App& app, const std::string& name, Number& value, const std::string& help,
                        std::type_identity_t<Number> low,
                        std::type_identity_t<Number> high = std::numeric_limits<Number>::max()) {
    CLI::Option* option = app.add_option(name, value, help)->check(number_from(low, high));
    return value >= low && value <= high ? option->capture_default_str() : option;
}

} // namespace ponderscope::cli
