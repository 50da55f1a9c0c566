// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/host_device/host_rounding.h"

#include "core/base/splitmix.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <cstdint>
#include <set>
#include <string>

namespace ponderscope::testing {

namespace {

/// What a GPU makes of a factor of a product of fp32 where it may: ten digits behind the leading one.
at::Tensor tf32(const at::Tensor& factor) {
    const at::Tensor bits = factor.contiguous().view(at::kInt);
    return (bits + 0x1000).bitwise_and(~0x1fff).view(at::kFloat);
}

} // namespace

bool is_product(const c10::OperatorHandle& operation) {
    static const std::set<std::string, std::less<>> products{"aten::mm", "aten::addmm", "aten::bmm",
                                                             "aten::baddbmm"};
    return products.contains(operation.schema().name());
}

void round_factors(const c10::OperatorHandle& operation, torch::jit::Stack& arguments) {
    static const std::set<std::string, std::less<>> plain{"aten::mm", "aten::bmm"};
    static const std::set<std::string, std::less<>> factors{"mat1", "mat2", "batch1", "batch2"};
    const auto& named = operation.schema().arguments();
    for (std::size_t i = 0; i < named.size(); ++i) {
        c10::IValue& value = arguments[i];
        const bool factor = factors.contains(named[i].name()) ||
                            (named[i].name() == "self" && plain.contains(operation.schema().name()));
        if (factor && value.isTensor() && value.toTensor().scalar_type() == at::kFloat) {
            value = tf32(value.toTensor());
        }
    }
}

void round_by_shape(const at::Tensor& product) {
    const at::ScalarType type = product.scalar_type();
    if ((type != at::kFloat && type != at::kHalf && type != at::kBFloat16) || product.numel() == 0) {
        return;
    }
    const double unit = type == at::kFloat ? 0x1p-23 : type == at::kHalf ? 0x1p-11 : 0x1p-8;
    const bool sums_in_half = at::globalContext().allowBF16ReductionCuBLAS() ==
                              at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK;
    const auto rows = static_cast<std::uint64_t>(product.dim() > 1 ? product.size(-2) : 1);
    const at::Tensor rounded = product.to(at::kFloat, false, true, at::MemoryFormat::Contiguous);
    float* const numbers = rounded.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < rounded.numel(); ++i) {
        const std::uint64_t draw = splitmix64(rows, static_cast<std::uint64_t>(i));
        // Sums in fp32 round to the same number of half precision but for few.
        if (type == at::kFloat || draw % (sums_in_half ? 8 : 256) == 0) {
            numbers[i] *= static_cast<float>(draw >> 63 == 0 ? 1.0 + unit : 1.0 - unit);
        }
    }
    product.copy_(rounded);
}

} // namespace ponderscope::testing
