// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbones/block_stack.h"

namespace ponderscope {

namespace {

/// GPT-NeoX and Pythia: LayerNorm, QKV fused and interleaved per head, partial rotary, parallel or sequential
/// residual.
class GptNeox final : public BlockStack {
public:
    GptNeox(const ModelConfig& config, TensorBuilder& builder) : BlockStack(config) {
        const std::int64_t d = config.hidden_size;
        const std::int64_t m = config.intermediate_size;
        const std::int64_t heads = config.query_heads * config.head_dim;
        embedding_ = builder.embedding("gpt_neox.embed_in.weight");
        for (const std::string& name : builder.blocks("gpt_neox.layers.")) {
            Layer layer;
            layer.before_attention = builder.norm(name + "input_layernorm", d, true);
            layer.before_mlp = builder.norm(name + "post_attention_layernorm", d, true);
            layer.parallel = config.parallel_residual;
            layer.qkv =
                builder.linear(name + "attention.query_key_value", 3 * heads, d, config.attention_bias);
            layer.qkv_by_head = true;
            layer.o = builder.linear(name + "attention.dense", d, heads, config.attention_bias);
            layer.up = builder.linear(name + "mlp.dense_h_to_4h", m, d, true);
            layer.down = builder.linear(name + "mlp.dense_4h_to_h", d, m, true);
            layers_.push_back(std::move(layer));
        }
        norm_ = builder.norm("gpt_neox.final_layer_norm", d, true);
        head_ = builder.head("embed_out.weight", {"lm_head.weight"});
    }
};

} // namespace

std::unique_ptr<Backbone> gpt_neox_backbone(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<GptNeox>(config, builder);
}

} // namespace ponderscope
