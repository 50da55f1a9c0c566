// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/reader.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// What the engine puts behind the name of a signal that it stores as SignalStorage::summed.
inline constexpr std::string_view summed_suffix = ".sum";

/// Sums of a signal over the tokens of a run's finished sequences, for every index of the other axes: as much
/// for a billion tokens as for one. Whole numbers, so that the order does not matter and the sums of shards
/// equal those of the whole run bit for bit.
struct SignalSums {
    std::vector<std::int64_t> shape;   ///< of a token's values
    std::vector<std::int64_t> counts;  ///< [shape] values that are numbers
    std::vector<std::int64_t> sums;    ///< [shape] in units of 2^-24: exact for fp16
    std::vector<std::int64_t> squares; ///< [shape] in units of 2^-28, the square of each value rounded

    /// InputError: values of another shape than before, or an overflow of 63 bits (ten thousand million
    /// values of 1).
    void add(const SignalChunk& chunk);
    void add(const SignalSums& more);
    [[nodiscard]] std::size_t size() const { return counts.size(); }
    [[nodiscard]] double mean(std::size_t place) const;     ///< NaN without a value
    [[nodiscard]] double variance(std::size_t place) const; ///< over the values; NaN without one
    /// Whether any value was other than zero: a layer has no weight for a source that it does not have.
    [[nodiscard]] bool any(std::size_t place) const { return sums[place] != 0 || squares[place] != 0; }

    /// As it lies in the column signal_sum.data: counts, sums, squares, little-endian.
    [[nodiscard]] std::vector<std::byte> bytes() const;
    /// Nothing where shape, bytes and CRC-32 do not agree.
    static std::optional<SignalSums> from(const std::string& shape, std::span<const std::byte> bytes,
                                          std::int64_t crc32);
};

/// The sums of a signal of a run, in one trace or over all of its shards. Empty if the signal is not summed
/// or the run has no sums. InputError: damage.
std::optional<SignalSums> signal_sums(const TraceReader& trace, const RunInfo& run, const SignalInfo& signal);

} // namespace ponderscope
