// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/not_a_number.h"
#include "core/base/progress.h"
#include "core/stats/layout.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// The unit that is drawn with replacement. `automatic`: clusters where there are at least 30, else blocks.
/// `clusters`: all tokens of a cluster or none. `blocks`: circular blocks of contiguous tokens inside
/// stretches (Politis and Romano 1992), across clusters.
enum class ResamplingUnit : std::uint8_t { automatic, clusters, blocks };

/// For interactive use: enough for two digits of a bound.
inline constexpr std::int64_t shown_replicates = 2000;

struct BootstrapOptions {
    ResamplingUnit unit = ResamplingUnit::automatic;
    std::int64_t block = 0;       ///< tokens; 0: chosen from the data (block_length.h)
    bool block_from_data = false; ///< `block` was chosen from the data of the same report
    std::int64_t replicates = 10'000;
    double level = 0.95;
    std::uint64_t seed = 20261122;
    int threads = 0;            ///< 0: as many as the machine has; the result does not depend on it
    ProgressSink progress = {}; ///< called on the calling thread
    std::stop_token stop = {};  ///< Cancelled
};

/// Clusters from which on whole ones are drawn: fewer do not show how clusters differ.
inline constexpr std::int64_t least_clusters = 30;
/// The power of the smallest detectable difference.
inline constexpr double usual_power = 0.8;

/// An estimate with its interval, all in the estimate's unit. The bounds are NaN if they are unknown.
struct Estimate {
    double value = 0;
    double low = 0;
    double high = 0;
    double standard_error = 0; ///< standard deviation of the replicates (perplexities: by the delta method)
    /// The smallest true difference that a two-sided test at 1 - level finds with probability 0.8 in a sample
    /// of this size (Student's test over the units; Miller 2024, section 5).
    double detectable = not_a_number;
};

inline constexpr Estimate unknown_estimate{not_a_number, not_a_number, not_a_number, not_a_number};

/// The resampled units of a sample, and the population that an interval is about.
struct Resampling {
    ResamplingUnit unit = ResamplingUnit::blocks; ///< never automatic
    std::int64_t block = 0;                       ///< tokens; 0 if no blocks are drawn
    bool chosen = false;                          ///< the length comes from the data
    std::int64_t clusters = 0;
    std::int64_t stretches = 0;
    std::int64_t tokens = 0;
    double units = 0; ///< independent draws that a replicate consists of: clusters, or blocks

    /// The same options with the chosen unit and length.
    [[nodiscard]] BootstrapOptions apply(BootstrapOptions options) const;
    /// The same options with the block length of this sample, for the other samples of a report.
    [[nodiscard]] BootstrapOptions same_length(BootstrapOptions options) const;
    /// "1,200 clusters drawn whole", "circular blocks of 37 tokens (Politis-White)"
    [[nodiscard]] std::string words() const;
    /// The population of the interval, and warnings about a small sample; a sentence each.
    [[nodiscard]] std::vector<std::string> notices() const;
};

/// Whether a sample with this number of clusters draws whole clusters.
bool draws_whole_clusters(const BootstrapOptions& options, std::int64_t clusters);

/// Settles what `options` leave open. \p series: the values behind the intervals, one for each token; the
/// longest block length among the series is taken. InputError: options out of range, or clusters requested
/// with one cluster.
Resampling choose_resampling(const TokenLayout& layout, std::span<const std::span<const double>> series,
                             const BootstrapOptions& options = {});

/// Sums over the tokens of each exchangeable unit: sums of the quantities [units, width], and the number of
/// tokens. Units are clusters, or blocks side by side (the last of a stretch may be shorter).
struct UnitSums {
    std::size_t width = 0;
    std::vector<double> sums;
    std::vector<double> tokens;
    [[nodiscard]] std::size_t units() const { return tokens.size(); }
    [[nodiscard]] std::vector<double> column(std::size_t at) const;
};

/// Sums over consecutive tokens of W quantities a token, for a sample of stretches of contiguous tokens.
///
/// A statistic that depends on sums only (a mean, a ratio, a correlation) can be evaluated on a resample of
/// clusters or blocks without touching the tokens: the sum over a block is a difference of two prefixes. If
/// whole clusters are drawn, only a sum for each cluster is kept.
class PrefixSums {
public:
    /// \p values: [tokens, width], row-major; finite. InputError otherwise, or where the layout has another
    /// number of tokens.
    PrefixSums(std::span<const double> values, std::size_t width, TokenLayout layout);
    /// For clusters that are drawn whole. InputError: a value that is not finite.
    explicit PrefixSums(UnitSums clusters);

    [[nodiscard]] std::size_t width() const { return width_; }
    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    [[nodiscard]] const TokenLayout& layout() const { return layout_; }
    /// W sums over the tokens before \p token. Of clusters, only the sums before the first token and of all
    /// are kept.
    [[nodiscard]] std::span<const double> before(std::int64_t token) const {
        const std::int64_t row = clusters_.units() == 0 ? token : token == 0 ? 0 : 1;
        return std::span(prefix_).subspan(static_cast<std::size_t>(row) * width_, width_);
    }
    /// One quantity, a value a token; of tokens only.
    [[nodiscard]] std::vector<double> column(std::size_t at) const;
    [[nodiscard]] const UnitSums& clusters() const { return clusters_; } ///< none if tokens are kept

private:
    std::size_t width_;
    std::int64_t tokens_;
    TokenLayout layout_;
    std::vector<double> prefix_; ///< [tokens + 1, width]
    UnitSums clusters_;
};

/// Adds up W quantities of a sample: a row for each token where blocks are drawn, a row for each cluster
/// where whole clusters are. \p add(token, cluster, row): adds the quantities of a token to a row of W
/// numbers.
PrefixSums sums_of(const TokenLayout& layout, const Resampling& resampling, std::size_t width,
                   const std::function<void(std::size_t token, std::size_t cluster, double* row)>& add);

UnitSums unit_sums(const PrefixSums& sums, const Resampling& resampling);
/// The unit of each token, from 0.
std::vector<std::size_t> units_of(const TokenLayout& layout, const Resampling& resampling);

/// A statistic of a sample of \p tokens tokens, from its sums.
using Statistic = std::function<double(std::span<const double> sums, std::int64_t tokens)>;

/// Calls \p use once for each replicate r = 0..replicates-1, from several threads, with the sums over its
/// tokens and their number. \p resampling: as choose_resampling made it for these sums.
///
/// Clusters: draw i of replicate r takes the cluster whose number is the upper 64 bits of G · S(S(seed, r),
/// i), S(seed, n) output n of SplitMix64; G draws. Blocks: draw i chooses a stretch by output 2i, with
/// probability proportional to max(length, block), and a start in it by output 2i + 1, uniformly. It takes
/// `block` tokens from the start on, around the end; until the replicate has as many tokens as the sample;
/// the last block is cut. So all tokens are drawn equally often, and the mean of the replicates is the mean
/// of the sample.
void for_each_replicate(const PrefixSums& sums, const Resampling& resampling, const BootstrapOptions& options,
                        const std::function<void(std::int64_t replicate, std::span<const double> sums,
                                                 std::int64_t tokens)>& use);

/// The q-quantile (q in [0,1]) of sorted values, linear between order statistics (numpy's default; type 7 of
/// Hyndman and Fan 1996). NaN without values.
double quantile_of_sorted(std::span<const double> sorted, double q);

/// The cost of few draws: their replicates vary too little by `inflation` (of the variance), and the variance
/// is itself estimated, with `degrees` of freedom.
struct SmallSample {
    double inflation = 1;
    double degrees = std::numeric_limits<double>::infinity();
    /// units / (units - 1) and units - 1; NaN below two units.
    static SmallSample of_units(double units);
};

/// The interval of \p value from its replicates. Quantiles of the replicates, moved outwards for few units,
/// so that the interval of a mean has the width of Student's (Hesterberg 2015). Bounds are NaN for a NaN
/// value, or if more than 1 % of the replicates are NaN; so do NaN degrees.
Estimate interval_of(double value, std::vector<double> replicates, const SmallSample& small,
                     const BootstrapOptions& options);
/// Distance of a bound from the estimate in standard errors, for normal replicates.
double critical_value(const SmallSample& small, const BootstrapOptions& options);

/// Estimates of statistics with their intervals. All use the same draws, so their differences are paired.
/// Options that leave the unit or the block open are settled by the first of the quantities.
std::vector<Estimate> bootstrap(const PrefixSums& sums, std::span<const Statistic> statistics,
                                const BootstrapOptions& options = {});

/// The meaning of a sample's values: a token each, or, if only whole clusters are drawn, the sum over a
/// cluster's tokens.
class RowLayout {
public:
    RowLayout() = default;
    /// A row a token.
    RowLayout(TokenLayout tokens) : layout_(std::move(tokens)) {} // NOLINT(google-explicit-constructor)
    RowLayout(std::initializer_list<std::int64_t> stretches) : layout_(stretches) {}
    /// A row for each cluster, with its number of tokens.
    static RowLayout of_clusters(std::vector<std::int64_t> tokens);

    [[nodiscard]] bool by_cluster() const { return by_cluster_; }
    [[nodiscard]] const TokenLayout& layout() const { return layout_; }
    [[nodiscard]] std::size_t rows() const;
    [[nodiscard]] std::int64_t tokens() const { return layout_.tokens(); }
    /// Tokens under a row.
    [[nodiscard]] double weight(std::size_t row) const {
        return by_cluster_ ? static_cast<double>(layout_.stretches[row]) : 1;
    }
    /// Mean over tokens of one value for each row.
    [[nodiscard]] double mean(std::span<const double> values) const;
    /// As choose_resampling; rows that are clusters are drawn whole.
    [[nodiscard]] Resampling resampling(std::span<const std::span<const double>> series,
                                        BootstrapOptions options) const;
    /// \p values: [rows, width].
    [[nodiscard]] PrefixSums sums(std::vector<double> values, std::size_t width) const;

private:
    TokenLayout layout_; ///< of clusters: a stretch each
    bool by_cluster_ = false;
};

/// The length of circular blocks that makes the bootstrap's variance of the mean of \p series most accurate
/// (Politis and White 2004, with the correction of Patton, Politis and White 2009): (2 G² / D)^(1/3) n^(1/3),
/// G and D = 4/3 g(0)² from autocovariances under a flat-top lag window, whose width is the lag from which
/// five autocorrelations in a row are near zero. Autocovariances are taken inside stretches, around the mean
/// of all, so that texts that differ from each other ask for long blocks. Never more than min(3 √n, n / 3).
///
/// Tokens, as a real number; 1 for a series that does not vary or has fewer than 8 values. O(n √n) at worst.
double optimal_block_length(std::span<const double> series, const TokenLayout& layout);

} // namespace ponderscope
