// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbones/llama.h"

#include "core/model/rope.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace ponderscope {

namespace {

class Llama final : public BlockStack {
public:
    Llama(const ModelConfig& config, TensorBuilder& builder, const LlamaTraits& traits);

private:
    Layer declare(TensorBuilder& builder, const LlamaTraits& traits, const std::string& name,
                  std::int64_t l) const;
    void merge_adapters(TensorBuilder& builder);
    [[nodiscard]] at::Tensor enter(const at::Tensor& x, const Pass&) const override {
        return entry_norm_ ? final_norm(x) : x; // final_norm has no weights here
    }

    bool entry_norm_;
};

BlockStack::Layer Llama::declare(TensorBuilder& builder, const LlamaTraits& traits, const std::string& name,
                                 std::int64_t l) const {
    const std::int64_t d = config_.hidden_size;
    const std::int64_t m = config_.intermediate_size;
    const std::int64_t queries = config_.query_heads * config_.head_dim;
    const std::int64_t keys = config_.kv_heads * config_.head_dim;
    const bool bias = config_.attention_bias;
    const auto norm = [&](const char* own, std::int64_t size) -> Norm {
        return own != nullptr ? Norm(builder.norm(name + own, size)) : std::nullopt;
    };
    Layer layer;
    layer.before_attention = norm(traits.before_attention, d);
    if (traits.fused) {
        layer.qkv = builder.linear(name + "self_attn.qkv_proj", queries + 2 * keys, d, bias);
    } else {
        layer.q = builder.linear(name + "self_attn.q_proj", queries, d, bias);
        layer.k = builder.linear(name + "self_attn.k_proj", keys, d, bias);
        layer.v = builder.linear(name + "self_attn.v_proj", keys, d, bias);
    }
    layer.o = builder.linear(name + "self_attn.o_proj", d, queries, bias && traits.output_bias);
    if (!config_.qk_norm && !config_.depth.use_qk_norm) {
        // no norms of queries and keys
    } else if (config_.qk_norm_all_heads) {
        layer.query_norm = norm(traits.q_norm, queries);
        layer.key_norm = norm(traits.k_norm, keys);
    } else {
        layer.heads.query = norm(traits.q_norm, config_.head_dim);
        layer.heads.key = norm(traits.k_norm, config_.head_dim);
    }
    if (config_.rope.reversed && layer.heads.query) {
        // With the rotation's factor m: the norm of m x equals the norm of x with eps / m^2.
        const double factor = rope_attention_factor(config_.rope);
        layer.heads.query->eps /= factor * factor;
        layer.heads.key->eps /= factor * factor;
    }
    layer.heads.key_after_rotation = config_.depth.key_norm_after_rope;
    if (traits.sinks) {
        layer.heads.sinks = builder.vector(name + "self_attn.sinks", config_.query_heads, 0.0);
    }
    layer.after_attention = norm(traits.after_attention, d);
    layer.before_mlp = norm(traits.before_mlp, d);
    if (std::ranges::binary_search(config_.experts.layers, l)) {
        layer.experts = Experts::declare(builder, name + "mlp.", config_);
    } else if (!traits.gated) {
        layer.up = builder.linear(name + "mlp.fc1", m, d, config_.mlp_bias);
        layer.down = builder.linear(name + "mlp.fc2", d, m, config_.mlp_bias);
    } else {
        if (traits.fused) {
            const auto both = builder.linear(name + "mlp.gate_up_proj", 2 * m, d, config_.mlp_bias);
            layer.gate = both.part(0, m);
            layer.up = both.part(m, m);
        } else {
            layer.gate = builder.linear(name + "mlp.gate_proj", m, d, config_.mlp_bias);
            layer.up = builder.linear(name + "mlp.up_proj", m, d, config_.mlp_bias);
        }
        layer.down = builder.linear(name + "mlp.down_proj", d, m, config_.mlp_bias);
    }
    layer.after_mlp = norm(traits.after_mlp, d);
    return layer;
}

Llama::Llama(const ModelConfig& config, TensorBuilder& builder, const LlamaTraits& traits)
    : BlockStack(config), entry_norm_(traits.entry_norm) {
    embedding_ = builder.embedding("model.embed_tokens.weight");
    for (const std::string& name : builder.blocks("model.layers.")) {
        layers_.push_back(declare(builder, traits, name, static_cast<std::int64_t>(layers_.size())));
    }
    norm_ = builder.norm("model.norm", config.hidden_size);
    head_ = builder.head("lm_head.weight");
    builder.layout().prefixes = traits.prefixes;
    builder.layout().other_parts = traits.other_parts;
    builder.layout().strict = traits.strict;
    merge_adapters(builder);
}

/// Adds (alpha / r) B A to each adapted weight. Computed in fp32; the result is rounded once.
void Llama::merge_adapters(TensorBuilder& builder) {
    if (config_.tah.adapted.empty()) {
        return;
    }
    adapted_ = layers_;
    const std::int64_t rank = config_.tah.lora_rank;
    const double scale = config_.tah.lora_alpha / static_cast<double>(rank);
    for (std::size_t l = 0; l < adapted_.size(); ++l) {
        Layer& layer = adapted_[l];
        const std::pair<const char*, blocks::Linear*> modules[] = {
            {"self_attn.q_proj", &layer.q}, {"self_attn.k_proj", &layer.k}, {"self_attn.v_proj", &layer.v},
            {"self_attn.o_proj", &layer.o}, {"mlp.gate_proj", &layer.gate}, {"mlp.up_proj", &layer.up},
            {"mlp.down_proj", &layer.down}};
        for (const auto& [name, linear] : modules) {
            const std::string module = builder.blocks()[l] + name;
            if (std::ranges::find(config_.tah.adapted, module) == config_.tah.adapted.end()) {
                continue;
            }
            const std::vector<std::int64_t> shape = builder.shape(module + ".weight");
            const auto factor = [&](const char* one, std::int64_t rows, std::int64_t columns) {
                TensorSpec spec{"lora.base_model.model." + module + one, {rows, columns}};
                spec.multiplies = false; // merged into the weight, so they cost no FLOPs
                return builder.add(std::move(spec));
            };
            const at::Tensor a = factor(".lora_A.weight", rank, shape[1]);
            const at::Tensor b = factor(".lora_B.weight", shape[0], rank);
            if (a.defined()) {
                const at::Tensor change = at::mm(b.to(at::kFloat), a.to(at::kFloat)) * scale;
                linear->weight = (linear->weight.to(at::kFloat) + change).to(linear->weight.scalar_type());
            }
        }
    }
}

} // namespace

std::unique_ptr<Backbone> make_llama(const ModelConfig& config, TensorBuilder& builder,
                                     const LlamaTraits& traits) {
    return std::make_unique<Llama>(config, builder, traits);
}

} // namespace ponderscope
