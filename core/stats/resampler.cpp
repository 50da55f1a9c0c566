// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/resampler.h"

#include "core/base/splitmix.h"

#include <algorithm>
#include <array>

namespace ponderscope {

Resampler::Resampler(const PrefixSums& sums, const Resampling& resampling, std::uint64_t seed)
    : sums_(sums), how_(resampling), seed_(seed) {
    if (how_.unit == ResamplingUnit::clusters) {
        const UnitSums units = unit_sums(sums, resampling);
        stride_ = (sums.width() + 2) / 2 * 2; // sums, tokens; even, so that pairs are added at once
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
    // Rows of many clusters do not fit into the nearest cache: some are drawn ahead, so that they are on the
    // way.
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
    // The prefixes of a long text do not fit into the cache, either. A block that goes around the end of its
    // stretch is two pieces.
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

} // namespace ponderscope
