// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbones/block_stack.h"

namespace ponderscope {

namespace {

/// Phi-1, 1.5 and 2: attention and MLP read one LayerNorm, and both outputs are added to the stream. Partial
/// rotary embedding; all projections and the head have biases.
class Phi final : public BlockStack {
public:
    Phi(const ModelConfig& config, TensorBuilder& builder) : BlockStack(config) {
        const std::int64_t d = config.hidden_size;
        const std::int64_t m = config.intermediate_size;
        const std::int64_t queries = config.query_heads * config.head_dim;
        const std::int64_t keys = config.kv_heads * config.head_dim;
        embedding_ = builder.embedding("model.embed_tokens.weight");
        for (const std::string& name : builder.blocks("model.layers.")) {
            Layer layer;
            layer.before_attention = layer.before_mlp = builder.norm(name + "input_layernorm", d, true);
            layer.parallel = true;
            layer.q = builder.linear(name + "self_attn.q_proj", queries, d, true);
            layer.k = builder.linear(name + "self_attn.k_proj", keys, d, true);
            layer.v = builder.linear(name + "self_attn.v_proj", keys, d, true);
            layer.o = builder.linear(name + "self_attn.dense", d, queries, true);
            layer.up = builder.linear(name + "mlp.fc1", m, d, true);
            layer.down = builder.linear(name + "mlp.fc2", d, m, true);
            layers_.push_back(std::move(layer));
        }
        norm_ = builder.norm("model.final_layernorm", d, true);
        head_ = builder.head("lm_head.weight");
        head_bias_ = builder.vector("lm_head.bias", config.vocab_size, 0.0);
    }
};

} // namespace

std::unique_ptr<Backbone> phi_backbone(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<Phi>(config, builder);
}

} // namespace ponderscope
