// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/digests.h"

#include "core/trace/rows.h"

#include <bit>
#include <cmath>
#include <zlib.h>

namespace ponderscope {

namespace {

/// Number of values for one call of crc32, which is fast only on long arrays.
constexpr std::size_t most_waiting = 4096;
constexpr std::uint64_t null_bits = 0x7FF8000000000000;

static_assert(std::endian::native == std::endian::little); // for the digest's bytes

} // namespace

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) {
    return static_cast<std::uint32_t>(
        ::crc32_z(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

void RowDigest::add(std::int64_t value) {
    if (waiting_.size() == most_waiting) {
        fold();
    }
    waiting_.push_back(std::bit_cast<std::uint64_t>(value));
}

void RowDigest::add(double value) {
    add(std::bit_cast<std::int64_t>(std::isnan(value) ? null_bits
                                                      : std::bit_cast<std::uint64_t>(value + 0.0)));
}

void RowDigest::add(const TokenColumns& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        schema::each_token_number(tokens, i, [&](const auto number) { add(number); });
    }
}

void RowDigest::add(const Statement& row) {
    int column = 0;
    schema::each_token_field([&](const auto& field) {
        using Value = typename std::decay_t<decltype(TokenColumns().*field.values)>::value_type;
        ++column;
        if constexpr (std::is_floating_point_v<Value>) {
            add(row.real(column));
        } else {
            add(row.integer(column));
        }
    });
}

void TotalsCounter::add(const TokenColumns& tokens) {
    // Add token by token, so that the rounding of sums does not depend on the parts.
    const bool spans = !tokens.begin.empty();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (target_open_ && spans) { // this token is the target of the preceding token
            totals_.scored_bytes += static_cast<std::int64_t>(tokens.end[i] - tokens.begin[i]);
        }
        target_open_ = !std::isnan(tokens.nll[i]);
        if (target_open_) {
            ++totals_.scored_tokens;
            totals_.nll_sum += tokens.nll[i];
            totals_.steps_sum += tokens.steps[i];
        }
        totals_.flops_sum += static_cast<double>(tokens.flops[i]);
    }
    totals_.tokens += static_cast<std::int64_t>(tokens.size());
}

void RowDigest::fold() {
    crc_ = crc32_of(std::as_bytes(std::span(waiting_)), crc_);
    waiting_.clear();
}

std::uint32_t RowDigest::value() {
    fold();
    return crc_;
}

void RowDigest::clear() {
    waiting_.clear();
    crc_ = 0;
}

} // namespace ponderscope
