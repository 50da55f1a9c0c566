// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/unit_linear.h"

#include "core/model/kernels/aligned.h"
#include "core/model/kernels/tile.h"
#include "core/model/matrix_unit.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ponderscope {

namespace {

using kernels::AlignedArray;
using kernels::RowActivation;

/// Rows below which packing the weight costs more than the unit saves.
constexpr std::int64_t least_rows = 64;
/// Outputs and rows that are multiplied at once: few shapes, as the library compiles a kernel for each.
constexpr std::int64_t panel = 128;
constexpr std::int64_t rows_at_once = 32;
/// Rows of x that stay in the second cache while all panels pass by.
constexpr std::int64_t rows_near = 256;

RowActivation of(Activation activation) {
    switch (activation) {
    case Activation::linear:
        return RowActivation::none;
    case Activation::gelu:
        return RowActivation::gelu;
    case Activation::gelu_tanh:
        return RowActivation::gelu_tanh;
    case Activation::relu:
        return RowActivation::relu;
    case Activation::silu:
        return RowActivation::silu;
    case Activation::sigmoid:
        return RowActivation::sigmoid;
    case Activation::tanh:
        return RowActivation::tanh;
    default:
        TORCH_CHECK(false, "unit_linear: an activation that cannot be fused");
    }
}

bool dense_halves(const at::Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == at::kBFloat16 && tensor.is_contiguous();
}

const std::uint16_t* halves(const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<const std::uint16_t*>(tensor.const_data_ptr()) : nullptr;
}

} // namespace

bool unit_multiplies(const at::Tensor& x, const at::Tensor& weight) {
    return x.size(0) >= least_rows && x.size(1) % 2 == 0 && dense_halves(x) && dense_halves(weight) &&
           !c10::GradMode::is_enabled() && MatrixUnit::available();
}

void unit_linear(at::Tensor& out, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                 Workspace& workspace, const AfterProduct& after) {
    const std::int64_t n = x.size(0);
    const std::int64_t depth = x.size(1);
    const std::int64_t outputs = weight.size(0);
    TORCH_CHECK(dense_halves(out) && dense_halves(x) && dense_halves(weight) &&
                    (!bias.defined() || dense_halves(bias)) &&
                    (!after.other.defined() || dense_halves(after.other)),
                "unit_linear: wrong layout");
    RECORD_FUNCTION("ponderscope::unit_linear", std::vector<c10::IValue>({x, weight})); // for profilers
    const auto& k = kernels::tile_kernels();
    const RowActivation activation = of(after.activation);
    const std::int64_t panels = (outputs + panel - 1) / panel;
    const std::int64_t panel_elements = depth * panel;
    at::Tensor packed = workspace.take(Workspace::Use::packed, {panels * panel_elements}, x.options());
    auto* pairs = static_cast<std::uint32_t*>(packed.mutable_data_ptr());
    at::parallel_for(0, panels, std::max<std::int64_t>(1, 131072 / panel_elements),
                     [&](std::int64_t begin, std::int64_t end) {
                         for (auto p = begin; p < end; ++p) {
                             k.pair_columns(halves(weight) + p * panel_elements, depth,
                                            std::min(panel, outputs - p * panel), depth / 2, panel,
                                            pairs + p * panel_elements / 2);
                         }
                     });
    const auto rows_of = [&](MatrixUnit& unit, const std::uint16_t* rows, std::int64_t first,
                             std::int64_t count, std::int64_t p, float* tile) {
        unit.multiply({rows, rows_at_once, depth}, depth, pairs + p * panel_elements / 2, panel, tile, false);
        const std::int64_t place = first * outputs + p * panel;
        k.close_rows(tile, panel, count, std::min(panel, outputs - p * panel),
                     bias.defined() ? halves(bias) + p * panel : nullptr, activation,
                     after.other.defined() ? halves(after.other) + place : nullptr, after.multiplies, outputs,
                     static_cast<std::uint16_t*>(out.mutable_data_ptr()) + place);
    };
    at::parallel_for(0, (n + rows_near - 1) / rows_near, 1, [&](std::int64_t begin, std::int64_t end) {
        MatrixUnit unit;
        AlignedArray<float> tile(rows_at_once * panel);
        AlignedArray<std::uint16_t> last; // rows are multiplied in whole tiles: behind these there are zeros
        const std::int64_t until = std::min(n, end * rows_near);
        const std::int64_t whole = n / rows_at_once * rows_at_once;
        if (until > whole) {
            last = AlignedArray<std::uint16_t>(static_cast<std::size_t>(rows_at_once * depth), 0);
            std::copy_n(halves(x) + whole * depth, (n - whole) * depth, last.data());
        }
        for (auto near = begin * rows_near; near < until; near += rows_near) {
            for (std::int64_t p = 0; p < panels; ++p) {
                for (auto row = near; row < std::min(until, near + rows_near); row += rows_at_once) {
                    rows_of(unit, row == whole ? last.data() : halves(x) + row * depth, row,
                            std::min(rows_at_once, n - row), p, tile.data());
                }
            }
        }
    });
}

} // namespace ponderscope
