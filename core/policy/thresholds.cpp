// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/thresholds.h"

#include "core/base/words.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace ponderscope {
namespace {

constexpr int written_digits = 5; ///< of thresholds that are chosen here

/// Of what a rule compares with its threshold.
struct Compared {
    std::vector<double> some; ///< a sample: a threshold is a place on a slider, not a statistic
    double low = std::numeric_limits<double>::infinity(); ///< of all
    double high = -std::numeric_limits<double>::infinity();

    void add(const Compared& more) {
        some.insert(some.end(), more.some.begin(), more.some.end());
        low = std::min(low, more.low);
        high = std::max(high, more.high);
    }
};

/// Every how many tokens of a run the sample has one.
std::size_t stride_of(std::size_t tokens, std::int64_t steps) {
    constexpr std::size_t enough = 100'000;
    return tokens * static_cast<std::size_t>(std::max<std::int64_t>(steps, 1)) / enough + 1;
}

/// \p before: tokens of the run before those of the table.
Compared compared_in(const ReplayTable& table, const PolicyKind& kind, std::size_t before,
                     std::size_t stride) {
    const PolicySignal signal = kind.needs.front();
    Compared found;
    for (std::int64_t k = kind.first_step; k < table.columns.max_steps(); ++k) {
        for (std::size_t i = 0; i < table.tokens(); ++i) {
            const double value = kind.compared != nullptr
                                     ? kind.compared(table.columns, i, table.places[i], k)
                                     : static_cast<double>(table.columns.column(signal, k)[i]);
            if (!std::isfinite(value)) {
                continue;
            }
            found.low = std::min(found.low, value);
            found.high = std::max(found.high, value);
            if ((before + i) % stride == 0 && k <= table.ran[i]) {
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
        // Just beyond both ends of all values, the five digits that are written included: nobody stops,
        // everybody stops.
        chosen.front() = compared.low - std::abs(compared.low) * 2e-4;
        chosen.back() = compared.high + std::max(std::abs(compared.high) * 2e-4, 1e-6);
    }
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
}

/// \p compared: asked only where there is something to compare.
std::vector<double> values_of(const PolicyKind& kind, const PolicyContext& context, int most,
                              const std::function<Compared()>& compared) {
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
        values = quantiles_of(compared(), most);
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

} // namespace

std::vector<double> threshold_values(const PolicyKind& kind, const ReplayScan& scan, int most) {
    return values_of(kind, scan.about().context, most, [&] {
        const std::vector<std::size_t> before = scan.tokens_before();
        const std::size_t stride = stride_of(before.back(), scan.about().columns.max_steps());
        Compared all;
        scan.each([&](const ReplayTable& table, std::size_t first) {
            return [&all, part = compared_in(table, kind, before[first], stride)] { all.add(part); };
        });
        return all;
    });
}

PolicySpec policy_at(const PolicyKind& kind, double threshold) {
    if (kind.parameters.empty()) {
        return PolicySpec::parse(kind.name);
    }
    // Written and parsed: one road for what is typed, recorded and slid.
    const std::string digits =
        kind.parameters.front().whole ? std::to_string(std::llround(threshold)) : shortest(threshold);
    return PolicySpec::parse(kind.with_keys(kind.parameters.front().key + "=" + digits));
}

} // namespace ponderscope
