// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/attend.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace ponderscope {

/// What the attention of a layer is computed from. Its weights are never all there at once: a listener
/// computes the ones that it needs (core/ponder/recording/attention_recorder.cpp).
struct Attending {
    std::int64_t layer = 0;
    at::Tensor query;      ///< [n, n_q, d_h], as it meets the keys
    at::Tensor keys;       ///< [R, g, d_h]
    Visibility visibility; ///< this layer's window included
    double scale = 1;      ///< of q·k
    at::Tensor row_bias;   ///< fp32 [R]; undefined: none
    ScoreExtras extras;    ///< softcap and sinks of the scores
    at::Tensor rows;       ///< int64 [n]: the slots' own rows among R; undefined: 0, 1, 2, ...
    at::Tensor tokens;     ///< int64 [n]: whose slots these are; undefined: all tokens in order
    std::int64_t step = 0; ///< of all of the slots,
    at::Tensor steps;      ///< or int64 [n], one each
};

/// Receives tensors of a forward by name, once they exist. A tensor may be overwritten when the call returns,
/// so a listener copies the tensors that it keeps.
class TapListener {
public:
    virtual ~TapListener() = default;
    /// Whether the listener wants the tensors of this name. Tensors that only listeners need are computed
    /// only if this is true.
    [[nodiscard]] virtual bool wants(std::string_view name) const {
        (void)name;
        return true;
    }
    /// Whether the listener wants the tensor of this layer. A caller that stores tensors first stores only
    /// tensors of wanted layers.
    [[nodiscard]] virtual bool wants_layer(std::string_view name, std::int64_t layer) const {
        (void)layer;
        return wants(name);
    }
    /// Receives a tensor. \p layer is -1 for a tensor that belongs to no layer.
    virtual void on_tensor(std::string_view name, std::int64_t step, std::int64_t layer,
                           const at::Tensor& tensor) = 0;
    /// The inputs of a layer's attention, before it is computed. Called only if "attention" is wanted.
    virtual void attends(const Attending& attending) { (void)attending; }
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
            listener->on_tensor(name, step, layer, tensor);
        }
    }
};

} // namespace ponderscope
