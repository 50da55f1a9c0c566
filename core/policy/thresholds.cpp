// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/thresholds.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ponderscope {
namespace {

/// Of what the rule compares with its threshold.
std::vector<double> quantiles_of(const ReplayTable& table, const PolicyKind& kind, int most) {
    const PolicySignal signal = kind.needs.front();
    const auto compared = [&](std::int64_t k, std::size_t i) {
        return kind.compared != nullptr ? kind.compared(table.columns, i, table.places[i], k)
                                        : static_cast<double>(table.columns.column(signal, k)[i]);
    };
    // A sample: a threshold is a place on a slider, not a statistic.
    constexpr std::size_t enough = 100'000;
    std::vector<double> values;
    const std::int64_t steps = table.columns.max_steps();
    const std::size_t stride =
        table.tokens() * static_cast<std::size_t>(std::max<std::int64_t>(steps, 1)) / enough + 1;
    for (std::int64_t k = 0; k < steps; ++k) {
        for (std::size_t i = 0; i < table.tokens(); i += stride) {
            const double value = compared(k, i);
            if (std::isfinite(value) && k <= table.ran[i]) {
                values.push_back(value);
            }
        }
    }
    std::sort(values.begin(), values.end());
    std::vector<double> chosen;
    for (int i = 0; i < most && !values.empty(); ++i) {
        const double at = static_cast<double>(values.size() - 1) * i / std::max(1, most - 1);
        chosen.push_back(values[static_cast<std::size_t>(at)]);
    }
    if (!chosen.empty()) {
        // Just beyond both ends of all values, the five digits that are written included: nobody stops,
        // everybody stops.
        double low = chosen.front();
        double high = chosen.back();
        for (std::int64_t k = 0; k < steps; ++k) {
            for (std::size_t i = 0; i < table.tokens(); ++i) {
                const double value = compared(k, i);
                if (std::isfinite(value)) {
                    low = std::min(low, value);
                    high = std::max(high, value);
                }
            }
        }
        chosen.front() = low - std::abs(low) * 2e-4;
        chosen.back() = high + std::max(std::abs(high) * 2e-4, 1e-6);
    }
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
}

} // namespace

std::vector<double> threshold_values(const PolicyKind& kind, const ReplayTable& table, int most) {
    std::vector<double> values;
    if (kind.parameters.empty()) {
        return values;
    }
    const PolicyParameter& parameter = kind.parameters.front();
    const std::int64_t steps = table.columns.max_steps();
    if (parameter.whole) {
        for (std::int64_t n = kind.needs.empty() ? 0 : 1; n <= steps; ++n) {
            values.push_back(static_cast<double>(n));
        }
    } else if (kind.needs.empty()) {
        for (int i = 0; i < most; ++i) {
            values.push_back(static_cast<double>(steps) * i / std::max(1, most - 1));
        }
    } else {
        values = quantiles_of(table, kind, most);
    }
    for (double& value : values) {
        value = std::clamp(value, parameter.low, parameter.high);
    }
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

PolicySpec policy_at(const PolicyKind& kind, double threshold) {
    if (kind.parameters.empty()) {
        return PolicySpec::parse(kind.name);
    }
    // Written and parsed: one road for what is typed, recorded and slid.
    char digits[64];
    if (kind.parameters.front().whole) {
        std::snprintf(digits, sizeof digits, "%lld", std::llround(threshold));
    } else {
        std::snprintf(digits, sizeof digits, "%.5g", threshold);
    }
    return PolicySpec::parse(kind.name + ":" + kind.parameters.front().key + "=" + digits);
}

} // namespace ponderscope
