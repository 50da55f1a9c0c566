// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/mip_pyramid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace ponderscope {
namespace {

constexpr std::size_t quantile_count = 1001;
constexpr std::int64_t most_cells = std::int64_t{1} << 32; ///< of the finest level: 48 GB, far beyond use

std::int64_t blocks_of(std::int64_t rows, std::int64_t extent) {
    return (rows + extent - 1) / extent;
}

} // namespace

void MipPyramid::Block::add(const Block& other) {
    sum += other.sum;
    count = ((values() + other.values()) & ~ran_bit) | ((count | other.count) & ran_bit);
}

MipPyramid::Builder::Builder(std::int64_t rows, std::int64_t steps) : rows_(rows), steps_(steps) {
    if (rows < 1 || steps < 1 || steps > (1 << 20) || blocks_of(rows, base) > most_cells / steps) {
        throw std::invalid_argument("MipPyramid: rows and steps out of range");
    }
    finest_.resize(static_cast<std::size_t>(blocks_of(rows, base) * steps));
    constexpr std::int64_t enough = 200'000;
    sample_every_ = rows * steps / enough + 1;
}

void MipPyramid::Builder::add(std::span<const float> values, std::span<const std::int32_t> executed) {
    const auto count = std::min({static_cast<std::int64_t>(executed.size()),
                                 static_cast<std::int64_t>(values.size()) / steps_, rows_ - next_});
    for (std::int64_t i = 0; i < count; ++i, ++next_) {
        const std::int32_t last = executed[static_cast<std::size_t>(i)];
        Block* block = finest_.data() + next_ / base * steps_;
        const float* row = values.data() + i * steps_;
        has_halted_ = has_halted_ || last + std::int64_t{1} < steps_;
        for (std::int64_t step = 0; step < steps_ && step <= last; ++step) {
            Block& cell = block[step];
            cell.count |= Block::ran_bit;
            const float value = row[step];
            if (std::isnan(value)) {
                continue;
            }
            cell.sum += value;
            ++cell.count;
            if ((next_ * steps_ + step) % sample_every_ == 0 && std::isfinite(value)) {
                sample_.push_back(value);
            }
        }
    }
}

MipPyramid MipPyramid::Builder::finish() && {
    MipPyramid made;
    made.rows_ = rows_;
    made.steps_ = steps_;
    made.has_halted_ = has_halted_;
    made.levels_.push_back(std::move(finest_));
    for (std::int64_t fine = blocks_of(rows_, base); fine > 1;) {
        const std::int64_t coarse = blocks_of(fine, factor);
        const std::vector<Block>& from = made.levels_.back();
        std::vector<Block> to(static_cast<std::size_t>(coarse * steps_));
        for (std::int64_t block = 0; block < fine; ++block) {
            for (std::int64_t step = 0; step < steps_; ++step) {
                to[static_cast<std::size_t>(block / factor * steps_ + step)].add(
                    from[static_cast<std::size_t>(block * steps_ + step)]);
            }
        }
        made.levels_.push_back(std::move(to));
        fine = coarse;
    }
    if (!sample_.empty()) {
        std::sort(sample_.begin(), sample_.end());
        for (std::size_t i = 0; i < quantile_count; ++i) {
            made.quantiles_.push_back(sample_[(sample_.size() - 1) * i / (quantile_count - 1)]);
        }
    }
    return made;
}

std::int64_t MipPyramid::extent(std::size_t level) {
    std::int64_t rows = base;
    for (; level > 0; --level) {
        rows *= factor;
    }
    return rows;
}

const MipPyramid::Block& MipPyramid::block(std::size_t level, std::int64_t number, std::int64_t step) const {
    return levels_[level][static_cast<std::size_t>(number * steps_ + step)];
}

MipPyramid::Block MipPyramid::over(std::int64_t begin, std::int64_t end, std::int64_t step) const {
    begin = std::clamp<std::int64_t>(begin, 0, rows_ - 1);
    end = std::clamp<std::int64_t>(end, begin + 1, rows_);
    std::size_t level = 0;
    std::int64_t wide = base;
    while (level + 1 < levels_.size() && wide * factor <= end - begin) {
        ++level;
        wide *= factor;
    }
    std::int64_t number = (begin + wide - 1) / wide;
    if (number * wide >= end) {
        return block(level, begin / wide, step);
    }
    Block result;
    for (; number * wide < end; ++number) {
        result.add(block(level, number, step));
    }
    return result;
}

double MipPyramid::quantile(double share) const {
    if (quantiles_.empty()) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(quantiles_.size() - 1);
    return static_cast<double>(quantiles_[static_cast<std::size_t>(std::lround(place))]);
}

std::size_t MipPyramid::bytes() const {
    std::size_t sum = quantiles_.size() * sizeof(float);
    for (const std::vector<Block>& level : levels_) {
        sum += level.size() * sizeof(Block);
    }
    return sum;
}

} // namespace ponderscope
