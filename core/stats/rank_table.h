// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// Ranks of more values than fit into memory: they are counted, and ranks are read off the counts.
///
/// Up to `exact_values` values, ranks are those of average_ranks (correlation.h). Beyond, values that agree
/// in sign, exponent and the first 13 bits behind the leading one (that differ by less than 1/8192 of
/// themselves) share a rank; the table is then some megabytes large, however many there are.
class RankTable {
public:
    static constexpr std::int64_t exact_values = 1 << 22;

    /// \p most: values that will come at most, of all tables that are merged.
    explicit RankTable(std::int64_t most) : exact_(most <= exact_values) {}

    void add(double value) { ///< not NaN
        const std::uint64_t key = key_of(value);
        ++bin(key);
        ++count_;
        if (exact_) {
            keys_.push_back(key);
        }
    }
    void merge(RankTable&& other);
    /// Call when all are there, once.
    void finish();

    [[nodiscard]] std::int64_t count() const { return count_; }
    /// From 1; of a value that was added.
    [[nodiscard]] double rank(double value) const {
        const std::uint64_t key = key_of(value);
        const Page& page = *pages_[key >> mantissa_bits];
        const std::size_t at = bin_of(key);
        return exact_ ? rank_within(page[at], page[at + 1], key)
                      : (static_cast<double>(page[at] + 1) + static_cast<double>(page[at + 1])) / 2;
    }

private:
    static constexpr unsigned bin_bits = 13;
    static constexpr std::size_t bins = std::size_t{1} << bin_bits;
    static constexpr unsigned mantissa_bits = 52;
    /// Values of one sign and exponent: how many lie in each bin; when finished, how many lie before it.
    using Page = std::array<std::int64_t, bins + 1>;

    [[nodiscard]] double rank_within(std::int64_t begin, std::int64_t end, std::uint64_t key) const;
    /// Grows with the value; equal values (0 and -0) have one.
    static std::uint64_t key_of(double value) {
        const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
        constexpr std::uint64_t sign = std::uint64_t{1} << 63U;
        return (bits & sign) != 0 ? ~bits : bits | sign;
    }
    std::int64_t& bin(std::uint64_t key) {
        std::unique_ptr<Page>& page = pages_[key >> mantissa_bits];
        if (!page) {
            page = std::make_unique<Page>();
        }
        return (*page)[bin_of(key)];
    }
    static std::size_t bin_of(std::uint64_t key) { return (key >> (mantissa_bits - bin_bits)) & (bins - 1); }

    bool exact_;
    std::int64_t count_ = 0;
    std::vector<std::unique_ptr<Page>> pages_{std::size_t{1} << (64 - mantissa_bits)};
    std::vector<std::uint64_t> keys_; ///< where exact; sorted when finished
};

/// One of several, at least one, finished.
RankTable merged(std::vector<RankTable> tables);

/// What is to be said beside a rank correlation of so many tokens; nothing where ranks are exact.
std::optional<std::string> rank_notice(std::int64_t tokens);

} // namespace ponderscope
