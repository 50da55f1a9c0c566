// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/bootstrap.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/base/splitmix.h"
#include "core/stats/scan.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

namespace ponderscope {
namespace {

void check(const BootstrapOptions& options) {
    if (options.block < 0) {
        throw InputError(
            ErrorId::usage_value,
            "expected blocks of at least one token, or 0 for a length chosen from the data, found " +
                std::to_string(options.block) + ".");
    }
    constexpr std::int64_t most_replicates = 10'000'000;
    if (options.replicates < 1 || options.replicates > most_replicates) {
        throw InputError(ErrorId::usage_value, "expected 1 to 10000000 replicates, found " +
                                                   std::to_string(options.replicates) + ".");
    }
    if (!(options.level > 0 && options.level < 1)) {
        throw InputError(ErrorId::usage_value,
                         "expected a level between 0 and 1, found " + std::to_string(options.level) + ".");
    }
}

/// The largest number of blocks in a replicate if the block length is chosen from the data, to limit time. It
/// gives the standard error to 1 %, as 10,000 replicates do.
constexpr double most_chosen_blocks = 10'000;

/// The number of blocks of a replicate.
double blocks_in(const TokenLayout& layout, std::int64_t block) {
    double blocks = 0;
    for (const std::int64_t length : layout.stretches) {
        blocks += static_cast<double>(length) / static_cast<double>(std::min(length, block));
    }
    return blocks;
}

/// Calls \p use(unit, begin, end) for all tokens, in order. Tokens [begin, end) belong to the unit.
template <typename Use>
void for_each_piece(const TokenLayout& layout, const Resampling& resampling, Use use) {
    std::int64_t first = 0;
    std::size_t block = 0;
    for (std::size_t s = 0; s < layout.stretches.size(); ++s) {
        const std::int64_t end = first + layout.stretches[s];
        if (resampling.unit == ResamplingUnit::blocks) {
            for (std::int64_t begin = first; begin < end; begin += resampling.block) {
                use(block++, begin, std::min(begin + resampling.block, end));
            }
        } else {
            use(static_cast<std::size_t>(layout.cluster_of[s]), first, end);
        }
        first = end;
    }
}

/// Draws the replicates of for_each_replicate. Immutable, so threads may share it. `sums` must outlive it.
class Resampler {
public:
    Resampler(const PrefixSums& sums, const Resampling& resampling, std::uint64_t seed);

    /// Writes the sums over replicate \p r to \p total, [width]. Returns the replicate's number of tokens.
    std::int64_t replicate(std::uint64_t r, std::span<double> total) const;

private:
    struct Stretch {
        std::int64_t first;
        std::int64_t length;
    };

    std::int64_t draw_clusters(std::uint64_t stream, std::span<double> total) const;
    void draw_blocks(std::uint64_t stream, std::span<double> total) const;

    const PrefixSums& sums_;
    Resampling how_;
    std::uint64_t seed_;
    std::size_t stride_ = 0;
    std::vector<double> rows_;           ///< whole clusters: [clusters, stride], sums and number of tokens
    std::vector<Stretch> stretches_;     ///< from which blocks are drawn
    std::vector<std::uint64_t> weights_; ///< cumulative, for each stretch
};

Resampler::Resampler(const PrefixSums& sums, const Resampling& resampling, std::uint64_t seed)
    : sums_(sums), how_(resampling), seed_(seed) {
    if (how_.unit == ResamplingUnit::clusters) {
        const UnitSums units = unit_sums(sums, resampling);
        stride_ = (sums.width() + 2) / 2 * 2; // sums and tokens; even, so that pairs can be added at once
        rows_.assign(units.units() * stride_, 0.0);
        for (std::size_t g = 0; g < units.units(); ++g) {
            std::copy_n(units.sums.begin() + static_cast<std::ptrdiff_t>(g * sums.width()), sums.width(),
                        rows_.begin() + static_cast<std::ptrdiff_t>(g * stride_));
            rows_[g * stride_ + sums.width()] = units.tokens[g];
        }
        return;
    }
    std::int64_t first = 0;
    std::uint64_t weight = 0;
    for (const std::int64_t length : sums.layout().stretches) {
        stretches_.push_back({first, length});
        weight += static_cast<std::uint64_t>(std::max(length, how_.block));
        weights_.push_back(weight);
        first += length;
    }
}

std::int64_t Resampler::replicate(std::uint64_t r, std::span<double> total) const {
    std::fill(total.begin(), total.end(), 0.0);
    const std::uint64_t stream = splitmix64(seed_, r);
    if (how_.unit == ResamplingUnit::clusters) {
        return draw_clusters(stream, total);
    }
    draw_blocks(stream, total);
    return sums_.tokens();
}

std::int64_t Resampler::draw_clusters(std::uint64_t stream, std::span<double> total) const {
    const auto clusters = static_cast<std::uint64_t>(how_.clusters);
    std::vector<double> sum(stride_, 0.0);
    double* const to = sum.data();
    const std::size_t stride = stride_;
    // Rows of many clusters do not fit into the fastest cache. So some clusters are drawn ahead, and their
    // rows are prefetched.
    constexpr std::size_t ahead = 32;
    std::array<const double*, ahead> drawn{};
    for (std::uint64_t i = 0; i < clusters;) {
        std::size_t count = 0;
        for (; count < ahead && i < clusters; ++count, ++i) {
            drawn[count] = rows_.data() + bounded(splitmix64(stream, i), clusters) * stride;
            __builtin_prefetch(drawn[count]);
            __builtin_prefetch(drawn[count] + stride - 1);
        }
        for (std::size_t c = 0; c < count; ++c) {
            const double* const row = drawn[c];
            for (std::size_t j = 0; j < stride; j += 2) {
                to[j] += row[j];
                to[j + 1] += row[j + 1];
            }
        }
    }
    std::copy_n(sum.begin(), total.size(), total.begin());
    return static_cast<std::int64_t>(sum[total.size()]);
}

void Resampler::draw_blocks(std::uint64_t stream, std::span<double> total) const {
    std::uint64_t draw = 0;
    // The prefixes of a long text are prefetched, too. A block that wraps around the end of its stretch is
    // two pieces.
    constexpr std::size_t ahead = 32;
    struct Piece {
        const double* low;
        const double* high;
    };
    std::array<Piece, ahead> pieces;
    const std::size_t width = total.size();
    const auto take = [&](Piece& piece, std::int64_t begin, std::int64_t end) {
        piece = {sums_.before(begin).data(), sums_.before(end).data()};
        for (std::size_t i = 0; i < width; i += 8) {
            __builtin_prefetch(piece.low + i);
            __builtin_prefetch(piece.high + i);
        }
    };
    for (std::int64_t missing = sums_.tokens(); missing > 0;) {
        std::size_t drawn = 0;
        while (drawn + 1 < ahead && missing > 0) {
            const std::uint64_t place = bounded(splitmix64(stream, draw++), weights_.back());
            const auto found = std::upper_bound(weights_.begin(), weights_.end(), place);
            const Stretch& stretch = stretches_[static_cast<std::size_t>(found - weights_.begin())];
            const auto start = static_cast<std::int64_t>(
                bounded(splitmix64(stream, draw++), static_cast<std::uint64_t>(stretch.length)));
            const std::int64_t taken = std::min({how_.block, stretch.length, missing});
            const std::int64_t straight = std::min(taken, stretch.length - start);
            take(pieces[drawn++], stretch.first + start, stretch.first + start + straight);
            if (straight < taken) {
                take(pieces[drawn++], stretch.first, stretch.first + taken - straight);
            }
            missing -= taken;
        }
        for (std::size_t piece = 0; piece < drawn; ++piece) {
            for (std::size_t i = 0; i < width; ++i) {
                total[i] += pieces[piece].high[i] - pieces[piece].low[i];
            }
        }
    }
}

} // namespace

BootstrapOptions Resampling::apply(BootstrapOptions options) const {
    options.unit = unit;
    options.block = block;
    options.block_from_data = chosen;
    return options;
}

BootstrapOptions Resampling::same_length(BootstrapOptions options) const {
    if (unit != ResamplingUnit::clusters) {
        options.block = block;
        options.block_from_data = chosen;
    }
    return options;
}

std::string Resampling::words() const {
    const std::string blocks = "circular blocks of " + std::to_string(block) +
                               (block == 1 ? " token" : " tokens") +
                               (chosen ? ", a length chosen from the data (Politis-White)" : "");
    return unit == ResamplingUnit::clusters ? std::to_string(clusters) + " clusters drawn whole" : blocks;
}

Notices Resampling::notices() const {
    Notices notices;
    if (unit == ResamplingUnit::blocks) {
        const std::string few = "fewer than " + std::to_string(least_clusters);
        if (clusters == 1) {
            notices.push_back({NoticeId::stats_same_texts,
                               "All tokens belong to one sequence or one group of sequences: the intervals "
                               "cover other parts of this text, not other texts."});
        } else if (clusters < least_clusters) {
            notices.push_back({NoticeId::stats_same_texts,
                               "The " + std::to_string(clusters) +
                                   " clusters (sequences, or the groups given with them) are " + few +
                                   ": the intervals cover other parts of these texts, not other texts."});
        } else {
            notices.push_back({NoticeId::stats_same_texts,
                               "Blocks were drawn as requested, not whole sequences: the "
                               "intervals cover other parts of these texts, not other texts."});
        }
        // With fewer blocks the bootstrap cannot estimate how the mean varies.
        constexpr double few_blocks = 10;
        if (units < few_blocks) {
            const auto whole = static_cast<std::int64_t>(units);
            notices.push_back({NoticeId::stats_small_sample,
                               "The intervals rest on " + std::to_string(whole) +
                                   (whole == 1 ? " block of " : " blocks of ") + std::to_string(block) +
                                   " tokens: the sample is too small; score a longer text."});
        }
    } else if (clusters < least_clusters) {
        notices.push_back({NoticeId::stats_small_sample, "The intervals rest on " + std::to_string(clusters) +
                                                             " clusters, fewer than " +
                                                             std::to_string(least_clusters) +
                                                             ": the sample is too small; score more texts."});
    }
    return notices;
}

bool draws_whole_clusters(const BootstrapOptions& options, std::int64_t clusters) {
    return options.unit == ResamplingUnit::clusters ||
           (options.unit == ResamplingUnit::automatic && clusters >= least_clusters);
}

Resampling choose_resampling(const TokenLayout& layout, std::span<const std::span<const double>> series,
                             const BootstrapOptions& options) {
    check(options);
    Resampling how;
    how.tokens = layout.tokens();
    how.stretches = static_cast<std::int64_t>(layout.stretches.size());
    how.clusters = layout.clusters();
    how.unit =
        draws_whole_clusters(options, how.clusters) ? ResamplingUnit::clusters : ResamplingUnit::blocks;
    if (how.unit == ResamplingUnit::clusters) {
        if (how.clusters < 2) {
            throw InputError(ErrorId::stats_sample, "whole clusters cannot be drawn from " +
                                                        std::to_string(how.clusters) +
                                                        (how.clusters == 1 ? " cluster" : " clusters") +
                                                        "; draw blocks, or score several sequences.");
        }
        how.units = static_cast<double>(how.clusters);
        return how;
    }
    how.block = options.block;
    how.chosen = options.block_from_data;
    if (how.block == 0) {
        how.chosen = true;
        double longest = std::max(1.0, static_cast<double>(how.tokens) / most_chosen_blocks);
        for (const std::span<const double> one : series) {
            longest = std::max(longest, optimal_block_length(one, layout));
        }
        how.block = static_cast<std::int64_t>(std::ceil(longest));
    }
    how.units = blocks_in(layout, how.block);
    return how;
}

PrefixSums::PrefixSums(std::span<const double> values, std::size_t width, TokenLayout layout)
    : width_(width), tokens_(layout.tokens()), layout_(std::move(layout)) {
    for (const std::int64_t length : layout_.stretches) {
        if (length < 1) {
            throw InputError(ErrorId::stats_sample, "a stretch of " + std::to_string(length) +
                                                        " tokens cannot be resampled; leave it out.");
        }
    }
    if (width == 0 || values.size() != static_cast<std::size_t>(tokens_) * width) {
        throw InputError(ErrorId::stats_sample, "expected values for " + std::to_string(tokens_) +
                                                    " tokens and " + std::to_string(width) +
                                                    " quantities to resample, found " +
                                                    std::to_string(values.size()) + " values.");
    }
    prefix_.resize(values.size() + width);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) {
            throw InputError(ErrorId::stats_sample,
                             "token " + std::to_string(i / width) +
                                 " of the sample has a value that is no finite number, so its mean has no "
                                 "interval; leave such tokens out.");
        }
        prefix_[i + width] = prefix_[i] + values[i];
    }
}

PrefixSums::PrefixSums(UnitSums clusters)
    : width_(clusters.width), tokens_(0), clusters_(std::move(clusters)) {
    prefix_.resize(2 * width_);
    for (std::size_t g = 0; g < clusters_.units(); ++g) {
        const auto tokens = static_cast<std::int64_t>(clusters_.tokens[g]);
        tokens_ += tokens;
        layout_.stretches.push_back(tokens);
        layout_.cluster_of.push_back(static_cast<std::int64_t>(g));
        for (std::size_t i = 0; i < width_; ++i) {
            const double value = clusters_.sums[g * width_ + i];
            if (!std::isfinite(value)) {
                throw InputError(ErrorId::stats_sample,
                                 "cluster " + std::to_string(g) +
                                     " of the sample has a value that is no finite number, so its mean has "
                                     "no interval; leave such tokens out.");
            }
            prefix_[width_ + i] += value;
        }
    }
}

PrefixSums sums_of(const TokenLayout& layout, const Resampling& resampling, std::size_t width,
                   const std::function<void(std::size_t, double*)>& add) {
    const bool by_cluster = resampling.unit == ResamplingUnit::clusters;
    UnitSums rows{width, {}, {}};
    rows.tokens.resize(static_cast<std::size_t>(by_cluster ? layout.clusters() : 0));
    rows.sums.resize((by_cluster ? rows.units() : static_cast<std::size_t>(layout.tokens())) * width);
    std::size_t token = 0;
    for (std::size_t s = 0; s < layout.stretches.size(); ++s) {
        const auto cluster = static_cast<std::size_t>(layout.cluster_of[s]);
        const std::size_t end = token + static_cast<std::size_t>(layout.stretches[s]);
        if (by_cluster) {
            rows.tokens[cluster] += static_cast<double>(end - token);
        }
        for (; token < end; ++token) {
            add(token, rows.sums.data() + (by_cluster ? cluster : token) * width);
        }
    }
    return by_cluster ? PrefixSums(std::move(rows)) : PrefixSums(rows.sums, width, layout);
}

std::vector<double> PrefixSums::column(std::size_t at) const {
    std::vector<double> values(static_cast<std::size_t>(tokens_));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = prefix_[(i + 1) * width_ + at] - prefix_[i * width_ + at];
    }
    return values;
}

std::vector<double> UnitSums::column(std::size_t at) const {
    std::vector<double> values(units());
    for (std::size_t u = 0; u < values.size(); ++u) {
        values[u] = sums[u * width + at];
    }
    return values;
}

UnitSums unit_sums(const PrefixSums& sums, const Resampling& resampling) {
    if (sums.clusters().units() > 0) {
        return sums.clusters();
    }
    UnitSums units;
    units.width = sums.width();
    for_each_piece(sums.layout(), resampling, [&](std::size_t unit, std::int64_t begin, std::int64_t end) {
        if (unit >= units.units()) {
            units.tokens.resize(unit + 1, 0.0);
            units.sums.resize((unit + 1) * units.width, 0.0);
        }
        const std::span<const double> low = sums.before(begin);
        const std::span<const double> high = sums.before(end);
        for (std::size_t i = 0; i < units.width; ++i) {
            units.sums[unit * units.width + i] += high[i] - low[i];
        }
        units.tokens[unit] += static_cast<double>(end - begin);
    });
    return units;
}

std::vector<std::size_t> units_of(const TokenLayout& layout, const Resampling& resampling) {
    std::vector<std::size_t> units(static_cast<std::size_t>(layout.tokens()));
    for_each_piece(layout, resampling, [&](std::size_t unit, std::int64_t begin, std::int64_t end) {
        std::fill(units.begin() + begin, units.begin() + end, unit);
    });
    return units;
}

void for_each_replicate(const PrefixSums& sums, const Resampling& resampling, const BootstrapOptions& options,
                        const std::function<void(std::int64_t, std::span<const double>, std::int64_t)>& use) {
    check(options);
    const Resampler resampler(sums, resampling, options.seed);
    constexpr std::int64_t batch = 16;
    const auto parts = static_cast<std::size_t>((options.replicates + batch - 1) / batch);
    const unsigned wanted =
        options.threads > 0 ? static_cast<unsigned>(options.threads) : std::thread::hardware_concurrency();
    auto reported = std::chrono::steady_clock::now(); // last report, by worker 0
    for_each_part(parts, std::clamp(wanted, 1U, 64U), [&](std::size_t part, std::size_t worker) {
        throw_if_stopped(options.stop);
        std::vector<double> total(sums.width());
        const std::int64_t begin = static_cast<std::int64_t>(part) * batch;
        for (std::int64_t r = begin; r < std::min(begin + batch, options.replicates); ++r) {
            const std::int64_t tokens = resampler.replicate(static_cast<std::uint64_t>(r), total);
            use(r, total, tokens);
        }
        const auto now = std::chrono::steady_clock::now();
        if (worker == 0 && options.progress && now - reported > std::chrono::milliseconds(200)) {
            options.progress({"resampling", begin, options.replicates, "replicates"});
            reported = now;
        }
    });
}

Statistic mean_of(std::size_t quantity, double centre) {
    return [=](std::span<const double> sums, std::int64_t tokens) {
        return centre + sums[quantity] / static_cast<double>(tokens);
    };
}

Statistic ratio_of(std::size_t above, std::size_t below) {
    return [=](std::span<const double> sums, std::int64_t) {
        return sums[below] > 0 ? sums[above] / sums[below] : not_a_number;
    };
}

Statistic difference_of(Statistic a, Statistic b) {
    return [a = std::move(a), b = std::move(b)](std::span<const double> sums, std::int64_t tokens) {
        return a(sums, tokens) - b(sums, tokens);
    };
}

double quantile_of_sorted(std::span<const double> sorted, double q) {
    if (sorted.empty()) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    if (sorted[below] == sorted[above]) { // also when both are infinite
        return sorted[below];
    }
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

SmallSample SmallSample::of_units(double units) {
    return units >= 2 ? SmallSample{units / (units - 1), units - 1} : SmallSample{not_a_number, not_a_number};
}

double critical_value(const SmallSample& small, const BootstrapOptions& options) {
    const double upper = (1 + options.level) / 2;
    if (std::isinf(small.degrees)) {
        return normal_quantile(upper);
    }
    return std::sqrt(small.inflation) * student_quantile(upper, small.degrees);
}

Estimate interval_of(double value, std::vector<double> replicates, const SmallSample& small,
                     const BootstrapOptions& options) {
    Estimate estimate{value, not_a_number, not_a_number, not_a_number};
    const std::size_t asked = replicates.size();
    std::erase_if(replicates, [](double replicate) { return std::isnan(replicate); });
    if (std::isnan(value) || replicates.size() < 2 || (asked - replicates.size()) * 100 > asked ||
        !(small.degrees > 0)) {
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
    const double upper = normal_cdf(critical_value(small, options));
    if (!std::isnan(upper)) {
        estimate.low = quantile_of_sorted(replicates, 1 - upper);
        estimate.high = quantile_of_sorted(replicates, upper);
    }
    estimate.detectable = std::sqrt(small.inflation) * estimate.standard_error *
                          detectable_shift(small.degrees + 1, 1 - options.level, usual_power);
    return estimate;
}

std::vector<Estimate> bootstrap(const PrefixSums& sums, std::span<const Statistic> statistics,
                                const BootstrapOptions& options) {
    check(options);
    std::vector<Estimate> estimates(statistics.size(), unknown_estimate);
    if (sums.tokens() == 0) {
        return estimates;
    }
    BootstrapOptions settled = options;
    if (sums.clusters().units() > 0) {
        settled.unit = ResamplingUnit::clusters;
    }
    const std::vector<double> first = settled.block == 0 && settled.unit != ResamplingUnit::clusters
                                          ? sums.column(0)
                                          : std::vector<double>();
    const std::span<const double> series[1] = {first};
    const Resampling how =
        choose_resampling(sums.layout(), std::span(series, first.empty() ? 0 : 1), settled);
    const auto replicates = static_cast<std::size_t>(options.replicates);
    std::vector<std::vector<double>> values(statistics.size(), std::vector<double>(replicates));
    for_each_replicate(sums, how, options,
                       [&](std::int64_t r, std::span<const double> total, std::int64_t tokens) {
                           for (std::size_t s = 0; s < statistics.size(); ++s) {
                               values[s][static_cast<std::size_t>(r)] = statistics[s](total, tokens);
                           }
                       });
    const std::span<const double> all = sums.before(sums.tokens());
    const SmallSample small = SmallSample::of_units(how.units);
    for (std::size_t s = 0; s < statistics.size(); ++s) {
        estimates[s] = interval_of(statistics[s](all, sums.tokens()), std::move(values[s]), small, options);
    }
    return estimates;
}

void bootstrap(const PrefixSums& sums, const std::vector<std::pair<Estimate*, Statistic>>& wanted,
               const BootstrapOptions& options) {
    std::vector<Statistic> statistics;
    for (const auto& [place, statistic] : wanted) {
        statistics.push_back(statistic);
    }
    const std::vector<Estimate> estimates = bootstrap(sums, statistics, options);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        *wanted[i].first = estimates[i];
    }
}

RowLayout RowLayout::of_clusters(std::vector<std::int64_t> tokens) {
    RowLayout rows = TokenLayout(std::move(tokens));
    rows.by_cluster_ = true;
    return rows;
}

std::size_t RowLayout::rows() const {
    return by_cluster_ ? layout_.stretches.size() : static_cast<std::size_t>(layout_.tokens());
}

double RowLayout::mean(std::span<const double> values) const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(tokens());
}

Resampling RowLayout::resampling(std::span<const std::span<const double>> series,
                                 BootstrapOptions options) const {
    if (!by_cluster_) {
        return choose_resampling(layout_, series, options);
    }
    options.unit = ResamplingUnit::clusters;
    return choose_resampling(layout_, {}, options);
}

PrefixSums RowLayout::sums(std::vector<double> values, std::size_t width) const {
    return by_cluster_ ? PrefixSums(UnitSums{
                             width, std::move(values), {layout_.stretches.begin(), layout_.stretches.end()}})
                       : PrefixSums(values, width, layout_);
}

} // namespace ponderscope
