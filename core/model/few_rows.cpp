// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/few_rows.h"

#include "core/model/kernels/tile.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace ponderscope {

namespace {

/// Rows from which on the library's product is the faster one: it packs the weight once for all of them.
constexpr std::int64_t many = 48;
/// Multiplications for which another thread is woken.
constexpr std::int64_t least_share = 1 << 20;

bool dense(const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kFloat && tensor.is_cpu() && tensor.is_contiguous();
}

} // namespace

bool few_rows(const at::Tensor& x, const at::Tensor& weight) {
    return x.size(0) < many && dense(x) && dense(weight);
}

void multiply_few_rows(at::Tensor& out, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       bool add) {
    TORCH_CHECK(dense(out), "multiply_few_rows: wrong layout");
    RECORD_FUNCTION("ponderscope::few_rows", std::vector<c10::IValue>({x, weight})); // for profilers
    const std::int64_t n = x.size(0);
    const std::int64_t depth = weight.size(1);
    const std::int64_t outputs = weight.size(0);
    const float* table = weight.const_data_ptr<float>();
    const float* from = x.const_data_ptr<float>();
    const float* offsets = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
    float* to = out.mutable_data_ptr<float>();
    const auto& kernels = kernels::tile_kernels();
    const std::int64_t share = least_share / std::max<std::int64_t>(1, n * depth);
    at::parallel_for(
        0, outputs, std::max<std::int64_t>(64, share), [&](std::int64_t begin, std::int64_t end) {
            kernels.dots(table + begin * depth, depth, end - begin, depth, from, depth, n, 1.0F,
                         offsets != nullptr ? offsets + begin : nullptr, to + begin, outputs, add);
        });
}

at::Tensor multiply_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    if (at::GradMode::is_enabled() || !few_rows(x, weight)) {
        return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
    }
    at::Tensor out = at::empty({x.size(0), weight.size(0)}, x.options());
    multiply_few_rows(out, x, weight, bias, false);
    return out;
}

} // namespace ponderscope
