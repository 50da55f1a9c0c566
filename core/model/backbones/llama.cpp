// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbones/llama.h"

#include "core/model/residual.h"
#include "core/model/rope.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace ponderscope {

namespace {

constexpr const char* llama_blocks = "model.layers.";

std::string llama_block(std::int64_t l) {
    return llama_blocks + std::to_string(l) + ".";
}

std::string adapter_name(const std::string& module, const char* factor) {
    return "lora.base_model.model." + module + "." + factor + ".weight";
}

/// The norms per head are of the Depth-Attention authors' Llama, with a switch of their own.
LlamaTraits traits_of_llama(const ModelConfig& config) {
    LlamaTraits traits{.output_bias = config.attention_bias};
    if (config.depth.use_qk_norm) {
        traits.q_norm = "self_attn.q_norm";
        traits.k_norm = "self_attn.k_norm";
    }
    return traits;
}

} // namespace

Llama::Layer Llama::declare_layer(LayoutBuilder& builder, const ModelConfig& config,
                                  const LlamaTraits& traits, std::int64_t l) {
    const std::string name = llama_block(l);
    const std::int64_t d = config.hidden_size;
    const std::int64_t m = config.intermediate_size;
    const std::int64_t queries = config.query_heads * config.head_dim;
    const std::int64_t keys = config.kv_heads * config.head_dim;
    const bool bias = config.attention_bias;
    const auto norm = [&](const char* own, std::int64_t size) -> std::optional<blocks::Norm> {
        return own != nullptr ? std::optional(builder.norm(name + own, size)) : std::nullopt;
    };
    Layer layer;
    layer.before_attention = norm(traits.before_attention, d);
    if (traits.fused) {
        const auto qkv = builder.linear(name + "self_attn.qkv_proj", queries + 2 * keys, d, bias);
        layer.q_proj = qkv.part(0, queries);
        layer.k_proj = qkv.part(queries, keys);
        layer.v_proj = qkv.part(queries + keys, keys);
    } else {
        layer.q_proj = builder.linear(name + "self_attn.q_proj", queries, d, bias);
        layer.k_proj = builder.linear(name + "self_attn.k_proj", keys, d, bias);
        layer.v_proj = builder.linear(name + "self_attn.v_proj", keys, d, bias);
    }
    layer.o_proj = builder.linear(name + "self_attn.o_proj", d, queries, traits.output_bias);
    if (config.qk_norm_all_heads) {
        layer.query_norm = norm(traits.q_norm, queries);
        layer.key_norm = norm(traits.k_norm, keys);
    } else {
        layer.heads.query = norm(traits.q_norm, config.head_dim);
        layer.heads.key = norm(traits.k_norm, config.head_dim);
    }
    if (config.rope.reversed) {
        // The norm of m x, m the factor of the rotation, is that of x with eps / m^2.
        const double factor = rope_attention_factor(config.rope);
        layer.heads.query->eps /= factor * factor;
        layer.heads.key->eps /= factor * factor;
    }
    layer.heads.key_after_rotation = config.depth.key_norm_after_rope;
    if (traits.sinks) {
        layer.heads.sinks = builder.vector(name + "self_attn.sinks", config.query_heads, 0.0);
    }
    layer.after_attention = norm(traits.after_attention, d);
    layer.before_mlp = norm(traits.before_mlp, d);
    if (std::ranges::binary_search(config.experts.layers, l)) {
        layer.experts = Experts::declare(builder, name + "mlp.", config);
    } else if (!traits.gated) {
        layer.up_proj = builder.linear(name + "mlp.fc1", m, d, config.mlp_bias);
        layer.down_proj = builder.linear(name + "mlp.fc2", d, m, config.mlp_bias);
    } else {
        if (traits.fused) {
            const auto both = builder.linear(name + "mlp.gate_up_proj", 2 * m, d, config.mlp_bias);
            layer.gate_proj = both.part(0, m);
            layer.up_proj = both.part(m, m);
        } else {
            layer.gate_proj = builder.linear(name + "mlp.gate_proj", m, d, config.mlp_bias);
            layer.up_proj = builder.linear(name + "mlp.up_proj", m, d, config.mlp_bias);
        }
        layer.down_proj = builder.linear(name + "mlp.down_proj", d, m, config.mlp_bias);
    }
    layer.after_mlp = norm(traits.after_mlp, d);
    return layer;
}

Llama::Weights Llama::declare(LayoutBuilder& builder, const ModelConfig& config, const LlamaTraits& traits) {
    Weights weights;
    builder.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        weights.layers.push_back(declare_layer(builder, config, traits, l));
    }
    weights.norm = builder.norm("model.norm", config.hidden_size);
    builder.matrix("lm_head.weight", config.vocab_size, config.hidden_size);
    return weights;
}

ParameterLayout Llama::layout(const ModelConfig& config, const LlamaTraits& traits) {
    LayoutBuilder builder(config);
    declare(builder, config, traits);
    // The files of Depth-Attention's authors hold a norm that their code never applies.
    ParameterLayout layout =
        builder.finish("model.embed_tokens.weight", "lm_head.weight", config.tied_embeddings,
                       {"rotary_emb.inv_freq", "lm_head_layernorm.weight"});
    layout.prefixes = traits.prefixes;
    layout.other_parts = traits.other_parts;
    layout.strict = traits.strict;
    for (TensorSpec& spec : residual_tensors(config)) {
        layout.tensors.push_back(std::move(spec));
    }
    std::vector<TensorSpec> adapters;
    for (const std::string& module : config.tah.adapted) {
        for (const TensorSpec& spec : layout.tensors) {
            if (spec.name == module + ".weight") {
                const std::int64_t rank = config.tah.lora_rank;
                adapters.push_back({adapter_name(module, "lora_A"), {rank, spec.shape[1]}});
                adapters.push_back({adapter_name(module, "lora_B"), {spec.shape[0], rank}});
            }
        }
    }
    for (TensorSpec& spec : adapters) {
        spec.multiplies = false; // merged: they cost nothing of their own
        layout.tensors.push_back(std::move(spec));
    }
    return layout;
}

Llama::Llama(const ModelConfig& config, const Parameters& parameters, const LlamaTraits& traits)
    : Backbone(config, parameters, layout(config, traits), llama_blocks), entry_norm_(traits.entry_norm) {
    LayoutBuilder builder(config, &parameters);
    weights_ = declare(builder, config, traits);
    merge_adapters(parameters);
}

/// W + (alpha / r) B A, in fp32 and rounded once.
void Llama::merge_adapters(const Parameters& parameters) {
    if (config_.tah.adapted.empty()) {
        return;
    }
    adapted_ = weights_.layers;
    const double scale = config_.tah.lora_alpha / static_cast<double>(config_.tah.lora_rank);
    for (std::int64_t l = 0; l < config_.layers; ++l) {
        Layer& layer = adapted_[static_cast<std::size_t>(l)];
        const std::pair<const char*, blocks::Linear*> modules[] = {
            {"self_attn.q_proj", &layer.q_proj}, {"self_attn.k_proj", &layer.k_proj},
            {"self_attn.v_proj", &layer.v_proj}, {"self_attn.o_proj", &layer.o_proj},
            {"mlp.gate_proj", &layer.gate_proj}, {"mlp.up_proj", &layer.up_proj},
            {"mlp.down_proj", &layer.down_proj}};
        for (const auto& [name, linear] : modules) {
            const std::string module = llama_block(l) + name;
            const at::Tensor a = parameters.find(adapter_name(module, "lora_A"));
            if (!a.defined()) {
                continue;
            }
            const at::Tensor b = parameters.at(adapter_name(module, "lora_B"));
            const at::Tensor change = at::mm(b.to(at::kFloat), a.to(at::kFloat)) * scale;
            linear->weight = (linear->weight.to(at::kFloat) + change).to(linear->weight.scalar_type());
        }
    }
}

at::Tensor Llama::enter(const at::Tensor& x, const Pass&) const {
    return entry_norm_ ? final_norm(x) : x; // both without weights
}

at::Tensor Llama::attention(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights(l, pass);
    const at::Tensor input = w.before_attention ? blocks::normalise(x, *w.before_attention) : x;
    const auto heads = [&](const at::Tensor& rows, const blocks::Linear& projection,
                           const std::optional<blocks::Norm>& norm, std::int64_t count) {
        at::Tensor all = blocks::linear(rows, projection);
        if (norm) {
            all = blocks::normalise(all, *norm);
        }
        if (config_.scales.qkv_limit) {
            all = all.clamp(-*config_.scales.qkv_limit, *config_.scales.qkv_limit);
        }
        return all.view({rows.size(0), count, config_.head_dim});
    };
    const at::Tensor asking = pass.mixer == nullptr ? blocks::attending(input, pass) : input;
    return blocks::self_attention(l, heads(asking, w.q_proj, w.query_norm, config_.query_heads),
                                  heads(input, w.k_proj, w.key_norm, config_.kv_heads),
                                  heads(input, w.v_proj, std::nullopt, config_.kv_heads), config_, pass,
                                  w.heads);
}

at::Tensor Llama::add_mlp(std::int64_t l, const at::Tensor& residual, const at::Tensor& x,
                          const Pass& pass) const {
    const Layer& w = weights(l, pass);
    if (w.experts) {
        return w.experts->add(residual, x, l, pass);
    }
    return w.gate_proj.weight.defined()
               ? blocks::add_gated_mlp(residual, x, w.gate_proj, w.up_proj, w.down_proj, config_.activation)
               : blocks::add_mlp(residual, x, w.up_proj, w.down_proj, config_.activation);
}

at::Tensor Llama::addend(const at::Tensor& output, const std::optional<blocks::Norm>& norm) const {
    const at::Tensor normed = norm ? blocks::normalise(output, *norm) : output;
    return config_.scales.residual == 1.0 ? normed : normed * config_.scales.residual;
}

at::Tensor Llama::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights(l, pass);
    const at::Tensor heads = attention(l, x, pass);
    const at::Tensor attended =
        blocks::attending(x, pass) + addend(blocks::linear(heads, w.o_proj), w.after_attention);
    const at::Tensor input = w.before_mlp ? blocks::normalise(attended, *w.before_mlp) : attended;
    if (!w.after_mlp && config_.scales.residual == 1.0) {
        return add_mlp(l, attended, input, pass);
    }
    return attended + addend(add_mlp(l, at::zeros_like(attended), input, pass), w.after_mlp);
}

at::Tensor Llama::sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights(c / 2, pass);
    if (c % 2 == 0) {
        return addend(blocks::linear(attention(c / 2, x, pass), w.o_proj), w.after_attention);
    }
    const at::Tensor input = w.before_mlp ? blocks::normalise(x, *w.before_mlp) : x;
    return addend(add_mlp(c / 2, at::zeros_like(x), input, pass), w.after_mlp);
}

at::Tensor Llama::final_norm(const at::Tensor& x) const {
    return blocks::normalise(x, weights_.norm);
}

BackboneEntry llama_backbone() {
    return llama_entry<traits_of_llama>(Architecture::llama);
}

} // namespace ponderscope
