// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cpu/aligned.h"
#include "core/kernels/cpu/tile.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace ponderscope {

/// A table [V, d] whose rows are handed out tile by tile in fp32.
class HeadTable {
public:
    HeadTable() = default;
    explicit HeadTable(const at::Tensor& tensor)
        : tensor_(tensor.stride(1) == 1 ? tensor : tensor.contiguous()) {}

    [[nodiscard]] bool same_as(const HeadTable& other) const {
        return tensor_.defined() && tensor_.is_same(other.tensor_);
    }
    /// Rows in fp32: where they lie, or widened into scratch. Sets the distance between rows.
    const float* rows(const kernels::TileKernels& k, std::int64_t row, std::int64_t count,
                      kernels::AlignedArray<float>& scratch, std::ptrdiff_t& row_stride) const {
        const auto stride = tensor_.stride(0);
        if (tensor_.scalar_type() == at::kFloat) {
            row_stride = stride;
            return tensor_.const_data_ptr<float>() + row * stride;
        }
        const auto* halves = static_cast<const std::uint16_t*>(tensor_.const_data_ptr()) + row * stride;
        const auto widen = tensor_.scalar_type() == at::kBFloat16 ? k.widen_bf16 : k.widen_f16;
        const auto depth = tensor_.size(1);
        row_stride = depth;
        if (scratch.size() == 0) {
            scratch = kernels::AlignedArray<float>(static_cast<std::size_t>(count * depth));
        }
        for (std::int64_t r = 0; r < count; ++r) {
            widen(halves + r * stride, depth, scratch.data() + r * depth);
        }
        return scratch.data();
    }

private:
    at::Tensor tensor_;
};

} // namespace ponderscope
