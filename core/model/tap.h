// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/attend.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace ponderscope {

/// The inputs of a layer's attention. The full matrix of weights never exists; a listener computes the
/// weights that it needs (core/ponder/recording/attention_recorder.cpp).
struct Attending {
    std::int64_t layer = 0;
    at::Tensor query;      ///< [n, n_q, d_h], after norms and rotation
    at::Tensor keys;       ///< [R, g, d_h]
    Visibility visibility; ///< includes this layer's window
    double scale = 1;      ///< factor on q·k
    at::Tensor row_bias;   ///< fp32 [R]; undefined: none
    ScoreExtras extras;    ///< softcap and sinks of the scores
    at::Tensor rows;       ///< int64 [n]: the rows of the slots within R; undefined: 0, 1, 2, ...
    at::Tensor tokens;     ///< int64 [n]: the tokens of the slots; undefined: all tokens in order
    std::int64_t step = 0; ///< step of all slots, if `steps` is undefined
    at::Tensor steps;      ///< int64 [n]: the step of each slot; undefined: all slots have step `step`
};

/// Receives tensors of a forward pass by name. Later computation may overwrite them, so a listener copies the
/// tensors that it keeps.
class TapListener {
public:
    virtual ~TapListener() = default;
    /// Whether the listener wants tensors with this name. Tensors that only listeners need are computed only
    /// if this returns true.
    [[nodiscard]] virtual bool wants(std::string_view name) const {
        (void)name;
        return true;
    }
    /// Whether the listener wants the tensor of this layer. Callers that buffer tensors skip the other
    /// layers.
    [[nodiscard]] virtual bool wants_layer(std::string_view name, std::int64_t layer) const {
        (void)layer;
        return wants(name);
    }
    /// Receives a tensor. \p layer is -1 if the tensor belongs to no layer.
    virtual void on_tensor(std::string_view name, std::int64_t step, std::int64_t layer,
                           const at::Tensor& tensor) = 0;
    /// Receives the inputs of a layer's attention before attention runs. Called only if the listener wants
    /// "attention".
    virtual void attends(const Attending& attending) { (void)attending; }
};

/// Passes named tensors of a forward pass to a listener. Without a listener, a call costs one branch.
struct Tap {
    TapListener* listener = nullptr;
    std::int64_t step = 0;
    [[nodiscard]] bool wanted(std::string_view name) const {
        return listener != nullptr && listener->wants(name);
    }
    void operator()(std::string_view name, const at::Tensor& tensor, std::int64_t layer = -1) const {
        if (wanted(name)) {
            listener->on_tensor(name, step, layer, tensor);
        }
    }
};

} // namespace ponderscope
