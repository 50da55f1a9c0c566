// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/report.h"

#include "app/cli/console.h"

namespace ponderscope::cli {

nlohmann::json json_of(const Estimate& estimate) {
    return {{"value", number_or_null(estimate.value)},
            {"low", number_or_null(estimate.low)},
            {"high", number_or_null(estimate.high)},
            {"detectable", number_or_null(estimate.detectable)}};
}

std::string interval(const Estimate& estimate, int decimals) {
    return fixed(estimate.value, decimals) + " [" + fixed(estimate.low, decimals) + ", " +
           fixed(estimate.high, decimals) + "]";
}

std::string padded(const std::string& text, std::size_t width) {
    return text + std::string(text.size() < width ? width - text.size() : 0, ' ');
}

std::string right(const std::string& text, std::size_t width) {
    return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

} // namespace ponderscope::cli
