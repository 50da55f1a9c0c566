// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/llama.h"

#include "core/model/layout_builder.h"
#include "core/model/residual.h"

#include <ATen/ATen.h>

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
    if (!config.depth.use_qk_norm) {
        return {config.attention_bias};
    }
    return {config.attention_bias, "self_attn.q_norm", "self_attn.k_norm"};
}

} // namespace

ParameterLayout Llama::layout(const ModelConfig& config, const LlamaTraits& traits) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t queries = config.query_heads * config.head_dim;
    const std::int64_t keys = config.kv_heads * config.head_dim;
    LayoutBuilder builder;
    builder.blocks(config.layers, llama_block);
    builder.matrix("model.embed_tokens.weight", config.vocab_size, d);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        builder.norm(llama_block(l) + "input_layernorm", d, false);
        builder.linear(llama_block(l) + "self_attn.q_proj", queries, d, config.attention_bias);
        builder.linear(llama_block(l) + "self_attn.k_proj", keys, d, config.attention_bias);
        builder.linear(llama_block(l) + "self_attn.v_proj", keys, d, config.attention_bias);
        builder.linear(llama_block(l) + "self_attn.o_proj", d, queries, traits.output_bias);
        if (traits.q_norm != nullptr) {
            builder.norm(llama_block(l) + traits.q_norm, config.head_dim, false);
            builder.norm(llama_block(l) + traits.k_norm, config.head_dim, false);
        }
        if (traits.output_norms) {
            builder.norm(llama_block(l) + "input_layernorm_2", d, false);
        }
        builder.norm(llama_block(l) + "post_attention_layernorm", d, false);
        builder.linear(llama_block(l) + "mlp.gate_proj", config.intermediate_size, d, config.mlp_bias);
        builder.linear(llama_block(l) + "mlp.up_proj", config.intermediate_size, d, config.mlp_bias);
        builder.linear(llama_block(l) + "mlp.down_proj", d, config.intermediate_size, config.mlp_bias);
        if (traits.output_norms) {
            builder.norm(llama_block(l) + "post_attention_layernorm_2", d, false);
        }
    }
    builder.norm("model.norm", d, false);
    builder.matrix("lm_head.weight", config.vocab_size, d);
    // The files of Depth-Attention's authors hold a norm that their code never applies.
    ParameterLayout layout =
        builder.finish("model.embed_tokens.weight", "lm_head.weight", config.tied_embeddings,
                       {"rotary_emb.inv_freq", "lm_head_layernorm.weight"});
    for (TensorSpec& spec : residual_tensors(config)) {
        spec.joins = true;
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
    : Backbone(config, parameters, layout(config, traits), llama_blocks) {
    for (std::int64_t l = 0; l < config.layers; ++l) {
        layers_.push_back(
            {blocks::Norm::from(parameters, llama_block(l) + "input_layernorm", config),
             blocks::Norm::from(parameters, llama_block(l) + "post_attention_layernorm", config),
             blocks::Linear::from(parameters, llama_block(l) + "self_attn.q_proj"),
             blocks::Linear::from(parameters, llama_block(l) + "self_attn.k_proj"),
             blocks::Linear::from(parameters, llama_block(l) + "self_attn.v_proj"),
             blocks::Linear::from(parameters, llama_block(l) + "self_attn.o_proj"),
             blocks::Linear::from(parameters, llama_block(l) + "mlp.gate_proj"),
             blocks::Linear::from(parameters, llama_block(l) + "mlp.up_proj"),
             blocks::Linear::from(parameters, llama_block(l) + "mlp.down_proj"),
             {},
             {},
             {}});
        if (traits.output_norms) {
            layers_.back().attention_output =
                blocks::Norm::from(parameters, llama_block(l) + "input_layernorm_2", config);
            layers_.back().mlp_output =
                blocks::Norm::from(parameters, llama_block(l) + "post_attention_layernorm_2", config);
        }
        if (traits.q_norm != nullptr) {
            layers_.back().head_norms = {
                blocks::Norm::from(parameters, llama_block(l) + traits.q_norm, config),
                blocks::Norm::from(parameters, llama_block(l) + traits.k_norm, config),
                config.depth.key_norm_after_rope};
        }
    }
    norm_ = blocks::Norm::from(parameters, "model.norm", config);
    merge_adapters(parameters);
}

/// W + (alpha / r) B A, in fp32 and rounded once.
void Llama::merge_adapters(const Parameters& parameters) {
    if (config_.tah.adapted.empty()) {
        return;
    }
    adapted_ = layers_;
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

at::Tensor Llama::attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const {
    const Layer& w = weights(l, pass);
    const auto heads = [&](const at::Tensor& rows, const blocks::Linear& projection, std::int64_t count,
                           Workspace::Use use) {
        return blocks::linear(rows, projection, pass, use).view({rows.size(0), count, config_.head_dim});
    };
    const at::Tensor asking = pass.mixer == nullptr ? blocks::attending(input, pass) : input;
    return blocks::self_attention(l, heads(asking, w.q_proj, config_.query_heads, Workspace::Use::projection),
                                  heads(input, w.k_proj, config_.kv_heads, Workspace::Use::key_projection),
                                  heads(input, w.v_proj, config_.kv_heads, Workspace::Use::value_projection),
                                  config_, pass, w.head_norms);
}

at::Tensor Llama::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights(l, pass);
    const at::Tensor normed = blocks::normalise(x, w.input_layernorm, pass, Workspace::Use::normed);
    if (w.attention_output.weight.defined()) {
        const at::Tensor added =
            blocks::linear(attention(l, normed, pass), w.o_proj, pass, Workspace::Use::projection);
        const at::Tensor attended =
            blocks::add(blocks::attending(x, pass),
                        blocks::normalise(added, w.attention_output, pass, Workspace::Use::normed), pass);
        const at::Tensor mlp_input =
            blocks::normalise(attended, w.post_attention_layernorm, pass, Workspace::Use::normed);
        const at::Tensor out = blocks::add_gated_mlp(at::zeros_like(attended), mlp_input, w.gate_proj,
                                                     w.up_proj, w.down_proj, config_.activation, pass);
        return blocks::add(attended, blocks::normalise(out, w.mlp_output, pass, Workspace::Use::normed),
                           pass);
    }
    const at::Tensor attended =
        blocks::add_linear(blocks::attending(x, pass), attention(l, normed, pass), w.o_proj, pass);
    const at::Tensor mlp_input =
        blocks::normalise(attended, w.post_attention_layernorm, pass, Workspace::Use::normed);
    return blocks::add_gated_mlp(attended, mlp_input, w.gate_proj, w.up_proj, w.down_proj, config_.activation,
                                 pass);
}

at::Tensor Llama::sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights(c / 2, pass);
    if (c % 2 == 0) {
        const at::Tensor normed = blocks::normalise(x, w.input_layernorm, pass, Workspace::Use::normed);
        return blocks::linear(attention(c / 2, normed, pass), w.o_proj, pass, Workspace::Use::projection);
    }
    const at::Tensor normed = blocks::normalise(x, w.post_attention_layernorm, pass, Workspace::Use::normed);
    return blocks::add_gated_mlp(at::zeros_like(x), normed, w.gate_proj, w.up_proj, w.down_proj,
                                 config_.activation, pass);
}

at::Tensor Llama::final_norm(const at::Tensor& x) const {
    return blocks::normalise(x, norm_);
}

BackboneEntry llama_backbone() {
    return llama_entry<traits_of_llama>(Architecture::llama);
}

} // namespace ponderscope
