// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/summary.h"

#include "core/base/error.h"
#include "core/stats/correlation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

namespace ponderscope {
namespace {

/// A mean that is NaN without values.
struct Mean {
    double sum = 0;
    std::int64_t count = 0;
    void add(double value) {
        sum += value;
        ++count;
    }
    [[nodiscard]] double value() const {
        return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
    }
};

struct StepTotals {
    std::int64_t tokens = 0;
    Mean nll;
    Mean entropy;
};

} // namespace

RunStatistics run_statistics(const TraceReader& trace, const RunInfo& run, const ProgressSink& progress,
                             const std::stop_token& stop) {
    constexpr std::int64_t page = 1 << 16;
    RunStatistics result;
    Mean nll;
    Mean steps;
    Mean entropy;
    Mean flops;
    std::map<std::int64_t, StepTotals> by_steps;
    std::vector<double> losses;
    double bytes = 0;
    for (const SequenceInfo& sequence : trace.sequences(run.id)) {
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            const std::int64_t end = std::min(begin + page, sequence.tokens);
            const TokenColumns tokens = trace.tokens(run.id, sequence.index, begin, end + 1);
            for (std::size_t i = 0; i < static_cast<std::size_t>(end - begin); ++i) {
                StepTotals& row = by_steps[tokens.steps[i]];
                ++row.tokens;
                flops.add(static_cast<double>(tokens.flops[i]));
                if (!std::isnan(tokens.entropy[i])) {
                    entropy.add(tokens.entropy[i]);
                    row.entropy.add(tokens.entropy[i]);
                }
                if (!std::isnan(tokens.nll[i])) {
                    nll.add(tokens.nll[i]);
                    row.nll.add(tokens.nll[i]);
                    steps.add(tokens.steps[i]);
                    losses.push_back(tokens.nll[i]);
                    if (i + 1 < tokens.size()) {
                        bytes += static_cast<double>(tokens.end[i + 1] - tokens.begin[i + 1]);
                    }
                }
            }
            result.tokens += end - begin;
            if (progress) {
                progress({"reading", result.tokens, run.tokens, "tokens"});
            }
        }
    }
    result.scored_tokens = nll.count;
    result.mean_nll = nll.value();
    result.perplexity = std::exp(result.mean_nll);
    result.bits_per_byte =
        bytes > 0 ? nll.sum / bytes / std::numbers::ln2 : std::numeric_limits<double>::quiet_NaN();
    result.mean_steps = steps.value();
    result.mean_entropy = entropy.value();
    result.flops_per_token = flops.value();
    for (const auto& [count, row] : by_steps) {
        result.by_steps.push_back({count, row.tokens, row.nll.count, row.nll.value(), row.entropy.value()});
    }
    std::sort(losses.begin(), losses.end());
    for (const double q : {0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0}) {
        result.nll_quantiles.emplace_back(q, quantile_of_sorted(losses, q));
    }
    return result;
}

} // namespace ponderscope
