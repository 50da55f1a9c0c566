// SPDX-License-Identifier: GPL-3.0-or-later
// HRM-Text (Sapient): a low and a high stack of the same blocks in cycles. Stream: both states side by side,
// [n, 2d], the high one first. A cycle's layers are counted through: those of each low pass, then those of
// the high pass.
#include "core/model/backbone_table.h"
#include "core/model/blocks.h"
#include "core/model/layout_builder.h"

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace ponderscope {

namespace {

/// low = L(low + high), several times; high = H(high + low). A stack:
///   x = x + o_proj(y ⊙ sigmoid(g)), y = Attn(n(x));   x = x + MLP(n(x));   at its end n(x)
/// n a norm without weights.
class HrmText final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    HrmText(const ModelConfig& config, const Parameters& parameters);

    /// The norm that ends a stack, of the high state or of one state alone.
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override {
        return blocks::normalise(x.narrow(1, 0, config_.hidden_size).contiguous(), norm_);
    }

private:
    struct Layer {
        blocks::Linear attention_gate, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj;
    };
    struct Weights {
        std::vector<Layer> low, high;
    };
    static Weights declare(LayoutBuilder& builder, const ModelConfig& config);
    static Layer declare_layer(LayoutBuilder& builder, const ModelConfig& config, const std::string& name);
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor run_layer(std::int64_t l, const Layer& w, const at::Tensor& x,
                                       const Pass& pass) const;

    Weights weights_;
    blocks::Norm norm_;
};

std::int64_t layers_a_stack(const ModelConfig& config) {
    return config.layers / (config.released.low_passes + 1);
}

/// The prefix of the weights' names of layer \p l of a cycle.
std::string hrm_block(const ModelConfig& config, std::int64_t l) {
    const std::int64_t stack = layers_a_stack(config);
    const bool high = l >= config.layers - stack;
    return std::string("model.") + (high ? "H" : "L") + "_module.layers." + std::to_string(l % stack) + ".";
}

HrmText::Layer HrmText::declare_layer(LayoutBuilder& builder, const ModelConfig& config,
                                      const std::string& name) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t m = config.intermediate_size;
    const std::int64_t width = config.query_heads * config.head_dim;
    Layer layer;
    if (config.released.split_projections) {
        layer.attention_gate = builder.linear(name + "self_attn.gate_proj", width, d);
        layer.q_proj = builder.linear(name + "self_attn.q_proj", width, d);
        layer.k_proj = builder.linear(name + "self_attn.k_proj", width, d);
        layer.v_proj = builder.linear(name + "self_attn.v_proj", width, d);
        layer.o_proj = builder.linear(name + "self_attn.o_proj", d, width);
        layer.gate_proj = builder.linear(name + "mlp.gate_proj", m, d);
        layer.up_proj = builder.linear(name + "mlp.up_proj", m, d);
    } else {
        const blocks::Linear all = builder.linear(name + "attn.gqkv_proj", 4 * width, d);
        layer.attention_gate = all.part(0, width);
        layer.q_proj = all.part(width, width);
        layer.k_proj = all.part(2 * width, width);
        layer.v_proj = all.part(3 * width, width);
        layer.o_proj = builder.linear(name + "attn.o_proj", d, width);
        const blocks::Linear both = builder.linear(name + "mlp.gate_up_proj", 2 * m, d);
        layer.gate_proj = both.part(0, m);
        layer.up_proj = both.part(m, m);
    }
    layer.down_proj = builder.linear(name + "mlp.down_proj", d, m);
    return layer;
}

HrmText::Weights HrmText::declare(LayoutBuilder& builder, const ModelConfig& config) {
    const std::int64_t stack = layers_a_stack(config);
    Weights weights;
    builder.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size);
    builder.vector("model.z_L_init", config.hidden_size, 0.0);
    for (std::int64_t l = 0; l < stack; ++l) {
        weights.low.push_back(declare_layer(builder, config, hrm_block(config, l)));
        weights.high.push_back(declare_layer(builder, config, hrm_block(config, config.layers - stack + l)));
    }
    builder.matrix("lm_head.weight", config.vocab_size, config.hidden_size);
    return weights;
}

ParameterLayout HrmText::layout(const ModelConfig& config) {
    LayoutBuilder builder(config);
    declare(builder, config);
    return builder.finish("model.embed_tokens.weight", "lm_head.weight", config.tied_embeddings,
                          {"rotary_emb.inv_freq"});
}

HrmText::HrmText(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), "model."), norm_{config.norm, {}, {}, config.norm_eps} {
    LayoutBuilder builder(config, &parameters);
    weights_ = declare(builder, config);
    // Every pass of a layer costs.
    const std::int64_t d = config.hidden_size;
    block_matrix_elements_ =
        config.layers * (5 * d * config.query_heads * config.head_dim + 3 * d * config.intermediate_size);
}

at::Tensor HrmText::run_layer(std::int64_t l, const Layer& w, const at::Tensor& x, const Pass& pass) const {
    const at::Tensor input = blocks::normalise(x, norm_);
    const auto heads = [&](const blocks::Linear& projection) {
        return blocks::linear(input, projection).view({input.size(0), config_.query_heads, config_.head_dim});
    };
    const at::Tensor attended =
        blocks::self_attention(l, heads(w.q_proj), heads(w.k_proj), heads(w.v_proj), config_, pass);
    const at::Tensor gate = blocks::linear(input, w.attention_gate);
    const at::Tensor sum = blocks::add_linear(x, attended * at::sigmoid(gate), w.o_proj);
    const at::Tensor mlp_input = blocks::normalise(sum, norm_);
    return blocks::add_gated_mlp(sum, mlp_input, w.gate_proj, w.up_proj, w.down_proj, config_.activation);
}

at::Tensor HrmText::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const std::int64_t d = config_.hidden_size;
    const std::int64_t stack = layers_a_stack(config_);
    const bool is_high = l >= config_.layers - stack;
    const at::Tensor high = x.narrow(1, 0, d);
    const at::Tensor low = x.narrow(1, d, d);
    const at::Tensor& mine = is_high ? high : low;
    const at::Tensor entering = l % stack == 0 ? high + low : mine.contiguous();
    const Layer& w = (is_high ? weights_.high : weights_.low)[static_cast<std::size_t>(l % stack)];
    at::Tensor left = run_layer(l, w, entering, pass);
    if (!is_high && l % stack == stack - 1) {
        left = blocks::normalise(left, norm_); // the high state is normalised by final_norm
    }
    return is_high ? at::cat({left, low}, 1) : at::cat({high, left}, 1);
}

} // namespace

BackboneEntry hrm_text_backbone() {
    return backbone_entry<HrmText>(Architecture::hrm_text);
}

} // namespace ponderscope
