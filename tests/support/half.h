// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/half.h"

namespace ponderscope {

/// IEEE 754 binary16, rounded to nearest, ties to even. Values that are too large become infinity; a NaN
/// becomes a quiet NaN. The results equal those of torch.
constexpr std::uint16_t float_to_float16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) {
        return static_cast<std::uint16_t>(sign | 0x7E00U);
    }
    if (magnitude >= 0x477FF000U) { // 65520 and above round to infinity
        return static_cast<std::uint16_t>(sign | 0x7C00U);
    }
    if (magnitude < 0x38800000U) {      // below 2^-14: subnormal, in units of 2^-24
        if (magnitude <= 0x33000000U) { // up to 2^-25, the tie with zero
            return sign;
        }
        const std::uint32_t exponent = magnitude >> 23U;
        const std::uint32_t mantissa = (magnitude & 0x7FFFFFU) | 0x800000U;
        const std::uint32_t shift = 126U - exponent;
        const std::uint32_t result = mantissa >> shift;
        const std::uint32_t rest = mantissa & ((1U << shift) - 1U);
        const std::uint32_t half = 1U << (shift - 1U);
        const bool up = rest > half || (rest == half && (result & 1U) != 0);
        return static_cast<std::uint16_t>(sign | (result + (up ? 1U : 0U)));
    }
    const std::uint32_t rebased = magnitude - (112U << 23U);
    const std::uint32_t rounded = rebased + 0xFFFU + ((rebased >> 13U) & 1U);
    return static_cast<std::uint16_t>(sign | (rounded >> 13U));
}

} // namespace ponderscope
