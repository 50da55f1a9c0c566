// SPDX-License-Identifier: GPL-3.0-or-later
// What the kernels use of CUDA's header of this name, on the host.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

struct __half {
    std::uint16_t bits;
};

inline float __half2float(__half x) {
    const int exponent = x.bits >> 10 & 31;
    const int digits = x.bits & 1023;
    const float sign = (x.bits & 0x8000) != 0 ? -1.0F : 1.0F;
    if (exponent == 31) {
        return sign * (digits == 0 ? INFINITY : NAN);
    }
    return sign * (exponent == 0 ? std::ldexp(static_cast<float>(digits), -24)
                                 : std::ldexp(static_cast<float>(1024 + digits), exponent - 25));
}

/// To the nearest; of two as near, to the even one.
inline __half __float2half_rn(float x) {
    const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16 & 0x8000);
    const float size = std::fabs(x);
    const auto with_sign = [&](int bits) { return __half{static_cast<std::uint16_t>(sign | bits)}; };
    if (std::isnan(x)) {
        return __half{0x7fff};
    }
    if (size >= 65520.0F) {
        return with_sign(0x7c00);
    }
    if (size == 0) {
        return with_sign(0);
    }
    int exponent = 0;
    std::frexp(size, &exponent);
    exponent = exponent < -13 ? -13 : exponent; // of subnormal numbers
    // In units of the last place: 1024 .. 2048, or less of a subnormal one. A carry moves the exponent up.
    const int units = static_cast<int>(std::nearbyint(std::ldexp(size, 11 - exponent)));
    return with_sign(units + (exponent + 13) * 1024);
}
