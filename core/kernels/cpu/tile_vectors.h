// SPDX-License-Identifier: GPL-3.0-or-later
// Vectors as wide as the instruction set of the compiled file. Only for tile_loops.h; built-in types only,
// for the reason given there.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_FMA)
#include <arm_neon.h>
#endif

namespace ponderscope::kernels {
namespace {

#if defined(__AVX2__)
constexpr int lane_count = 8;
#else
constexpr int lane_count = 4;
#endif
using Vector = float __attribute__((vector_size(4 * lane_count)));
using Integers = std::int32_t __attribute__((vector_size(4 * lane_count)));

inline Vector splat(float value) {
    return value - Vector{};
}

inline Integers splat(std::int32_t value) {
    return value - Integers{};
}

inline Vector as_vector(Integers bits) {
    return reinterpret_cast<Vector>(bits);
}

inline Integers as_integers(Vector value) {
    return reinterpret_cast<Integers>(value);
}

inline const Vector* vectors_at(const float* pointer) {
    return reinterpret_cast<const Vector*>(pointer);
}

inline Vector* vectors_at(float* pointer) {
    return reinterpret_cast<Vector*>(pointer);
}

/// a · b + c, rounded once if the processor can. Explicit, because a compiler decides by the surrounding code
/// whether to contract, but a column's result must not depend on this code.
inline Vector multiply_add(Vector a, Vector b, Vector c) {
#if defined(__AVX2__) && defined(__FMA__)
    return reinterpret_cast<Vector>(_mm256_fmadd_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b),
                                                    reinterpret_cast<__m256>(c)));
#elif defined(__ARM_FEATURE_FMA)
    return reinterpret_cast<Vector>(vfmaq_f32(reinterpret_cast<float32x4_t>(c),
                                              reinterpret_cast<float32x4_t>(a),
                                              reinterpret_cast<float32x4_t>(b)));
#else
    return a * b + c;
#endif
}

/// exp for x <= 0: 2^n times a polynomial in the remainder. The multiplication keeps NaN a NaN.
inline Vector exponential_of(Vector x) {
    constexpr float lowest = -87.33654F;   // the least x whose exp is a normal number
    constexpr float shifter = 12582912.0F; // 1.5 · 2^23: adding it rounds to an integer
    const Vector inside = x < lowest ? splat(lowest) : x;
    const Vector shifted = multiply_add(inside, splat(1.44269504F), splat(shifter));
    const Vector n = shifted - shifter;
    // ln 2 in two parts, the first short enough for n times it to be exact.
    const Vector r = multiply_add(n, splat(2.12194440e-4F), multiply_add(n, splat(-0.693359375F), inside));
    // Minimax on [-ln2/2, ln2/2], relative error below 2^-24 before rounding.
    constexpr float terms[] = {1.39819995e-3F, 8.33345205e-3F, 4.16657962e-2F, 1.66666657e-1F, 5.0e-1F};
    Vector p = splat(1.98756915e-4F);
    for (const float term : terms) {
        p = multiply_add(p, r, splat(term));
    }
    p = multiply_add(p, r * r, r) + 1.0F;
    const Integers exponent = (as_integers(shifted) - as_integers(splat(shifter)) + 127) << 23;
    return x < lowest ? Vector{} : p * as_vector(exponent);
}

} // namespace
} // namespace ponderscope::kernels
