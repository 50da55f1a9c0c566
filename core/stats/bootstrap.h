// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/not_a_number.h"
#include "core/base/notice.h"
#include "core/base/progress.h"
#include "core/stats/layout.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// The unit that a bootstrap draws with replacement. `automatic`: clusters if there are at least 30, else
/// blocks. `clusters`: each draw takes all tokens of a cluster. `blocks`: circular blocks of contiguous
/// tokens (Politis and Romano 1992) inside the stretches (layout.h) of all clusters.
enum class ResamplingUnit : std::uint8_t { automatic, clusters, blocks };

/// For interactive use: enough replicates for two digits of a bound.
inline constexpr std::int64_t shown_replicates = 2000;

struct BootstrapOptions {
    ResamplingUnit unit = ResamplingUnit::automatic;
    std::int64_t block = 0;       ///< tokens; 0: chosen from the data (optimal_block_length)
    bool block_from_data = false; ///< `block` was computed from the data, not given by the user
    std::int64_t replicates = 10'000;
    double level = 0.95;
    std::uint64_t seed = 20261122;
    int threads = 0;            ///< 0: one for each processor; no effect on the result
    ProgressSink progress = {}; ///< runs on the calling thread
    std::stop_token stop = {};  ///< throws Cancelled
};

/// The least number of clusters for draws of whole clusters. The spread of fewer clusters is too uncertain.
inline constexpr std::int64_t least_clusters = 30;
/// Power for the smallest detectable difference.
inline constexpr double usual_power = 0.8;

/// An estimate with its interval, all in the same unit. The bounds are NaN if they are unknown.
struct Estimate {
    double value = 0;
    double low = 0;
    double high = 0;
    double standard_error = 0; ///< standard deviation of the replicates; of a perplexity, by the delta method
    /// The smallest detectable difference: if this is the true difference, a two-sided Student's test over
    /// the units at level 1 - `level` finds it with probability 0.8 (Miller 2024, section 5).
    double detectable = not_a_number;
};

inline constexpr Estimate unknown_estimate{not_a_number, not_a_number, not_a_number, not_a_number};

/// The resampled units of a sample, and the population to which an interval refers.
struct Resampling {
    ResamplingUnit unit = ResamplingUnit::blocks; ///< never automatic
    std::int64_t block = 0;                       ///< tokens; 0 if clusters are drawn
    bool chosen = false;                          ///< the block length comes from the data
    std::int64_t clusters = 0;
    std::int64_t stretches = 0;
    std::int64_t tokens = 0;
    double units = 0; ///< independent draws in a replicate: clusters or blocks

    /// \p options with the unit and block length of this object.
    [[nodiscard]] BootstrapOptions apply(BootstrapOptions options) const;
    /// \p options with the block length of this sample, for the other samples of a report.
    [[nodiscard]] BootstrapOptions same_length(BootstrapOptions options) const;
    /// "1,200 clusters drawn whole", "circular blocks of 37 tokens"
    [[nodiscard]] std::string words() const;
    /// Notices for the user: the population of the interval, and warnings about a small sample.
    [[nodiscard]] Notices notices() const;
};

/// Whether a bootstrap of a sample with this number of clusters draws whole clusters.
bool draws_whole_clusters(const BootstrapOptions& options, std::int64_t clusters);

/// Chooses the unit and the block length if \p options leave them open. Each of the \p series has one value
/// per token. The block length is their largest optimal_block_length(), at least tokens / 10,000. InputError:
/// options out of range, or unit `clusters` with a single cluster.
Resampling choose_resampling(const TokenLayout& layout, std::span<const std::span<const double>> series,
                             const BootstrapOptions& options = {});

/// `sums` [units, width] are the sums of each quantity over the tokens of a unit, `tokens` [units] the
/// numbers of tokens. Units are clusters, or consecutive blocks (the last block of a stretch may be shorter).
struct UnitSums {
    std::size_t width = 0;
    std::vector<double> sums;
    std::vector<double> tokens;
    [[nodiscard]] std::size_t units() const { return tokens.size(); }
    [[nodiscard]] std::vector<double> column(std::size_t at) const;
};

/// Prefix sums of W quantities per token, for a sample of stretches of contiguous tokens.
///
/// The sum over a block is the difference of two prefixes, so a statistic of sums (a mean, a ratio, a
/// correlation) need not read single tokens. If made from UnitSums, the object has no prefix sums, but one
/// sum for each cluster.
class PrefixSums {
public:
    /// \p values: [tokens, width], row-major. InputError: a value that is not finite, or a layout with
    /// another number of tokens.
    PrefixSums(std::span<const double> values, std::size_t width, TokenLayout layout);
    /// For draws of whole clusters. InputError: a value that is not finite.
    explicit PrefixSums(UnitSums clusters);

    [[nodiscard]] std::size_t width() const { return width_; }
    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    [[nodiscard]] const TokenLayout& layout() const { return layout_; }
    /// W sums over the tokens before \p token. For whole clusters \p token may only be 0 or the total number
    /// of tokens.
    [[nodiscard]] std::span<const double> before(std::int64_t token) const {
        const std::int64_t row = clusters_.units() == 0 ? token : token == 0 ? 0 : 1;
        return std::span(prefix_).subspan(static_cast<std::size_t>(row) * width_, width_);
    }
    /// One quantity, a value for each token. Not for whole clusters.
    [[nodiscard]] std::vector<double> column(std::size_t at) const;
    [[nodiscard]] const UnitSums& clusters() const { return clusters_; } ///< empty: the sums are by token

private:
    std::size_t width_;
    std::int64_t tokens_;
    TokenLayout layout_;
    std::vector<double> prefix_; ///< [tokens + 1, width]
    UnitSums clusters_;
};

/// Adds up W quantities of a sample. With blocks the result has a row for each token, with whole clusters a
/// row for each cluster. \p add(token, row) adds the quantities of a token to a row of W numbers.
PrefixSums sums_of(const TokenLayout& layout, const Resampling& resampling, std::size_t width,
                   const std::function<void(std::size_t token, double* row)>& add);

UnitSums unit_sums(const PrefixSums& sums, const Resampling& resampling);
/// The unit of each token, from 0.
std::vector<std::size_t> units_of(const TokenLayout& layout, const Resampling& resampling);

/// Computes a statistic of a sample from its sums and its number of tokens.
using Statistic = std::function<double(std::span<const double> sums, std::int64_t tokens)>;
/// The mean of a quantity. \p centre: a constant that was subtracted from its values before they were summed.
Statistic mean_of(std::size_t quantity, double centre = 0);
/// The sum of quantity \p above divided by the sum of \p below; NaN unless the divisor is positive.
Statistic ratio_of(std::size_t above, std::size_t below);
Statistic difference_of(Statistic a, Statistic b);

/// Calls \p use once for each replicate r = 0..replicates-1, from several threads. The arguments are the sums
/// over the replicate's tokens and the number of these tokens. \p resampling: the result of choose_resampling
/// for these sums.
///
/// Clusters: a replicate draws G of G clusters. Draw i of replicate r takes the cluster whose number is the
/// upper 64 bits of G · S(S(seed, r), i). S(seed, n) is output n of SplitMix64. Blocks: draw i chooses a
/// stretch by output 2i, with probability proportional to max(length, block). Output 2i + 1 chooses a uniform
/// start in the stretch. The draw takes `block` tokens from the start on and wraps around at the end of the
/// stretch. Draws continue until the replicate has as many tokens as the sample, and the last block is cut.
/// So every token has the same probability, and the expected mean of a replicate is the mean of the sample.
void for_each_replicate(const PrefixSums& sums, const Resampling& resampling, const BootstrapOptions& options,
                        const std::function<void(std::int64_t replicate, std::span<const double> sums,
                                                 std::int64_t tokens)>& use);

/// The q-quantile (q in [0,1]) of sorted values, linear between order statistics (numpy's default; type 7 of
/// Hyndman and Fan 1996). NaN without values.
double quantile_of_sorted(std::span<const double> sorted, double q);

/// Corrections for a small number of units. The variance of the replicates is too small by the factor
/// `inflation`. This variance is itself an estimate with `degrees` degrees of freedom.
struct SmallSample {
    double inflation = 1;
    double degrees = std::numeric_limits<double>::infinity();
    /// units / (units - 1) and units - 1; NaN for fewer than two units.
    static SmallSample of_units(double units);
};

/// The interval of \p value from the quantiles of its replicates. For few units the quantiles are moved
/// outwards, so that the interval of a mean is as wide as Student's interval (Hesterberg 2015). The bounds
/// are NaN if \p value, the degrees, or more than 1 % of the replicates are NaN.
Estimate interval_of(double value, std::vector<double> replicates, const SmallSample& small,
                     const BootstrapOptions& options);
/// The distance of a bound from the estimate, in standard errors, if replicates are normally distributed.
double critical_value(const SmallSample& small, const BootstrapOptions& options);

/// Estimates of statistics with their intervals. All use the same draws, so their differences are paired. An
/// automatic block length comes from the first quantity of \p sums.
std::vector<Estimate> bootstrap(const PrefixSums& sums, std::span<const Statistic> statistics,
                                const BootstrapOptions& options = {});
/// Like bootstrap() above, but stores each estimate at a given address.
void bootstrap(const PrefixSums& sums, const std::vector<std::pair<Estimate*, Statistic>>& wanted,
               const BootstrapOptions& options);

/// The rows of a sample. A row is a token or, for draws of whole clusters, the sums over a cluster's tokens.
class RowLayout {
public:
    RowLayout() = default;
    /// Each row is a token.
    RowLayout(TokenLayout tokens) : layout_(std::move(tokens)) {} // NOLINT(google-explicit-constructor)
    RowLayout(std::initializer_list<std::int64_t> stretches) : layout_(stretches) {}
    /// Each row is a cluster with this number of tokens.
    static RowLayout of_clusters(std::vector<std::int64_t> tokens);

    [[nodiscard]] bool by_cluster() const { return by_cluster_; }
    [[nodiscard]] const TokenLayout& layout() const { return layout_; }
    [[nodiscard]] std::size_t rows() const;
    [[nodiscard]] std::int64_t tokens() const { return layout_.tokens(); }
    /// Number of tokens of a row.
    [[nodiscard]] double weight(std::size_t row) const {
        return by_cluster_ ? static_cast<double>(layout_.stretches[row]) : 1;
    }
    /// The mean over tokens. \p values: one value for each row.
    [[nodiscard]] double mean(std::span<const double> values) const;
    /// Like choose_resampling. Rows that are clusters are drawn whole.
    [[nodiscard]] Resampling resampling(std::span<const std::span<const double>> series,
                                        BootstrapOptions options) const;
    /// \p values: [rows, width].
    [[nodiscard]] PrefixSums sums(std::vector<double> values, std::size_t width) const;

private:
    TokenLayout layout_; ///< for clusters: one stretch each
    bool by_cluster_ = false;
};

/// The best length of circular blocks for a bootstrap of the mean of \p series (Politis and White 2004,
/// corrected by Patton, Politis and White 2009): (2 G² / D)^(1/3) n^(1/3). G and D = 4/3 g(0)² come from
/// autocovariances under a flat-top lag window. The window's width is the lag after which five
/// autocorrelations in a row are near zero. Autocovariances are taken inside stretches but around the mean of
/// all tokens, so texts with different means lead to long blocks. At most min(3 √n, n / 3).
///
/// Not rounded; 1 if the series is constant or has fewer than 8 values. O(n √n) at worst.
double optimal_block_length(std::span<const double> series, const TokenLayout& layout);

} // namespace ponderscope
