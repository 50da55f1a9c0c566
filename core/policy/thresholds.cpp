// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/thresholds.h"

#include "core/base/words.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

constexpr int written_digits = 5; ///< significant digits of the chosen thresholds

/// The numbers that a rule compares with its threshold.
struct Compared {
    std::vector<double> some; ///< of a sample of tokens, which is enough for a slider
    double low = std::numeric_limits<double>::infinity(); ///< of all tokens
    double high = -std::numeric_limits<double>::infinity();
};

Compared compared_in(const ReplayTable& table, const PolicyKind& kind) {
    const PolicySignal signal = kind.needs.front();
    constexpr std::size_t enough = 100'000;
    const std::int64_t steps = table.columns.max_steps();
    const std::size_t stride =
        table.tokens() * static_cast<std::size_t>(std::max<std::int64_t>(steps, 1)) / enough + 1;
    Compared found;
    for (std::int64_t k = kind.first_step; k < steps; ++k) {
        for (std::size_t i = 0; i < table.tokens(); ++i) {
            const double value = kind.compared != nullptr
                                     ? kind.compared(table.columns, i, table.places[i], k)
                                     : static_cast<double>(table.columns.column(signal, k)[i]);
            if (!std::isfinite(value)) {
                continue;
            }
            found.low = std::min(found.low, value);
            found.high = std::max(found.high, value);
            if (i % stride == 0 && k <= table.ran[i]) {
                found.some.push_back(value);
            }
        }
    }
    return found;
}

std::vector<double> quantiles_of(Compared compared, int most) {
    std::vector<double>& values = compared.some;
    std::sort(values.begin(), values.end());
    std::vector<double> chosen;
    for (int i = 0; i < most && !values.empty(); ++i) {
        const double at = static_cast<double>(values.size() - 1) * i / std::max(1, most - 1);
        chosen.push_back(values[static_cast<std::size_t>(at)]);
    }
    if (!chosen.empty()) {
        // Place the ends just beyond all values, even when written with five digits: at one end no token
        // stops, at the other every token.
        chosen.front() = compared.low - std::abs(compared.low) * 2e-4;
        chosen.back() = compared.high + std::max(std::abs(compared.high) * 2e-4, 1e-6);
    }
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
}

} // namespace

std::vector<double> threshold_values(const PolicyKind& kind, const ReplayTable& table, int most) {
    const PolicyContext& context = table.context;
    const std::int64_t steps = context.max_steps;
    std::vector<double> values;
    if (kind.parameters.empty()) {
        return values;
    }
    const PolicyParameter& parameter = kind.parameters.front();
    if (parameter.whole) {
        for (std::int64_t n = kind.needs.empty() ? 0 : 1; n <= steps; ++n) {
            values.push_back(static_cast<double>(n));
        }
    } else if (kind.needs.empty()) {
        for (int i = 0; i < most; ++i) {
            values.push_back(static_cast<double>(steps) * i / std::max(1, most - 1));
        }
    } else {
        values = quantiles_of(compared_in(table, kind), most);
    }
    for (double& value : values) {
        value = std::clamp(value, parameter.low, parameter.high);
        value = parse_number<double>(rounded(value, written_digits)).value_or(value);
    }
    if (kind.name == "learned" && std::isfinite(context.own_threshold)) {
        values.insert(std::upper_bound(values.begin(), values.end(), context.own_threshold),
                      context.own_threshold);
    }
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

PolicySpec policy_at(const PolicyKind& kind, double threshold) {
    if (kind.parameters.empty()) {
        return PolicySpec::parse(kind.name);
    }
    // Writing and parsing gives the same policy as the same text on the command line or in a trace.
    const std::string digits =
        kind.parameters.front().whole ? std::to_string(std::llround(threshold)) : shortest(threshold);
    return PolicySpec::parse(kind.with_keys(kind.parameters.front().key + "=" + digits));
}

} // namespace ponderscope
