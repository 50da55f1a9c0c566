// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/blocks.h"
#include "core/model/experts.h"
#include "core/model/tensor_builder.h"

#include <memory>
#include <optional>
#include <vector>

namespace ponderscope {

/// Common parts of decoders: blocks of attention and an MLP. A family declares the tensors of its blocks and
/// sets the members that it uses. The members of absent parts are empty.
class BlockStack : public Backbone {
protected:
    using Norm = std::optional<blocks::Norm>;
    struct Layer {
        Norm before_attention, after_attention; ///< norms of the input and of the output of attention
        Norm before_mlp, after_mlp;             ///< norms of the input and of the output of the MLP
        Norm attention_sum, mlp_sum;            ///< norms of the residual stream after the sum
        blocks::Linear q, k, v, o;
        blocks::Linear qkv;        ///< replaces q, k and v: all queries, all keys, all values
        bool qkv_by_head = false;  ///< qkv has query, key and value of the first head, then of the next
        Norm query_norm, key_norm; ///< over all heads together
        blocks::HeadExtras heads;
        std::optional<double> score_scale; ///< replaces the config's score scale
        /// Before o, the heads' output is multiplied by sigmoid(gate(x) ⊙ scale). The scale is fp32;
        /// undefined: 1.
        blocks::Linear attention_gate;
        at::Tensor attention_gate_scale;
        /// For each KV head g: v_g += 2·sigmoid(value_gate · x[0:columns])_g · value_table[id]_g, where x is
        /// the input of attention.
        at::Tensor value_gate, value_table; ///< [heads, columns], [V, d]
        bool parallel = false;              ///< the MLP reads the residual stream before attention is added
        blocks::Linear gate, up, down;      ///< without a gate: down(act(up(x)))
        std::optional<Experts> experts;     ///< replaces the MLP
    };
    using Backbone::Backbone;
    /// The output of the heads, before o: [m, n_q·d_h]. Listeners do not receive it.
    [[nodiscard]] at::Tensor attention(std::int64_t l, const Layer& w, const at::Tensor& x,
                                       const Pass& pass) const;
    [[nodiscard]] at::Tensor run_layer(std::int64_t l, const Layer& w, const at::Tensor& x,
                                       const Pass& pass) const;
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override {
        return run_layer(l, weights(l, pass), x, pass);
    }
    [[nodiscard]] at::Tensor sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override {
        return norm_ ? blocks::normalise(x, *norm_) : x.clone(); // new memory
    }

    std::vector<Layer> layers_;
    std::vector<Layer> adapted_; ///< layers with merged adapters; empty: no adapters
    Norm norm_;                  ///< the final norm

private:
    [[nodiscard]] const Layer& weights(std::int64_t l, const Pass& pass) const {
        return (pass.adapted && !adapted_.empty() ? adapted_ : layers_)[static_cast<std::size_t>(l)];
    }
    [[nodiscard]] at::Tensor mlp(std::int64_t l, const Layer& w, const at::Tensor& x, const Pass& pass) const;
    /// The summand for the residual stream: a sublayer's output with the family's norm and scale.
    [[nodiscard]] at::Tensor addend(const at::Tensor& output, const Norm& norm) const;
};

// name_backbone declares the tensors of an architecture and constructs its stack. If only the layout is
// needed, the tensors are undefined.
#define PONDERSCOPE_ARCHITECTURE(name)                                                                       \
    std::unique_ptr<Backbone> name##_backbone(const ModelConfig& config, TensorBuilder& builder);
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE

} // namespace ponderscope
