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
    const bool by_cluster = how_.unit == ResamplingUnit::two_level;
    sources_.resize(by_cluster ? static_cast<std::size_t>(how_.clusters) : 1);
    const TokenLayout& layout = sums.layout();
    std::int64_t first = 0;
    for (std::size_t s = 0; s < layout.stretches.size(); ++s) {
        sources_[by_cluster ? static_cast<std::size_t>(layout.cluster_of[s]) : 0].add(
            first, layout.stretches[s], how_.block);
        first += layout.stretches[s];
    }
}

void Resampler::Source::add(std::int64_t first, std::int64_t length, std::int64_t block) {
    stretches.push_back({first, length});
    weights.push_back((weights.empty() ? 0 : weights.back()) +
                      static_cast<std::uint64_t>(std::max(length, block)));
    tokens += length;
}

std::int64_t Resampler::replicate(std::uint64_t r, std::span<double> total) const {
    std::fill(total.begin(), total.end(), 0.0);
    const std::uint64_t stream = splitmix64(seed_, r);
    if (how_.unit == ResamplingUnit::blocks) {
        draw_blocks(sources_.front(), stream, total);
        return sources_.front().tokens;
    }
    if (how_.unit == ResamplingUnit::clusters) {
        double tokens = 0;
        draw_clusters(stream, total, tokens);
        return static_cast<std::int64_t>(tokens);
    }
    std::int64_t tokens = 0;
    const std::uint64_t clusters = sources_.size();
    for (std::uint64_t i = 0; i < clusters; ++i) {
        const Source& source = sources_[bounded(splitmix64(stream, i), clusters)];
        draw_blocks(source, splitmix64(stream, clusters + i), total);
        tokens += source.tokens;
    }
    return tokens;
}

void Resampler::draw_clusters(std::uint64_t stream, std::span<double> total, double& tokens) const {
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
    tokens = sum[total.size()];
}

void Resampler::draw_blocks(const Source& source, std::uint64_t stream, std::span<double> total) const {
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
    for (std::int64_t missing = source.tokens; missing > 0;) {
        std::size_t drawn = 0;
        while (drawn + 1 < ahead && missing > 0) {
            const std::uint64_t place = bounded(splitmix64(stream, draw++), source.weights.back());
            const auto found = std::upper_bound(source.weights.begin(), source.weights.end(), place);
            const Stretch& stretch =
                source.stretches[static_cast<std::size_t>(found - source.weights.begin())];
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
