// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/bootstrap.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/stats/correlation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <thread>

namespace ponderscope {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Draws the blocks of replicates. Immutable, so threads share it.
class BlockSampler {
public:
    BlockSampler(const PrefixSums& sums, std::int64_t block, std::uint64_t seed)
        : sums_(sums), block_(block), seed_(seed) {
        std::int64_t first = 0;
        std::uint64_t weight = 0;
        for (const std::int64_t length : sums.stretches()) {
            stretches_.push_back({first, length});
            first += length;
            weight += static_cast<std::uint64_t>(std::max(length, block));
            weights_.push_back(weight);
        }
    }

    /// Sums over replicate \p r into \p total.
    void replicate(std::uint64_t r, std::span<double> total) const {
        std::fill(total.begin(), total.end(), 0.0);
        const std::uint64_t stream = splitmix64(seed_, r);
        std::uint64_t draw = 0;
        // The prefixes of a long text do not fit into the cache: some blocks are drawn ahead, so that their
        // rows are on the way.
        constexpr std::size_t ahead = 16;
        struct Rows {
            const double* low;
            const double* high;
        };
        std::array<Rows, ahead> rows;
        const std::size_t width = total.size();
        for (std::int64_t missing = sums_.tokens(); missing > 0;) {
            std::size_t drawn = 0;
            for (; drawn < ahead && missing > 0; ++drawn) {
                const std::uint64_t place = bounded(splitmix64(stream, draw++), weights_.back());
                const auto found = std::upper_bound(weights_.begin(), weights_.end(), place);
                const Stretch& stretch = stretches_[static_cast<std::size_t>(found - weights_.begin())];
                const std::int64_t length = std::min(block_, stretch.length);
                const std::uint64_t starts = static_cast<std::uint64_t>(stretch.length - length + 1);
                const std::int64_t begin =
                    stretch.first + static_cast<std::int64_t>(bounded(splitmix64(stream, draw++), starts));
                const std::int64_t taken = std::min(length, missing);
                rows[drawn] = {sums_.before(begin).data(), sums_.before(begin + taken).data()};
                for (std::size_t i = 0; i < width; i += 8) {
                    __builtin_prefetch(rows[drawn].low + i);
                    __builtin_prefetch(rows[drawn].high + i);
                }
                missing -= taken;
            }
            for (std::size_t block = 0; block < drawn; ++block) {
                for (std::size_t i = 0; i < width; ++i) {
                    total[i] += rows[block].high[i] - rows[block].low[i];
                }
            }
        }
    }

private:
    struct Stretch {
        std::int64_t first;
        std::int64_t length;
    };
    const PrefixSums& sums_;
    std::int64_t block_;
    std::uint64_t seed_;
    std::vector<Stretch> stretches_;
    std::vector<std::uint64_t> weights_; ///< cumulative
};

double normal_cdf(double z) {
    return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

/// By bisection: exact to the last bit or so, and needed a handful of times only.
double normal_quantile(double p) {
    double low = -40;
    double high = 40;
    for (int i = 0; i < 200; ++i) {
        const double middle = (low + high) / 2;
        (normal_cdf(middle) < p ? low : high) = middle;
    }
    return (low + high) / 2;
}

/// Efron's acceleration from the statistic with each block left out in turn.
double acceleration(const PrefixSums& sums, const Statistic& statistic, std::int64_t block) {
    std::vector<double> left_out;
    std::vector<double> rest(sums.width());
    const std::span<const double> total = sums.before(sums.tokens());
    std::int64_t first = 0;
    for (const std::int64_t length : sums.stretches()) {
        for (std::int64_t begin = 0; begin < length; begin += block) {
            const std::int64_t taken = std::min(block, length - begin);
            if (taken == sums.tokens()) {
                return nan;
            }
            const std::span<const double> low = sums.before(first + begin);
            const std::span<const double> high = sums.before(first + begin + taken);
            for (std::size_t i = 0; i < rest.size(); ++i) {
                rest[i] = total[i] - (high[i] - low[i]);
            }
            left_out.push_back(statistic(rest, sums.tokens() - taken));
        }
        first += length;
    }
    const double mean =
        std::accumulate(left_out.begin(), left_out.end(), 0.0) / static_cast<double>(left_out.size());
    double squares = 0;
    double cubes = 0;
    for (const double value : left_out) {
        squares += (mean - value) * (mean - value);
        cubes += (mean - value) * (mean - value) * (mean - value);
    }
    return squares > 0 ? cubes / (6 * std::pow(squares, 1.5)) : 0;
}

Estimate read_interval(double value, std::vector<double> replicates, const PrefixSums& sums,
                       const Statistic& statistic, const BootstrapOptions& options) {
    Estimate estimate{value, nan, nan, nan};
    const std::size_t asked = replicates.size();
    std::erase_if(replicates, [](double replicate) { return std::isnan(replicate); });
    if (std::isnan(value) || replicates.size() < 2 || (asked - replicates.size()) * 100 > asked) {
        return estimate;
    }
    const auto n = static_cast<double>(replicates.size());
    const double mean = std::accumulate(replicates.begin(), replicates.end(), 0.0) / n;
    double squares = 0;
    for (const double replicate : replicates) {
        squares += (replicate - mean) * (replicate - mean);
    }
    estimate.standard_error = std::sqrt(squares / (n - 1));
    std::sort(replicates.begin(), replicates.end());
    double lower = (1 - options.level) / 2;
    double upper = 1 - lower;
    if (options.kind == IntervalKind::bca) {
        // Ties count half, as in SciPy: the statistic of identical runs is one value.
        const auto below = std::lower_bound(replicates.begin(), replicates.end(), value) - replicates.begin();
        const auto up_to = std::upper_bound(replicates.begin(), replicates.end(), value) - replicates.begin();
        const double share = static_cast<double>(below + up_to) / (2 * n);
        const double a = acceleration(sums, statistic, options.block);
        if (share <= 0 || share >= 1 || std::isnan(a)) {
            return estimate; // the correction is infinite: there is no honest interval
        }
        const double z0 = normal_quantile(share);
        for (double* p : {&lower, &upper}) {
            const double z = z0 + normal_quantile(*p);
            *p = normal_cdf(z0 + z / (1 - a * z));
        }
    }
    estimate.low = quantile_of_sorted(replicates, lower);
    estimate.high = quantile_of_sorted(replicates, upper);
    return estimate;
}

} // namespace

PrefixSums::PrefixSums(std::span<const double> values, std::size_t width, std::vector<std::int64_t> stretches)
    : width_(width), tokens_(0), stretches_(std::move(stretches)) {
    for (const std::int64_t length : stretches_) {
        if (length < 1) {
            throw InputError("a stretch of " + std::to_string(length) +
                             " tokens cannot be resampled; leave it out.");
        }
        tokens_ += length;
    }
    if (width == 0 || values.size() != static_cast<std::size_t>(tokens_) * width) {
        throw InputError("expected " + std::to_string(tokens_) + " tokens of " + std::to_string(width) +
                         " quantities to resample, found " + std::to_string(values.size()) + " values.");
    }
    prefix_.resize(values.size() + width);
    for (std::size_t i = 0; i < values.size(); ++i) {
        prefix_[i + width] = prefix_[i] + values[i];
    }
}

std::vector<Estimate> block_bootstrap(const PrefixSums& sums, std::span<const Statistic> statistics,
                                      const BootstrapOptions& options) {
    if (options.block < 1) {
        throw InputError("expected blocks of at least one token, found " + std::to_string(options.block) +
                         ".");
    }
    constexpr std::int64_t most_replicates = 10'000'000;
    if (options.replicates < 1 || options.replicates > most_replicates) {
        throw InputError("expected 1 to 10000000 replicates, found " + std::to_string(options.replicates) +
                         ".");
    }
    if (!(options.level > 0 && options.level < 1)) {
        throw InputError("expected a level between 0 and 1, found " + std::to_string(options.level) + ".");
    }
    std::vector<Estimate> estimates(statistics.size(), Estimate{nan, nan, nan, nan});
    if (sums.tokens() == 0) {
        return estimates;
    }
    const BlockSampler sampler(sums, options.block, options.seed);
    const auto replicates = static_cast<std::size_t>(options.replicates);
    std::vector<std::vector<double>> values(statistics.size(), std::vector<double>(replicates));
    std::atomic<std::size_t> next{0};
    std::atomic<bool> cancelled{false};
    const auto work = [&](bool reports) {
        std::vector<double> total(sums.width());
        auto reported = std::chrono::steady_clock::now();
        constexpr std::size_t batch = 16;
        for (std::size_t begin; (begin = next.fetch_add(batch)) < replicates && !cancelled;) {
            for (std::size_t r = begin; r < std::min(begin + batch, replicates); ++r) {
                sampler.replicate(r, total);
                for (std::size_t s = 0; s < statistics.size(); ++s) {
                    values[s][r] = statistics[s](total, sums.tokens());
                }
            }
            if (options.stop.stop_requested()) {
                cancelled = true;
            }
            const auto now = std::chrono::steady_clock::now();
            if (reports && options.progress && now - reported > std::chrono::milliseconds(200)) {
                options.progress(
                    {"resampling", static_cast<std::int64_t>(begin), options.replicates, "replicates"});
                reported = now;
            }
        }
    };
    const unsigned wanted =
        options.threads > 0 ? static_cast<unsigned>(options.threads) : std::thread::hardware_concurrency();
    {
        std::vector<std::jthread> helpers;
        for (unsigned i = 1; i < std::clamp(wanted, 1U, 64U); ++i) {
            helpers.emplace_back([&] { work(false); });
        }
        work(true);
    }
    if (cancelled) {
        throw Cancelled();
    }
    const std::span<const double> all = sums.before(sums.tokens());
    for (std::size_t s = 0; s < statistics.size(); ++s) {
        estimates[s] = read_interval(statistics[s](all, sums.tokens()), std::move(values[s]), sums,
                                     statistics[s], options);
    }
    return estimates;
}

std::vector<std::string> interval_notices(std::span<const std::int64_t> stretches,
                                          const BootstrapOptions& options) {
    // Below this many blocks the bootstrap cannot know how the mean varies.
    constexpr std::int64_t few_blocks = 10;
    std::int64_t blocks = 0;
    for (const std::int64_t length : stretches) {
        blocks += (length + options.block - 1) / options.block;
    }
    std::vector<std::string> notices;
    if (blocks < few_blocks) {
        notices.push_back("The intervals rest on " + std::to_string(blocks) +
                          (blocks == 1 ? " block of " : " blocks of ") + std::to_string(options.block) +
                          " tokens: take them as a hint, and score a longer text.");
    }
    if (stretches.size() == 1) {
        notices.emplace_back(
            "All tokens are of one sequence: the intervals say what other parts of this text "
            "would give, not what other texts would.");
    }
    return notices;
}

std::string interval_warning(const Estimate& estimate, const std::string& what) {
    if (!(estimate.value < estimate.low || estimate.value > estimate.high)) {
        return {};
    }
    return "The interval of " + what +
           " lies beside its estimate: blocks reach the ends of this short text less often than its middle, "
           "and there it is different; take a longer text.";
}

} // namespace ponderscope
