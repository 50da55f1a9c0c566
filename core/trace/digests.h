// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/database.h"
#include "core/trace/records.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// The CRC-32 of zlib, zip and PNG (ISO 3309), which other programs can compute. Detects every change within
/// 32 consecutive bits, and other changes with probability 1 - 2^-32. Does not protect against forgery. \p
/// before: CRC of the preceding bytes.
std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The CRC-32 of a sequence's rows in token_row, in their order: the columns from id to flops, each as 8
/// little-endian bytes. Integers are int64, other numbers binary64 (-0 as 0); NULL is the NaN
/// 0x7FF8000000000000.
class RowDigest {
public:
    void add(const TokenColumns& tokens);
    /// Adds a row from a SELECT of all columns of token_row. Uses the stored values, because TokenColumns
    /// would round them.
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

/// Computes the totals of a sequence whose tokens arrive in order, in parts of any length.
class TotalsCounter {
public:
    void add(const TokenColumns& tokens);
    [[nodiscard]] const TokenTotals& totals() const { return totals_; }

private:
    TokenTotals totals_;
    bool target_open_ = false; ///< the next token is a scored target: count its bytes
};

} // namespace ponderscope
