// SPDX-License-Identifier: GPL-3.0-or-later
// What the kernels use of CUDA's header of this name, on the host.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

struct __nv_bfloat16 {
    std::uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 x) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

/// To the nearest; of two as near, to the even one.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    if (std::isnan(x)) {
        return {0x7fff};
    }
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
