// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbone_table.h"
#include "core/model/blocks.h"
#include "core/model/layout_builder.h"

#include <ATen/ATen.h>

#include <cmath>

namespace ponderscope {

namespace {

constexpr const char* gpt2_blocks = "transformer.h.";

std::string gpt2_block(std::int64_t l) {
    return gpt2_blocks + std::to_string(l) + ".";
}

/// GPT-2: learned positions added before the first layer, LayerNorm, one fused projection for Q, K and V,
/// matrices stored as Conv1D.
class Gpt2 final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    Gpt2(const ModelConfig& config, const Parameters& parameters);

private:
    struct Layer {
        blocks::Norm ln_1, ln_2;
        blocks::Linear c_attn, attention_c_proj, c_fc, mlp_c_proj;
    };
    [[nodiscard]] at::Tensor enter(const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override;
    [[nodiscard]] double attention_scale(std::int64_t l) const;

    struct Weights {
        std::vector<Layer> layers;
        at::Tensor positions; ///< [max_positions, d]
        blocks::Norm ln_f;
    };
    static Weights declare(LayoutBuilder& builder, const ModelConfig& config);

    Weights weights_;
};

Gpt2::Weights Gpt2::declare(LayoutBuilder& builder, const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t m = config.intermediate_size;
    // Conv1D keeps its matrix as [in, out]: a view turns it into the shape of every other projection.
    const auto conv = [&](const std::string& prefix, std::int64_t in, std::int64_t out) {
        const at::Tensor weight = builder.matrix(prefix + ".weight", in, out);
        const at::Tensor bias = builder.vector(prefix + ".bias", out, 0.0);
        return blocks::Linear{weight.defined() ? weight.t() : weight, bias};
    };
    Weights weights;
    builder.matrix("transformer.wte.weight", config.vocab_size, d);
    weights.positions = builder.matrix("transformer.wpe.weight", config.max_positions, d);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        const std::string name = gpt2_block(l);
        Layer layer;
        layer.ln_1 = builder.norm(name + "ln_1", d, true);
        layer.c_attn = conv(name + "attn.c_attn", d, 3 * d);
        layer.attention_c_proj = conv(name + "attn.c_proj", d, d);
        layer.ln_2 = builder.norm(name + "ln_2", d, true);
        layer.c_fc = conv(name + "mlp.c_fc", d, m);
        layer.mlp_c_proj = conv(name + "mlp.c_proj", m, d);
        weights.layers.push_back(std::move(layer));
    }
    weights.ln_f = builder.norm("transformer.ln_f", d, true);
    builder.matrix("lm_head.weight", config.vocab_size, d);
    return weights;
}

ParameterLayout Gpt2::layout(const ModelConfig& config) {
    LayoutBuilder builder(config);
    declare(builder, config);
    return builder.finish("transformer.wte.weight", "lm_head.weight", config.tied_embeddings,
                          {".attn.bias", ".attn.masked_bias"});
}

Gpt2::Gpt2(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), gpt2_blocks) {
    LayoutBuilder builder(config, &parameters);
    weights_ = declare(builder, config);
}

at::Tensor Gpt2::enter(const at::Tensor& x, const Pass& pass) const {
    return x + at::embedding(weights_.positions, pass.positions);
}

double Gpt2::attention_scale(std::int64_t l) const {
    double scale = config_.scale_attn_weights ? 1.0 / std::sqrt(static_cast<double>(config_.head_dim)) : 1.0;
    if (config_.scale_attn_by_inverse_layer_idx) {
        scale /= static_cast<double>(l + 1);
    }
    return scale;
}

at::Tensor Gpt2::attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const {
    const Layer& w = weights_.layers[static_cast<std::size_t>(l)];
    // All queries, then all keys, then all values.
    const at::Tensor qkv =
        blocks::linear(input, w.c_attn).view({input.size(0), 3, config_.query_heads, config_.head_dim});
    return blocks::self_attention(l, qkv.select(1, 0), qkv.select(1, 1), qkv.select(1, 2), config_, pass, {},
                                  attention_scale(l));
}

at::Tensor Gpt2::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights_.layers[static_cast<std::size_t>(l)];
    const at::Tensor normed = blocks::normalise(x, w.ln_1);
    const at::Tensor attended =
        blocks::add_linear(blocks::attending(x, pass), attention(l, normed, pass), w.attention_c_proj);
    const at::Tensor mlp_input = blocks::normalise(attended, w.ln_2);
    return blocks::add_mlp(attended, mlp_input, w.c_fc, w.mlp_c_proj, config_.activation);
}

at::Tensor Gpt2::final_norm(const at::Tensor& x) const {
    return blocks::normalise(x, weights_.ln_f);
}

} // namespace

BackboneEntry gpt2_backbone() {
    return backbone_entry<Gpt2>(Architecture::gpt2);
}

} // namespace ponderscope
