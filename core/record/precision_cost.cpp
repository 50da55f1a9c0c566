// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/precision_cost.h"

#include "core/base/error.h"
#include "core/trace/windows.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string>

namespace ponderscope {

PrecisionCost precision_cost(const Engine& engine, const Engine& float32,
                             const std::vector<SequenceInput>& sequences, std::int64_t tokens,
                             const RecordOptions& options, const std::stop_token& stop) {
    const WindowShape shape = resolve_windows(engine.config(), options.context, options.stride);
    std::vector<Window> windows;
    std::int64_t left = tokens;
    for (std::size_t number = 0; number < sequences.size() && left > 0; ++number) {
        const std::span<const std::int32_t> ids = sequences[number].ids;
        const auto taken = std::min(left, static_cast<std::int64_t>(ids.size()));
        left -= taken;
        for (const WindowSpan& span : plan_windows(taken, shape.context, shape.stride)) {
            windows.push_back({ids.subspan(static_cast<std::size_t>(span.begin),
                                           static_cast<std::size_t>(span.end - span.begin)),
                               span.report_begin - span.begin, span.report_end - span.begin,
                               static_cast<std::int64_t>(number), span.begin, taken});
        }
    }
    PrecisionCost cost;
    const auto score = [&](const Engine& with, std::span<const Window> batch, double& seconds) {
        if (stop.stop_requested()) {
            throw Cancelled();
        }
        const auto begin = std::chrono::steady_clock::now();
        std::vector<WindowResult> results = with.score(batch, options.level);
        seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        return results;
    };
    const auto size = static_cast<std::size_t>(std::max<std::int64_t>(options.batch, 1));
    for (std::size_t first = 0; first < windows.size(); first += size) {
        const auto batch = std::span(windows).subspan(first, std::min(size, windows.size() - first));
        if (first == 0) {
            double warm_up = 0;
            (void)score(engine, batch, warm_up);
            (void)score(float32, batch, warm_up);
        }
        const std::vector<WindowResult> low = score(engine, batch, cost.seconds);
        const std::vector<WindowResult> high = score(float32, batch, cost.seconds_float32);
        for (std::size_t i = 0; i < low.size(); ++i) {
            for (std::size_t t = 0; t < low[i].tokens.nll.size(); ++t) {
                const double here = low[i].tokens.nll[t];
                const double there = high[i].tokens.nll[t];
                if (std::isnan(there)) {
                    continue; // no next token, or a model that computes none
                }
                ++cost.predictions;
                cost.mean_nll += here;
                cost.mean_nll_float32 += there;
                cost.mean_change += std::abs(here - there);
                cost.largest_change = std::max(cost.largest_change, std::abs(here - there));
            }
        }
    }
    if (cost.predictions == 0) {
        throw InputError("Nothing is predicted in the first " + std::to_string(tokens) +
                         " tokens of the text; compare more of them (--check N).");
    }
    for (double* const sum : {&cost.mean_nll, &cost.mean_nll_float32, &cost.mean_change}) {
        *sum /= static_cast<double>(cost.predictions);
    }
    return cost;
}

} // namespace ponderscope
