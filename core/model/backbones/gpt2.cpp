// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbones/block_stack.h"

#include <ATen/ATen.h>

#include <cmath>

namespace ponderscope {

namespace {

/// GPT-2: learned positions added before the first layer, LayerNorm, one fused projection for Q, K and V,
/// matrices stored as Conv1D.
class Gpt2 final : public BlockStack {
public:
    Gpt2(const ModelConfig& config, TensorBuilder& builder) : BlockStack(config) {
        const std::int64_t d = config.hidden_size;
        const std::int64_t m = config.intermediate_size;
        // Conv1D stores its matrix as [in, out]. A view transposes it to [out, in].
        const auto conv = [&](const std::string& prefix, std::int64_t in, std::int64_t out) {
            const at::Tensor weight = builder.matrix(prefix + ".weight", in, out);
            const at::Tensor bias = builder.vector(prefix + ".bias", out, 0.0);
            return blocks::Linear{weight.defined() ? weight.t() : weight, bias};
        };
        embedding_ = builder.embedding("transformer.wte.weight");
        positions_ = builder.matrix("transformer.wpe.weight", config.max_positions, d);
        for (const std::string& name : builder.blocks("transformer.h.")) {
            Layer layer;
            layer.before_attention = builder.norm(name + "ln_1", d, true);
            layer.qkv = conv(name + "attn.c_attn", d, 3 * d);
            layer.o = conv(name + "attn.c_proj", d, d);
            layer.before_mlp = builder.norm(name + "ln_2", d, true);
            layer.up = conv(name + "mlp.c_fc", d, m);
            layer.down = conv(name + "mlp.c_proj", m, d);
            layer.score_scale =
                config.scale_attn_weights ? 1.0 / std::sqrt(static_cast<double>(config.head_dim)) : 1.0;
            if (config.scale_attn_by_inverse_layer_idx) {
                *layer.score_scale /= static_cast<double>(layers_.size() + 1);
            }
            layers_.push_back(std::move(layer));
        }
        norm_ = builder.norm("transformer.ln_f", d, true);
        head_ = builder.head("lm_head.weight");
    }

private:
    [[nodiscard]] at::Tensor enter(const at::Tensor& x, const Pass& pass) const override {
        return x + at::embedding(positions_, pass.positions);
    }

    at::Tensor positions_; ///< [max_positions, d]
};

} // namespace

std::unique_ptr<Backbone> gpt2_backbone(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<Gpt2>(config, builder);
}

} // namespace ponderscope
