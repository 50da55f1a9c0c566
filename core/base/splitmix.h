// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace ponderscope {

/// Output \p n (from 0) of the SplitMix64 generator with this \p seed. A pure function of both arguments, so
/// the order of calls and the machine have no effect (Steele, Lea, Flood 2014, with Stafford's mix 13).
constexpr std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t n) {
    std::uint64_t z = seed + (n + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
}

/// The upper 53 bits as a number in [0, 1).
constexpr double unit_interval(std::uint64_t bits) {
    return static_cast<double>(bits >> 11U) * 0x1p-53;
}

/// The random number u_t that halting policies use for a token. \p sequence is the sequence's number in the
/// run, from 0; \p position is the position in the sequence.
constexpr double token_draw(std::uint64_t seed, std::uint64_t sequence, std::uint64_t position) {
    return unit_interval(splitmix64(splitmix64(seed, sequence), position));
}

/// Turns 64 random \p bits into a number in [0, bound). All numbers have equal probabilities, up to a
/// relative error of bound / 2^64 (Lemire's multiply-shift). \p bound > 0.
constexpr std::uint64_t bounded(std::uint64_t bits, std::uint64_t bound) {
    const std::uint64_t low = (bits & 0xFFFFFFFFU) * (bound & 0xFFFFFFFFU);
    const std::uint64_t a = (bits >> 32U) * (bound & 0xFFFFFFFFU);
    const std::uint64_t b = (bits & 0xFFFFFFFFU) * (bound >> 32U);
    const std::uint64_t carry = ((low >> 32U) + (a & 0xFFFFFFFFU) + (b & 0xFFFFFFFFU)) >> 32U;
    return (bits >> 32U) * (bound >> 32U) + (a >> 32U) + (b >> 32U) + carry;
}

} // namespace ponderscope
