// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// How an interval is read off the replicates. `percentile`: their quantiles. `bca`: bias-corrected and
/// accelerated (Efron 1987), the acceleration from a jackknife that leaves out one block at a time.
enum class IntervalKind : std::uint8_t { percentile, bca };

struct BootstrapOptions {
    std::int64_t block = 64; ///< tokens
    std::int64_t replicates = 10'000;
    double level = 0.95;
    IntervalKind kind = IntervalKind::percentile;
    std::uint64_t seed = 20261122;
    int threads = 0;            ///< 0: as many as the machine has; the result does not depend on it
    ProgressSink progress = {}; ///< called on the calling thread
    std::stop_token stop = {};  ///< Cancelled
};

/// An estimate with its interval, all in the estimate's unit. The bounds are NaN where they cannot be said.
struct Estimate {
    double value = 0;
    double low = 0;
    double high = 0;
    double standard_error = 0; ///< standard deviation of the replicates (perplexities: by the delta method)
};

/// What a reader of intervals must know of the sample under them, a sentence each: few blocks, one sequence.
std::vector<std::string> interval_notices(std::span<const std::int64_t> stretches,
                                          const BootstrapOptions& options);
/// A sentence where an interval does not hold its own estimate, else empty. Moving blocks reach the ends of a
/// stretch less often than its middle (methods.md 11 wants them so), which moves the replicates of a short
/// sample whose ends differ from its middle. \p what: "the mean NLL".
std::string interval_warning(const Estimate& estimate, const std::string& what);

/// Sums over consecutive tokens of W quantities a token, for a sample that lies in stretches of contiguous
/// tokens.
///
/// A statistic that depends on sums only (a mean, a ratio, a correlation) can be evaluated on a resample of
/// blocks without touching the tokens: the sum over a block is a difference of two prefixes.
class PrefixSums {
public:
    /// \p values: [tokens, width], row-major; \p stretches: lengths that add up to the tokens, each at
    /// least 1. InputError otherwise.
    PrefixSums(std::span<const double> values, std::size_t width, std::vector<std::int64_t> stretches);

    [[nodiscard]] std::size_t width() const { return width_; }
    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    [[nodiscard]] const std::vector<std::int64_t>& stretches() const { return stretches_; }
    /// W sums over the tokens before \p token.
    [[nodiscard]] std::span<const double> before(std::int64_t token) const {
        return std::span(prefix_).subspan(static_cast<std::size_t>(token) * width_, width_);
    }

private:
    std::size_t width_;
    std::int64_t tokens_;
    std::vector<std::int64_t> stretches_;
    std::vector<double> prefix_; ///< [tokens + 1, width]
};

/// A statistic of a sample of \p tokens tokens, from its sums.
using Statistic = std::function<double(std::span<const double> sums, std::int64_t tokens)>;

/// Moving-block bootstrap (Künsch 1989; methods.md 11). A replicate draws blocks of `block` contiguous tokens
/// until it has as many tokens as the sample; the last block is cut short to fit. Blocks lie inside
/// stretches; a stretch shorter than a block is a block of its own. Draw i of replicate r takes the stretch s
/// with probability proportional to max(length_s, block), so that each stretch is expected to give as many
/// tokens as it has, and in it every start with the same probability; the bits are outputs 2i and 2i+1 of
/// SplitMix64 seeded by output r of SplitMix64(seed). All statistics see the same blocks.
///
/// A statistic that is NaN on the sample, or on more than one in a hundred replicates, gets NaN bounds.
/// InputError: options out of range.
std::vector<Estimate> block_bootstrap(const PrefixSums& sums, std::span<const Statistic> statistics,
                                      const BootstrapOptions& options = {});

} // namespace ponderscope
