// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/seeds.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/base/splitmix.h"
#include "core/stats/paired.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

std::string named(const SeedRun& seed) {
    return seed.trace->short_name_of(seed.run);
}

Moments moments_of(std::span<const double> values) {
    Moments moments;
    for (const double value : values) {
        moments.add(value);
    }
    return moments;
}

/// Parts of the variance of a difference, each with its degrees of freedom.
struct Parts {
    double variance = 0;
    double weighted = 0; ///< Σ part² / degrees

    void add(double part, double degrees) {
        variance += part;
        weighted += degrees > 0 ? part * part / degrees : 0;
    }
    [[nodiscard]] double degrees() const {
        return weighted > 0 ? variance * variance / weighted : std::numeric_limits<double>::infinity();
    }
};

/// How the runs of one side differ.
struct SeedSpread {
    std::int64_t runs = 0;
    double between = 0; ///< variance of the runs' means, without the part that comes from the tokens
    double error = 0;   ///< standard error of the mean over runs, with clusters or blocks as units
};

constexpr std::int64_t few_seeds = 5;

/// A part of the runs' variance comes from the tokens and is already in the text's variance. Estimates this
/// part (from runs minus the mean run) and subtracts it. \p column(s): sums of run s by unit.
template <class Column>
SeedSpread spread_of(const UnitSums& units, const Moments& runs, const Column& column) {
    const double variance = runs.count > 1 ? runs.variance() : 0;
    std::vector<std::vector<double>> by_unit(static_cast<std::size_t>(runs.count));
    std::vector<double> middle(units.units());
    for (std::size_t s = 0; s < by_unit.size(); ++s) {
        by_unit[s] = column(s);
        for (std::size_t u = 0; u < middle.size(); ++u) {
            middle[u] += by_unit[s][u] / static_cast<double>(runs.count);
        }
    }
    double of_tokens = 0;
    for (std::vector<double>& sum : by_unit) {
        for (std::size_t u = 0; u < sum.size(); ++u) {
            sum[u] -= middle[u];
        }
        const double error = unit_mean(sum, units.tokens).standard_error;
        of_tokens += error * error / static_cast<double>(std::max<std::int64_t>(1, runs.count - 1));
    }
    return {runs.count, std::isnan(of_tokens) ? variance : std::max(0.0, variance - of_tokens),
            unit_mean(middle, units.tokens).standard_error};
}

/// The interval of \p value from its replicates \p drawn. Adds the parts of its variance to \p parts: that of
/// the text (\p error squared), and those of \p runs.
Estimate estimate(double value, std::vector<double> drawn, double error,
                  std::initializer_list<const SeedSpread*> runs, double units,
                  const BootstrapOptions& options, Parts& parts) {
    parts.add(error * error, units - 1);
    bool few = false;
    for (const SeedSpread* one : runs) {
        if (one->runs > 1) {
            const auto n = static_cast<double>(one->runs);
            parts.add(one->between / n, n - 1);
            few = few || one->runs < few_seeds;
        }
    }
    const double shown = moments_of(drawn).variance();
    const bool enough = units >= 2; // otherwise the part of the text is unknown
    const SmallSample small = enough && shown > 0 ? SmallSample{parts.variance / shown, parts.degrees()}
                                                  : SmallSample::of_units(units);
    Estimate found = interval_of(value, std::move(drawn), small, options);
    if (enough && few) { // few runs give few different replicates
        found.standard_error = std::sqrt(parts.variance);
        const double out = student_quantile((1 + options.level) / 2, parts.degrees()) * found.standard_error;
        found.low = value - out;
        found.high = value + out;
    }
    return found;
}

} // namespace

SeedSample read_seeds(const std::vector<SeedRun>& a, const std::vector<SeedRun>& b,
                      const ProgressSink& progress, const std::stop_token& stop) {
    if (a.empty() || b.empty()) {
        throw InputError(ErrorId::usage_missing,
                         "expected at least one run of each method, found " + std::to_string(a.size()) +
                             " and " + std::to_string(b.size()) + "; name runs of both methods.");
    }
    SeedSample sample;
    const SeedRun& first = a.front();
    for (const bool of_a : {true, false}) {
        for (const SeedRun& seed : of_a ? a : b) {
            // The first run is also paired with itself, which checks the run and reads its tokens.
            PairedSample pair = pair_runs(*first.trace, first.run, *seed.trace, seed.run, {progress, stop});
            if (pair.only_a > 0 || pair.only_b > 0 ||
                (!sample.a.empty() && pair.layout.stretches != sample.layout.stretches)) {
                throw InputError(ErrorId::compare_tokens,
                                 named(first) + " and " + named(seed) +
                                     ": expected runs that score the same tokens, found " +
                                     std::to_string(pair.only_a) + " that only the first scored and " +
                                     std::to_string(pair.only_b) +
                                     " that only the second did; record all seeds alike and to the end.");
            }
            add_new(sample.notices, pair.notices);
            sample.layout = std::move(pair.layout);
            (of_a ? sample.a : sample.b).push_back(std::move(pair.b));
        }
    }
    return sample;
}

SeedComparison compare_seeds(const SeedSample& sample, bool paired, const BootstrapOptions& options) {
    const std::size_t seeds_a = sample.a.size();
    const std::size_t seeds_b = sample.b.size();
    if (seeds_a == 0 || seeds_b == 0 || sample.a.front().empty()) {
        throw InputError(
            ErrorId::run_unscored,
            "expected tokens that all runs of both methods scored, found none; compare runs over one text.");
    }
    if (paired && seeds_a != seeds_b) {
        throw InputError(ErrorId::usage_missing,
                         "paired seeds need as many runs of one method as of the other, found " +
                             std::to_string(seeds_a) + " and " + std::to_string(seeds_b) +
                             "; leave --paired-seeds out, or name as many runs of both.");
    }
    const std::size_t tokens = sample.a.front().size();
    const std::size_t width = seeds_a + seeds_b + 1; // each run; the difference of the means over runs
    SeedComparison result;
    result.tokens = static_cast<std::int64_t>(tokens);
    result.paired = paired;
    result.notices = sample.notices;
    for (const std::vector<double>& run : sample.a) {
        result.means_a.push_back(mean_of_values(run));
    }
    for (const std::vector<double>& run : sample.b) {
        result.means_b.push_back(mean_of_values(run));
    }
    // Centre each run, to limit cancellation. The means are added again later.
    std::vector<double> columns(tokens * width);
    std::vector<double> apart(tokens);
    for (std::size_t t = 0; t < tokens; ++t) {
        double* row = columns.data() + t * width;
        double sum_a = 0;
        double sum_b = 0;
        for (std::size_t s = 0; s < seeds_a; ++s) {
            row[s] = sample.a[s][t] - result.means_a[s];
            sum_a += sample.a[s][t];
        }
        for (std::size_t s = 0; s < seeds_b; ++s) {
            row[seeds_a + s] = sample.b[s][t] - result.means_b[s];
            sum_b += sample.b[s][t];
        }
        apart[t] = sum_a / static_cast<double>(seeds_a) - sum_b / static_cast<double>(seeds_b);
        row[width - 1] = apart[t];
    }
    const std::span<const double> series[] = {apart, sample.a.front(), sample.b.front()};
    result.resampling = choose_resampling(sample.layout, series, options);
    const PrefixSums sums(columns, width, sample.layout);
    const auto replicates = static_cast<std::size_t>(options.replicates);
    std::vector<double> of_a(replicates), of_b(replicates), of_difference(replicates);
    for_each_replicate(
        sums, result.resampling, options,
        [&](std::int64_t r, std::span<const double> total, std::int64_t drawn_tokens) {
            const std::uint64_t stream =
                splitmix64(options.seed, (std::uint64_t{1} << 32U) + static_cast<std::uint64_t>(r));
            const auto drawn = [&](const std::vector<double>& means, std::size_t first, std::uint64_t draw) {
                double sum = 0;
                for (std::size_t s = 0; s < means.size(); ++s) {
                    const std::size_t seed = bounded(splitmix64(stream, draw++), means.size());
                    sum += means[seed] + total[first + seed] / static_cast<double>(drawn_tokens);
                }
                return sum / static_cast<double>(means.size());
            };
            const auto at = static_cast<std::size_t>(r);
            of_a[at] = drawn(result.means_a, 0, 0);
            of_b[at] = drawn(result.means_b, seeds_a, paired ? 0 : seeds_a);
            of_difference[at] = of_a[at] - of_b[at];
        });

    const UnitSums units = unit_sums(sums, result.resampling);
    const double text_error = unit_mean(units.column(width - 1), units.tokens).standard_error;
    const Moments spread_a = moments_of(result.means_a);
    const Moments spread_b = moments_of(result.means_b);
    result.deviation_a = std::sqrt(spread_a.variance());
    result.deviation_b = std::sqrt(spread_b.variance());
    const SeedSpread of_a_runs = spread_of(units, spread_a, [&](std::size_t s) { return units.column(s); });
    const SeedSpread of_b_runs =
        spread_of(units, spread_b, [&](std::size_t s) { return units.column(seeds_a + s); });
    SeedSpread pairs;
    if (paired) {
        Moments apart_by_pair;
        for (std::size_t s = 0; s < seeds_a; ++s) {
            apart_by_pair.add(result.means_a[s] - result.means_b[s]);
        }
        pairs = spread_of(units, apart_by_pair, [&](std::size_t s) {
            std::vector<double> column = units.column(s);
            const std::vector<double> other = units.column(seeds_a + s);
            for (std::size_t u = 0; u < column.size(); ++u) {
                column[u] -= other[u];
            }
            return column;
        });
    }
    Parts of_mean_a;
    Parts of_mean_b;
    Parts parts;
    const auto estimated = [&](double value, std::vector<double> drawn, double error,
                               std::initializer_list<const SeedSpread*> runs, Parts& of) {
        return estimate(value, std::move(drawn), error, runs, result.resampling.units, options, of);
    };
    result.mean_a =
        estimated(mean_of_values(result.means_a), std::move(of_a), of_a_runs.error, {&of_a_runs}, of_mean_a);
    result.mean_b =
        estimated(mean_of_values(result.means_b), std::move(of_b), of_b_runs.error, {&of_b_runs}, of_mean_b);
    const double difference = mean_of_values(result.means_a) - mean_of_values(result.means_b);
    result.difference =
        paired ? estimated(difference, std::move(of_difference), text_error, {&pairs}, parts)
               : estimated(difference, std::move(of_difference), text_error, {&of_a_runs, &of_b_runs}, parts);
    const bool enough = result.resampling.units >= 2;
    const double all = enough ? std::sqrt(parts.variance) : not_a_number;
    result.degrees = enough ? parts.degrees() : not_a_number;
    result.p = all > 0           ? 2 * student_cdf(-std::abs(difference) / all, result.degrees)
               : std::isnan(all) ? not_a_number
                                 : (difference == 0 ? 1.0 : 0.0);
    const bool one_each = seeds_a < 2 || seeds_b < 2;
    result.share_of_seeds = one_each || !enough ? not_a_number : 1 - text_error * text_error / parts.variance;

    append_to(result.notices, result.resampling.notices());
    if (one_each) {
        result.notices.push_back({NoticeId::compare_one_seed,
                                  "One method has a single run: its results hold for this checkpoint, "
                                  "not for the method. Train the method from several seeds."});
    } else if (std::min(seeds_a, seeds_b) < static_cast<std::size_t>(few_seeds)) {
        result.notices.push_back(
            {NoticeId::compare_few_seeds, "Fewer than " + std::to_string(few_seeds) +
                                              " seeds of a method show little of the spread of its runs: the "
                                              "interval assumes a normal distribution."});
    }
    return result;
}

} // namespace ponderscope
