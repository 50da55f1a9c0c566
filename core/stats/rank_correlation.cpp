// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/rank_correlation.h"

#include "core/base/error.h"
#include "core/stats/byte_alignment.h"
#include "core/stats/correlation.h"
#include "core/stats/paired.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

/// Scored tokens of a run.
struct Scored {
    std::vector<double> steps, nll, entropy;
    TokenLayout layout;
};

/// \p what, \p remedy: of the sentence where nothing is kept.
template <typename Keep>
Scored read_scored(const TraceReader& trace, const RunInfo& run, const std::stop_token& stop, Keep keep,
                   const std::string& what = "scored tokens",
                   const std::string& remedy = "let the recording get further") {
    constexpr std::int64_t page = 1 << 16;
    Scored scored;
    ClusterNumbers clusters;
    for (const SequenceInfo& sequence : trace.sequences(run.id)) {
        std::int64_t last = -2;
        std::int64_t cluster = -1;
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            const TokenColumns tokens = trace.tokens(run.id, sequence.index, begin, begin + page);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                const std::int64_t position = begin + static_cast<std::int64_t>(i);
                if (std::isnan(tokens.nll[i]) || !keep(sequence.index, position)) {
                    continue;
                }
                cluster = cluster < 0 ? clusters.of(sequence) : cluster;
                scored.layout.add(cluster, last + 1 == position);
                last = position;
                scored.steps.push_back(tokens.steps[i]);
                scored.nll.push_back(static_cast<double>(tokens.nll[i]));
                scored.entropy.push_back(static_cast<double>(tokens.entropy[i]));
            }
        }
    }
    if (scored.steps.empty()) {
        throw InputError(trace.path().string() + "#" + run.name + ": expected " + what + ", found none; " +
                         remedy + ".");
    }
    return scored;
}

} // namespace

Estimate spearman_with_interval(std::span<const double> a, std::span<const double> b,
                                const TokenLayout& layout, const BootstrapOptions& options) {
    if (a.size() != b.size()) {
        throw InputError("expected two samples of one length, found " + std::to_string(a.size()) + " and " +
                         std::to_string(b.size()) + " values.");
    }
    if (a.empty()) {
        constexpr double nan = std::numeric_limits<double>::quiet_NaN();
        return {nan, nan, nan, nan};
    }
    const std::vector<double> ranks_a = average_ranks(a);
    const std::vector<double> ranks_b = average_ranks(b);
    // Centred and scaled, so that little cancels.
    const auto n = static_cast<double>(a.size());
    constexpr std::size_t width = 5;
    std::vector<double> columns(a.size() * width);
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double x = (ranks_a[i] - (n + 1) / 2) / n;
        const double y = (ranks_b[i] - (n + 1) / 2) / n;
        const double row[width] = {x, y, x * x, y * y, x * y};
        std::copy(std::begin(row), std::end(row), columns.begin() + static_cast<std::ptrdiff_t>(i * width));
    }
    const Statistic rho = [](std::span<const double> s, std::int64_t tokens) {
        const auto count = static_cast<double>(tokens);
        const double xx = s[2] - s[0] * s[0] / count;
        const double yy = s[3] - s[1] * s[1] / count;
        const double xy = s[4] - s[0] * s[1] / count;
        constexpr double least = 1e-12; // a variance of rounding errors is none
        return xx > least * s[2] && yy > least * s[3]
                   ? std::clamp(xy / std::sqrt(xx) / std::sqrt(yy), -1.0, 1.0)
                   : std::numeric_limits<double>::quiet_NaN();
    };
    return bootstrap(PrefixSums(columns, width, layout), std::span(&rho, 1), options).front();
}

std::vector<StepsCorrelation> correlate_steps(const TraceReader& trace, const RunInfo& run,
                                              const BootstrapOptions& options) {
    const Scored scored =
        read_scored(trace, run, options.stop, [](std::int64_t, std::int64_t) { return true; });
    const auto count = static_cast<std::int64_t>(scored.steps.size());
    std::vector<StepsCorrelation> result;
    result.push_back(
        {"NLL", count, spearman_with_interval(scored.steps, scored.nll, scored.layout, options)});
    if (std::none_of(scored.entropy.begin(), scored.entropy.end(), [](double h) { return std::isnan(h); })) {
        result.push_back(
            {"entropy", count, spearman_with_interval(scored.steps, scored.entropy, scored.layout, options)});
    }
    return result;
}

StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run, const TraceReader& other_trace,
                                 const RunInfo& other, const BootstrapOptions& options) {
    if (run.tokenizer_digest != other.tokenizer_digest && run.text_digest == other.text_digest) {
        const AlignedSteps aligned = align_steps_by_bytes(trace, run, other_trace, other, options.stop);
        return {"NLL of " + other.name + ", by bytes", static_cast<std::int64_t>(aligned.steps.size()),
                spearman_with_interval(aligned.steps, aligned.nll, aligned.layout, options)};
    }
    const PairedSample sample = pair_runs(trace, run, other_trace, other, options.progress, options.stop);
    // The same tokens once more, for their steps.
    std::vector<std::vector<bool>> theirs;
    for (const SequenceInfo& sequence : other_trace.sequences(other.id)) {
        const TokenColumns tokens = other_trace.tokens(other.id, sequence.index);
        theirs.emplace_back();
        for (const float nll : tokens.nll) {
            theirs.back().push_back(!std::isnan(nll));
        }
    }
    const Scored scored =
        read_scored(trace, run, options.stop, [&](std::int64_t sequence, std::int64_t position) {
            const auto s = static_cast<std::size_t>(sequence);
            const auto t = static_cast<std::size_t>(position);
            return s < theirs.size() && t < theirs[s].size() && theirs[s][t];
        });
    return {"NLL of " + other.name, static_cast<std::int64_t>(scored.steps.size()),
            spearman_with_interval(scored.steps, sample.b, sample.layout, options)};
}

StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run,
                                 const AnnotationReader& annotations, const AnnotationInfo& annotation,
                                 LabelPlace place, const BootstrapOptions& options) {
    std::vector<std::vector<double>> values; // [sequence][token]
    for (const SequenceInfo& sequence : trace.sequences(run.id)) {
        values.push_back(annotations.values(annotation, sequence.index, 0, sequence.tokens));
    }
    std::vector<double> theirs;
    const Scored scored = read_scored(
        trace, run, options.stop,
        [&](std::int64_t sequence, std::int64_t position) {
            const std::vector<double>& of = values[static_cast<std::size_t>(sequence)];
            const auto meant = static_cast<std::size_t>(position) + (place == LabelPlace::prediction ? 1 : 0);
            const bool has = meant < of.size() && !std::isnan(of[meant]);
            if (has) {
                theirs.push_back(of[meant]);
            }
            return has;
        },
        "scored tokens with a number of annotation \"" + annotation.name + "\"",
        "annotate tokens that have a next one, or take the numbers of the tokens themselves with --label-of "
        "token");
    return {annotation.name, static_cast<std::int64_t>(theirs.size()),
            spearman_with_interval(scored.steps, theirs, scored.layout, options)};
}

} // namespace ponderscope
