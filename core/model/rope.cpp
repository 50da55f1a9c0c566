// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/rope.h"

#include "core/kernels/cuda_library.h"
#include "core/kernels/gradient.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace ponderscope {

namespace {

/// theta^(2i / dims), i = 0 .. dims/2 - 1.
at::Tensor powers(double theta, std::int64_t dims) {
    return at::pow(theta, at::arange(0, dims, 2, at::kLong).to(at::kFloat) / static_cast<double>(dims));
}

at::Tensor llama3_frequencies(const RopeConfig& rope, const at::Tensor& plain) {
    const auto original = static_cast<double>(rope.original_max_positions);
    const at::Tensor wavelength = 2 * std::numbers::pi / plain;
    const at::Tensor slowed = plain / rope.factor;
    const at::Tensor blend =
        (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
    const at::Tensor between = (1 - blend) * slowed + blend * plain;
    const at::Tensor is_low = wavelength > original / rope.low_freq_factor;
    const at::Tensor is_high = wavelength < original / rope.high_freq_factor;
    return at::where(is_low, slowed, at::where(is_high, plain, between));
}

/// YaRN (arXiv 2309.00071): interpolates slow pairs and keeps fast pairs, with a ramp between the two
/// correction dimensions.
at::Tensor yarn_frequencies(const RopeConfig& rope) {
    const auto dims = static_cast<double>(rope.rotary_dims);
    const auto correction = [&](double rotations) {
        return dims *
               std::log(static_cast<double>(rope.original_max_positions) /
                        (rotations * 2 * std::numbers::pi)) /
               (2 * std::log(rope.theta));
    };
    double low = correction(rope.beta_fast);
    double high = correction(rope.beta_slow);
    if (rope.truncate) {
        low = std::floor(low);
        high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dims - 1);
    if (low == high) {
        high += 0.001; // the width of the ramp must not be 0
    }
    const at::Tensor ramp = ((at::arange(rope.rotary_dims / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
    const at::Tensor power = powers(rope.theta, rope.rotary_dims);
    return ramp / (rope.factor * power) + (1 - ramp) / power;
}

/// The angle per position of each pair, fp32 [rotary_dims / 2].
at::Tensor rope_frequencies(const RopeConfig& rope, std::int64_t max_positions, std::int64_t length) {
    double theta = rope.theta;
    if (rope.kind == RopeConfig::Kind::dynamic && length > max_positions) {
        const auto dims = static_cast<double>(rope.rotary_dims);
        const double stretch =
            rope.factor * static_cast<double>(length) / static_cast<double>(max_positions) -
            (rope.factor - 1);
        theta *= std::pow(stretch, dims / (dims - 2));
    }
    if (rope.kind == RopeConfig::Kind::yarn) {
        return yarn_frequencies(rope);
    }
    if (rope.kind == RopeConfig::Kind::longrope) {
        const auto& factors = length > rope.original_max_positions ? rope.long_factor : rope.short_factor;
        return 1.0 / (at::tensor(factors, at::kFloat) * powers(theta, rope.rotary_dims));
    }
    const at::Tensor plain = 1.0 / powers(theta, rope.rotary_dims);
    switch (rope.kind) {
    case RopeConfig::Kind::linear:
        return plain / rope.factor;
    case RopeConfig::Kind::llama3:
        return llama3_frequencies(rope, plain);
    default:
        return plain;
    }
}

double yarn_mscale(double scale, double mscale) {
    return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

} // namespace

double rope_attention_factor(const RopeConfig& rope) {
    if (rope.kind != RopeConfig::Kind::yarn && rope.kind != RopeConfig::Kind::longrope) {
        return 1.0;
    }
    if (rope.attention_factor) {
        return *rope.attention_factor;
    }
    if (rope.kind == RopeConfig::Kind::longrope) {
        const auto original = static_cast<double>(rope.original_max_positions);
        return rope.factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(rope.factor) / std::log(original));
    }
    const double mscale = rope.mscale.value_or(0);
    const double all = rope.mscale_all_dim.value_or(0);
    return mscale != 0 && all != 0 ? yarn_mscale(rope.factor, mscale) / yarn_mscale(rope.factor, all)
                                   : yarn_mscale(rope.factor, 1.0);
}

std::pair<at::Tensor, at::Tensor> rope_table(const RopeConfig& rope, std::int64_t max_positions,
                                             std::int64_t length, std::int64_t positions) {
    const at::Tensor frequencies = rope_frequencies(rope, max_positions, length);
    const at::Tensor angles = at::outer(at::arange(positions, at::kFloat), frequencies);
    // nanochat: norms of queries and keys cancel the factor, except for their eps (llama.cpp).
    const double factor = rope.reversed ? 1.0 : rope_attention_factor(rope);
    return {(angles.cos() * factor).contiguous(),
            (angles.sin() * (rope.reversed ? -factor : factor)).contiguous()};
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, const at::Tensor& rows,
                  bool neighbours) {
    const std::int64_t half = cos.size(1);
    const CudaKernels* cuda = wants_gradient(x) ? nullptr : cuda_kernels(x);
    if (cuda != nullptr && cuda->rotate_fits(x)) {
        return cuda->rotate(x, cos.contiguous(), sin.contiguous(), rows.contiguous(), neighbours);
    }
    const at::Tensor c = cos.index_select(0, rows).unsqueeze(1);
    const at::Tensor s = sin.index_select(0, rows).unsqueeze(1);
    const std::int64_t pair = neighbours ? 3 : 2; // [n, heads, r, 2] or [n, heads, 2, r]
    const at::Tensor pairs = x.narrow(2, 0, 2 * half)
                                 .to(at::kFloat)
                                 .unflatten(2, neighbours ? std::vector{half, std::int64_t{2}}
                                                          : std::vector{std::int64_t{2}, half});
    const at::Tensor a = pairs.select(pair, 0);
    const at::Tensor b = pairs.select(pair, 1);
    const at::Tensor turned = at::stack({a * c - b * s, b * c + a * s}, pair).flatten(2).to(x.scalar_type());
    const std::int64_t rest = x.size(2) - 2 * half;
    return rest == 0 ? turned : at::cat({turned, x.narrow(2, 2 * half, rest)}, 2);
}

} // namespace ponderscope
