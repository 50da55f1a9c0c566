// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/agreement.h"

#include "core/base/error.h"
#include "core/policy/scored_rows.h"
#include "core/stats/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ponderscope {

Agreement agreement_of(const ReplayTable& table, std::span<const std::int32_t> replay_steps,
                       std::span<const float> replay_nll, std::span<const std::int32_t> rerun_steps,
                       std::span<const float> rerun_nll, const BootstrapOptions& options) {
    const std::span<const float> both[] = {replay_nll, rerun_nll};
    const ScoredRows scored(table, both);
    if (scored.tokens().empty()) {
        throw InputError(table.run + ": expected tokens that replay and rerun both scored, found none.");
    }
    Agreement result;
    result.tokens = static_cast<std::int64_t>(scored.tokens().size());
    constexpr std::size_t width = 3;
    std::vector<double> columns, differences;
    std::map<std::int32_t, std::int64_t> counts;
    for (const std::size_t row : scored.tokens()) {
        const std::int32_t steps = rerun_steps[row] - replay_steps[row];
        const double nll = static_cast<double>(rerun_nll[row]) - static_cast<double>(replay_nll[row]);
        columns.insert(columns.end(), {nll, static_cast<double>(steps), steps == 0 ? 1.0 : 0.0});
        differences.push_back(nll);
        ++counts[steps];
    }
    const std::span<const double> series[] = {differences};
    result.resampling = scored.layout().resampling(series, options);
    std::vector<Statistic> statistics;
    for (std::size_t column = 0; column < width; ++column) {
        statistics.emplace_back([column](std::span<const double> sums, std::int64_t tokens) {
            return sums[column] / static_cast<double>(tokens);
        });
    }
    const std::vector<Estimate> estimates = bootstrap(scored.layout().sums(std::move(columns), width),
                                                      statistics, result.resampling.apply(options));
    result.nll = estimates[0];
    result.steps = estimates[1];
    result.equal_steps = estimates[2];
    result.step_differences.assign(counts.begin(), counts.end());
    std::sort(differences.begin(), differences.end());
    for (const double q : {0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0}) {
        result.nll_quantiles.emplace_back(q, quantile_of_sorted(differences, q));
    }
    return result;
}

} // namespace ponderscope
