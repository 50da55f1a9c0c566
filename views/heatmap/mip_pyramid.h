// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// A long heatmap at decreasing resolutions, so that the cost of painting depends on pixels and not on
/// tokens: blocks of `base` rows, then of four times as many, and so on. Each block has the sum and the
/// number of values of every step. Takes 8 bytes a step for 12 rows. Immutable: any thread may read.
class MipPyramid {
public:
    static constexpr std::int64_t base = 16;  ///< rows in a block of the finest level
    static constexpr std::int64_t factor = 4; ///< blocks in one block of the next level

    struct Block {
        float sum = 0;
        std::uint32_t count = 0; ///< number of values; the highest bit: some row ran the step
        static constexpr std::uint32_t ran_bit = 1U << 31;
        [[nodiscard]] std::uint32_t values() const { return count & ~ran_bit; }
        [[nodiscard]] bool ran() const { return (count & ran_bit) != 0; }
        void add(const Block& other);
    };

    /// Takes the rows in order, in parts, so that only one part is in memory.
    class Builder {
    public:
        /// \p rows, \p steps: size of the whole map. std::invalid_argument: a size below 1 or too large.
        Builder(std::int64_t rows, std::int64_t steps);
        /// \p values [n * steps], NaN: no value. \p executed [n]: the last step that ran.
        void add(std::span<const float> values, std::span<const std::int32_t> executed);
        /// Computes the coarser levels and the quantiles. Missing rows have no values and ran no step.
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
    /// Number of rows in a block of a level.
    [[nodiscard]] static std::int64_t extent(std::size_t level);
    [[nodiscard]] std::size_t levels() const { return levels_.size(); }
    [[nodiscard]] const Block& block(std::size_t level, std::int64_t number, std::int64_t step) const;
    /// Merges a step's blocks that begin in rows [begin, end), at the coarsest level whose blocks fit
    /// into the range. If there are none, returns the block that contains \p begin.
    [[nodiscard]] Block over(std::int64_t begin, std::int64_t end, std::int64_t step) const;
    /// A quantile from a sample of the values; NaN without values.
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
