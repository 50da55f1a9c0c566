// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/kernels/aligned.h"
#include "core/model/kernels/tile.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace ponderscope {

/// A table [V, d] whose rows are handed out tile by tile in fp32 (or as they are, in bf16, for the
/// processor's own product).
class HeadTable {
public:
    HeadTable() = default;
    explicit HeadTable(const at::Tensor& tensor)
        : tensor_(tensor.stride(1) == 1 ? tensor : tensor.contiguous()) {}

    [[nodiscard]] std::ptrdiff_t stride() const { return tensor_.stride(0); }
    [[nodiscard]] bool is_fp32() const { return tensor_.scalar_type() == at::kFloat; }
    [[nodiscard]] bool same_as(const HeadTable& other) const {
        return tensor_.defined() && tensor_.is_same(other.tensor_);
    }
    [[nodiscard]] const std::uint16_t* halves(std::int64_t row) const {
        return static_cast<const std::uint16_t*>(tensor_.const_data_ptr()) + row * stride();
    }

    /// Rows in fp32: where they lie, or widened into scratch. Sets the distance between rows.
    const float* rows(const kernels::TileKernels& k, std::int64_t row, std::int64_t count,
                      kernels::AlignedArray<float>& scratch, std::ptrdiff_t& row_stride) const {
        if (is_fp32()) {
            row_stride = stride();
            return static_cast<const float*>(tensor_.const_data_ptr()) + row * stride();
        }
        const auto depth = tensor_.size(1);
        row_stride = depth;
        if (scratch.size() == 0) {
            scratch = kernels::AlignedArray<float>(static_cast<std::size_t>(count * depth));
        }
        for (std::int64_t r = 0; r < count; ++r) {
            (tensor_.scalar_type() == at::kBFloat16 ? k.widen_bf16 : k.widen_f16)(halves(row + r), depth,
                                                                                  scratch.data() + r * depth);
        }
        return scratch.data();
    }

private:
    at::Tensor tensor_;
};

} // namespace ponderscope
