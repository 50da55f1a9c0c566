// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace ponderscope {

/// Buffers that a forward without gradients uses again and again. Fresh pages cost as much as a matrix
/// product of that size: a product with a new 100 MB result runs at half speed. One buffer a use, grown to
/// the largest shape seen. Not thread-safe.
class Workspace {
public:
    enum class Use : std::uint8_t {
        residual,
        residual_normed,
        normed,
        normed_again,
        projection,
        key_projection,
        value_projection,
        query_normed,
        key_normed,
        query,
        key,
        value,
        inner,
        gate,
        packed,
        count
    };

    /// A contiguous tensor of that shape whose content is undefined. It stays valid until the same use is
    /// taken again.
    at::Tensor take(Use use, at::IntArrayRef shape, const at::TensorOptions& options);

private:
    std::array<at::Tensor, static_cast<std::size_t>(Use::count)> buffers_;
};

} // namespace ponderscope
