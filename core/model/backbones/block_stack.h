// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/blocks.h"
#include "core/model/experts.h"
#include "core/model/tensor_builder.h"

#include <memory>
#include <optional>
#include <vector>

namespace ponderscope {

/// What decoders have in common: blocks of attention and an MLP. A family declares the tensors of its blocks
/// and fills them in; what it leaves empty it does not have.
class BlockStack : public Backbone {
protected:
    using Norm = std::optional<blocks::Norm>;
    struct Layer {
        Norm before_attention, after_attention; ///< of what attention reads; of what it adds
        Norm before_mlp, after_mlp;             ///< the same of the MLP
        Norm attention_sum, mlp_sum;            ///< of the stream after the sum: the stream itself is normed
        blocks::Linear q, k, v, o;
        blocks::Linear qkv;        ///< in the place of q, k and v: all queries, all keys, all values
        bool qkv_by_head = false;  ///< or, head by head, its query, its key, its value
        Norm query_norm, key_norm; ///< over all heads together
        blocks::HeadExtras heads;
        std::optional<double> score_scale; ///< in the place of the config's
        /// y = y ⊙ sigmoid(gate(x) ⊙ scale) between the heads and o; a scale in fp32, undefined: 1.
        blocks::Linear attention_gate;
        at::Tensor attention_gate_scale;
        /// v += 2·sigmoid(value_gate · x[0:columns])_g · value_table[id]_g, x what attention reads.
        at::Tensor value_gate, value_table; ///< [heads, columns], [V, d]
        bool parallel = false;              ///< the MLP reads the stream before attention's sum
        blocks::Linear gate, up, down;      ///< without a gate: down(act(up(x)))
        std::optional<Experts> experts;     ///< in the place of the MLP
    };
    using Backbone::Backbone;
    /// The part of a layer that listeners do not see: heads before o, [m, n_q·d_h].
    [[nodiscard]] at::Tensor attention(std::int64_t l, const Layer& w, const at::Tensor& x,
                                       const Pass& pass) const;
    [[nodiscard]] at::Tensor run_layer(std::int64_t l, const Layer& w, const at::Tensor& x,
                                       const Pass& pass) const;
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override {
        return run_layer(l, weights(l, pass), x, pass);
    }
    [[nodiscard]] at::Tensor sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override {
        return norm_ ? blocks::normalise(x, *norm_) : x.clone(); // a tensor of its own
    }

    std::vector<Layer> layers_;
    std::vector<Layer> adapted_; ///< the same with adapters merged in; empty: there are none
    Norm norm_;                  ///< the final one

private:
    [[nodiscard]] const Layer& weights(std::int64_t l, const Pass& pass) const {
        return (pass.adapted && !adapted_.empty() ? adapted_ : layers_)[static_cast<std::size_t>(l)];
    }
    /// residual + MLP(x).
    [[nodiscard]] at::Tensor add_mlp(std::int64_t l, const Layer& w, const at::Tensor& residual,
                                     const at::Tensor& x, const Pass& pass) const;
    /// The part that a sublayer adds to the stream: its output, normed and scaled as the family does it.
    [[nodiscard]] at::Tensor addend(const at::Tensor& output, const Norm& norm) const;
};

} // namespace ponderscope
