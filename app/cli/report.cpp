// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/report.h"

#include "app/cli/console.h"

#include <cmath>

namespace ponderscope::cli {

nlohmann::json number(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json json_of(const Estimate& estimate) {
    return {{"value", number(estimate.value)},
            {"low", number(estimate.low)},
            {"high", number(estimate.high)},
            {"detectable", number(estimate.detectable)}};
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
