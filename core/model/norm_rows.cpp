// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/norm_rows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace ponderscope {

namespace {

/// Partial sums in a fixed order, so that compilers may use vectors and every row gives the same result
/// wherever it stands.
constexpr std::int64_t lanes = 16;

struct Moments {
    float mean;
    float scale;
};

Moments moments(const float* x, std::int64_t d, NormKind kind, float eps) {
    const bool centred = kind == NormKind::layer_norm;
    float mean = 0;
    if (centred) {
        float partial[lanes] = {};
        std::int64_t j = 0;
        for (; j + lanes <= d; j += lanes) {
            for (std::int64_t i = 0; i < lanes; ++i) {
                partial[i] += x[j + i];
            }
        }
        for (; j < d; ++j) {
            partial[0] += x[j];
        }
        for (const float sum : partial) {
            mean += sum;
        }
        mean /= static_cast<float>(d);
    }
    float partial[lanes] = {};
    std::int64_t j = 0;
    for (; j + lanes <= d; j += lanes) {
        for (std::int64_t i = 0; i < lanes; ++i) {
            const float centre = x[j + i] - mean;
            partial[i] += centre * centre;
        }
    }
    for (; j < d; ++j) {
        partial[0] += (x[j] - mean) * (x[j] - mean);
    }
    float squares = 0;
    for (const float sum : partial) {
        squares += sum;
    }
    const float divisor = kind == NormKind::unit ? 1.0F : static_cast<float>(d);
    return {mean, 1.0F / std::sqrt(squares / divisor + eps)};
}

} // namespace

void norm_rows(at::Tensor& out, const at::Tensor& x, NormKind kind, const at::Tensor& weight,
               const at::Tensor& bias, double eps) {
    TORCH_CHECK(x.is_contiguous() && out.is_contiguous() && x.scalar_type() == at::kFloat,
                "norm_rows: wrong layout");
    const std::int64_t n = x.size(0);
    const std::int64_t d = x.size(1);
    const float* source = x.const_data_ptr<float>();
    auto* target = out.mutable_data_ptr<float>();
    const float* w = weight.defined() ? weight.const_data_ptr<float>() : nullptr;
    const float* b = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
    at::parallel_for(0, n, std::max<std::int64_t>(1, 16384 / d), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const float* __restrict a = source + i * d;
            float* __restrict y = target + i * d;
            const Moments m = moments(a, d, kind, static_cast<float>(eps));
            for (std::int64_t j = 0; j < d; ++j) {
                y[j] = (a[j] - m.mean) * m.scale;
            }
            if (w != nullptr) {
                for (std::int64_t j = 0; j < d; ++j) {
                    y[j] *= w[j];
                }
            }
            if (b != nullptr) {
                for (std::int64_t j = 0; j < d; ++j) {
                    y[j] += b[j];
                }
            }
        }
    });
}

} // namespace ponderscope
