// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone_table.h"
#include "core/model/blocks.h"

namespace ponderscope {

/// Where the relatives of Llama differ from it. Sliding windows and head sizes are in the config; what has
/// tensors of its own is here.
struct LlamaTraits {
    bool output_bias = false;     ///< self_attn.o_proj has a bias (those of q, k, v: config.attention_bias)
    const char* q_norm = nullptr; ///< RMSNorm over each query head: "self_attn.q_norm"; nullptr: none
    const char* k_norm = nullptr; ///< before or after the rotation: config.depth.key_norm_after_rope
    bool output_norms = false;    ///< norms on what attention and MLP add: "input_layernorm_2" and its like
};

/// Llama and its kind: RMSNorm, rotary embedding, grouped KV heads, gated MLP; optional head size of its own,
/// biases and norms per head. The residual sums may be replaced by another structure (residual.h). With
/// adapters (config.tah), a pass may run through the weights that they were merged into.
class Llama : public Backbone {
protected:
    static ParameterLayout layout(const ModelConfig& config, const LlamaTraits& traits);
    Llama(const ModelConfig& config, const Parameters& parameters, const LlamaTraits& traits);

private:
    struct Layer {
        blocks::Norm input_layernorm, post_attention_layernorm;
        blocks::Linear q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj;
        blocks::HeadNorms head_norms;
        blocks::Norm attention_output, mlp_output; ///< with LlamaTraits::output_norms
    };
    [[nodiscard]] const Layer& weights(std::int64_t l, const Pass& pass) const {
        return (pass.adapted && !adapted_.empty() ? adapted_ : layers_)[static_cast<std::size_t>(l)];
    }
    void merge_adapters(const Parameters& parameters);
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override;

    std::vector<Layer> layers_;
    std::vector<Layer> adapted_; ///< the same with adapters merged in; empty: there are none
    blocks::Norm norm_;
};

/// Llama itself: what differs, the config says.
inline LlamaTraits plain_llama(const ModelConfig&) {
    return {};
}

/// The entry of a relative whose traits a function of the config gives.
template <LlamaTraits (*traits)(const ModelConfig&)>
BackboneEntry llama_entry(Architecture architecture) {
    class Relative final : public Llama {
    public:
        static ParameterLayout layout(const ModelConfig& config) {
            return Llama::layout(config, traits(config));
        }
        Relative(const ModelConfig& config, const Parameters& parameters)
            : Llama(config, parameters, traits(config)) {}
    };
    return backbone_entry<Relative>(architecture);
}

} // namespace ponderscope
