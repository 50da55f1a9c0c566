// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace ponderscope {

/// Hears tensors of a forward under their names, after they exist. What is heard may be overwritten when the
/// call returns: a listener copies what it keeps.
class TapListener {
public:
    virtual ~TapListener() = default;
    /// What is computed only for listeners is asked for first.
    [[nodiscard]] virtual bool wants(std::string_view name) const {
        (void)name;
        return true;
    }
    /// \p layer is -1 for what belongs to no layer.
    virtual void heard(std::string_view name, std::int64_t step, std::int64_t layer,
                       const at::Tensor& tensor) = 0;
};

/// A named call in our own forward; with no listener it costs a branch.
struct Tap {
    TapListener* listener = nullptr;
    std::int64_t step = 0;
    [[nodiscard]] bool wanted(std::string_view name) const {
        return listener != nullptr && listener->wants(name);
    }
    void operator()(std::string_view name, const at::Tensor& tensor, std::int64_t layer = -1) const {
        if (wanted(name)) {
            listener->heard(name, step, layer, tensor);
        }
    }
};

} // namespace ponderscope
