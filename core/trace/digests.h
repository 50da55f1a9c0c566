// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/database.h"
#include "core/trace/records.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// CRC-32 as zlib, zip and PNG have it (ISO 3309): every program can check it. Notices any change within 32
/// bits, and another with a chance of 1 - 2^-32. Against accidents, not against forgers. \p before: CRC of
/// the bytes before these.
std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The CRC-32 of the rows of a sequence in token_row, in their order: the columns from id to flops, each as 8
/// little-endian bytes, whole numbers as int64, others as binary64 (-0 as 0), NULL as the NaN
/// 0x7FF8000000000000.
class RowDigest {
public:
    void add(const TokenColumns& tokens);
    /// A row of a SELECT of all columns of token_row. Its own values: TokenColumns rounds them.
    void add(const Statement& row);
    [[nodiscard]] std::uint32_t value();
    void clear();

private:
    void add(std::int64_t value);
    void add(double value); ///< NaN is NULL
    void fold();
    std::vector<std::uint64_t> waiting_;
    std::uint32_t crc_ = 0;
};

/// The totals of a sequence whose tokens come in their order, in parts of any length.
class TotalsCounter {
public:
    void add(const TokenColumns& tokens);
    [[nodiscard]] const TokenTotals& totals() const { return totals_; }

private:
    TokenTotals totals_;
    bool target_open_ = false; ///< the last token so far was scored: the next one's bytes count
};

} // namespace ponderscope
