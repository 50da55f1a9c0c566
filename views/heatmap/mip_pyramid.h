// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// A long heatmap at lower and lower resolution, so that painting costs the pixels and not the tokens: blocks
/// of `base` rows, then of four times as many, and so on, each with the sum and the number of values of every
/// step. Takes 8 bytes a step and 12 rows. A value, never changed after it was built; any
/// thread.
class MipPyramid {
public:
    static constexpr std::int64_t base = 16;  ///< rows in a block of the finest level
    static constexpr std::int64_t factor = 4; ///< blocks in one of the next level

    struct Block {
        float sum = 0;
        std::uint32_t count = 0; ///< of values; the highest bit: the step ran for some row
        static constexpr std::uint32_t ran_bit = 1U << 31;
        [[nodiscard]] std::uint32_t values() const { return count & ~ran_bit; }
        [[nodiscard]] bool ran() const { return (count & ran_bit) != 0; }
        void add(const Block& other);
    };

    /// Takes the rows in their order, some at a time, so that no more than that is ever in memory.
    class Builder {
    public:
        /// \p rows, \p steps: of the whole. std::invalid_argument for sizes below 1 or beyond what can be
        /// held.
        Builder(std::int64_t rows, std::int64_t steps);
        /// \p values [n * steps], NaN: none. \p executed [n]: the last step that ran.
        void add(std::span<const float> values, std::span<const std::int32_t> executed);
        /// The coarser levels and the quantiles. Rows that were not given have no values and ran nothing.
        [[nodiscard]] MipPyramid finish() &&;

    private:
        friend class MipPyramid;
        std::int64_t rows_ = 0;
        std::int64_t steps_ = 0;
        std::int64_t next_ = 0;
        std::int64_t sample_every_ = 1;
        std::vector<Block> finest_;
        std::vector<float> sample_;
        bool has_halted_ = false;
    };

    [[nodiscard]] std::int64_t rows() const { return rows_; }
    [[nodiscard]] std::int64_t steps() const { return steps_; }
    [[nodiscard]] bool hasHalted() const { return has_halted_; }
    /// Rows of a block of a level.
    [[nodiscard]] static std::int64_t extent(std::size_t level);
    [[nodiscard]] std::size_t levels() const { return levels_.size(); }
    [[nodiscard]] const Block& block(std::size_t level, std::int64_t number, std::int64_t step) const;
    /// The blocks of a step that begin in rows [begin, end), or else the block with \p begin, at the coarsest
    /// level whose blocks are not wider than that range.
    [[nodiscard]] Block over(std::int64_t begin, std::int64_t end, std::int64_t step) const;
    /// A quantile, from a sample of the values; NaN without any.
    [[nodiscard]] double quantile(double share) const;
    [[nodiscard]] std::size_t bytes() const;

private:
    std::int64_t rows_ = 0;
    std::int64_t steps_ = 0;
    bool has_halted_ = false;
    std::vector<std::vector<Block>> levels_; ///< [block * steps + step]
    std::vector<float> quantiles_;           ///< 0, 0.1 %, … 100 %
};

} // namespace ponderscope
