// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda/attend_ranges.h"
#include "tests/support/host_cuda/host_cuda.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

/// Inputs of the kernels' tests, and what they are compared with.
namespace ponderscope::kernels::testing {

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr std::array elements = {Element::f32, Element::f16, Element::bf16};
inline constexpr std::array orders = {host_cuda::Order::forward, host_cuda::Order::backward,
                                      host_cuda::Order::shuffled};

/// Of all shapes, every how manyeth is run. ThreadSanitizer takes twenty times as long, and a race does not
/// care for the shape.
#if defined(__SANITIZE_THREAD__)
inline constexpr std::int64_t shape_step = 17;
#else
inline constexpr std::int64_t shape_step = 1;
#endif

inline const char* name_of(Element element) {
    return element == Element::f32 ? "f32" : element == Element::f16 ? "f16" : "bf16";
}

class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::int64_t below(std::int64_t end) {
        return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end));
    }
    bool one_of(std::int64_t count) { return below(count) == 0; }
    float normal() { return normal_(engine_); }
    std::uint64_t seed() { return engine_(); }

private:
    std::mt19937_64 engine_;
    std::normal_distribution<float> normal_;
};

/// Numbers of one dtype as they lie in memory, with nothing behind the last one, so that AddressSanitizer
/// sees who reads on.
class Numbers {
public:
    Numbers() = default;
    Numbers(Element element, std::int64_t count, float value) : element_(element) {
        bytes_.resize(static_cast<std::size_t>(count * size()));
        for (std::int64_t i = 0; i < count; ++i) {
            set(i, value);
        }
    }
    [[nodiscard]] std::int64_t size() const { return element_ == Element::f32 ? 4 : 2; }
    [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(bytes_.size()) / size(); }
    void* data() { return bytes_.data(); }
    [[nodiscard]] const void* data() const { return bytes_.data(); }
    [[nodiscard]] const std::vector<unsigned char>& bytes() const { return bytes_; }

    void set(std::int64_t at, float value) {
        if (element_ == Element::f32) {
            put(at, value);
        } else if (element_ == Element::f16) {
            put(at, __float2half_rn(value));
        } else {
            put(at, __float2bfloat16_rn(value));
        }
    }
    [[nodiscard]] double operator[](std::int64_t at) const {
        switch (element_) {
        case Element::f32:
            return static_cast<double>(get<float>(at));
        case Element::f16:
            return static_cast<double>(__half2float(get<__half>(at)));
        default:
            return static_cast<double>(__bfloat162float(get<__nv_bfloat16>(at)));
        }
    }

private:
    template <typename T>
    void put(std::int64_t at, T value) {
        std::memcpy(bytes_.data() + at * size(), &value, sizeof value);
    }
    template <typename T>
    [[nodiscard]] T get(std::int64_t at) const {
        T value;
        std::memcpy(&value, bytes_.data() + at * size(), sizeof value);
        return value;
    }

    Element element_ = Element::f32;
    std::vector<unsigned char> bytes_;
};

/// How far `got` is from `expected` beyond `allowed` and what rounding the result to its dtype explains;
/// infinite where one of them is NaN or infinite and the other is not the same.
inline double excess(double got, double expected, Element element, double allowed = 0) {
    if (std::isnan(expected) || std::isnan(got)) {
        return std::isnan(expected) && std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
    }
    if (got == expected) {
        return 0;
    }
    const double rounding = element == Element::f32   ? 0
                            : element == Element::f16 ? std::fabs(expected) * 0x1p-11 + 0x1p-25
                                                      : std::fabs(expected) * 0x1p-8;
    return std::max(0.0, std::fabs(got - expected) - rounding - allowed);
}

/// Σ weights · values; a NaN counts even where its weight is 0.
template <typename Value>
double softmax_sum(const std::vector<double>& weights, const Value& value) {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        sum += weights[i] * value(i);
    }
    return sum;
}

inline void softmax(std::vector<double>& scores) {
    double maximum = -std::numeric_limits<double>::infinity();
    for (const double score : scores) {
        maximum = score > maximum ? score : maximum;
    }
    double sum = 0;
    for (double& score : scores) {
        score = std::exp(score - maximum);
        sum += score;
    }
    for (double& score : scores) {
        score /= sum;
    }
}

} // namespace ponderscope::kernels::testing
