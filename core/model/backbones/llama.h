// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone_table.h"
#include "core/model/blocks.h"
#include "core/model/experts.h"
#include "core/model/layout_builder.h"

#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// Where the relatives of Llama differ from it in their tensors. What has no tensors of its own is in the
/// config: windows, rotations, scales, how a norm's weight is meant.
struct LlamaTraits {
    bool output_bias = false;     ///< self_attn.o_proj has a bias (those of q, k, v: config.attention_bias)
    const char* q_norm = nullptr; ///< norm over queries, each head or all (config.qk_norm_all_heads): its
    const char* k_norm = nullptr; ///< name, "self_attn.q_norm"; nullptr: none. The key's may come after the
                                  ///< rotation: config.depth.key_norm_after_rope
    // Norms of a block: of a sublayer's input and of its output. nullptr: none.
    const char* before_attention = "input_layernorm";
    const char* after_attention = nullptr;
    const char* before_mlp = "post_attention_layernorm";
    const char* after_mlp = nullptr;
    bool sinks = false;      ///< self_attn.sinks: a score of each head that carries no value
    bool entry_norm = false; ///< a norm before the first block
    bool fused = false;  ///< self_attn.qkv_proj and mlp.gate_up_proj in the place of three and two tensors
    bool gated = true;   ///< else mlp.fc1, mlp.fc2: fc2(act(fc1 x))
    bool strict = false; ///< a file with further tensors is of another model
    std::vector<std::string> prefixes = {};    ///< of ParameterLayout
    std::vector<std::string> other_parts = {}; ///< of ParameterLayout
};

/// Llama and its kind: RMSNorm, rotary embedding, grouped KV heads, gated MLP; optional head size of its own,
/// biases and norms on q and k. The residual sums may be replaced by another structure (residual.h). With
/// adapters (config.tah), a pass may run through the weights that they were merged into.
class Llama : public Backbone {
protected:
    static ParameterLayout layout(const ModelConfig& config, const LlamaTraits& traits);
    Llama(const ModelConfig& config, const Parameters& parameters, const LlamaTraits& traits);

private:
    struct Layer {
        std::optional<blocks::Norm> before_attention, after_attention, before_mlp, after_mlp;
        blocks::Linear q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj;
        std::optional<blocks::Norm> query_norm, key_norm; ///< over all heads together
        blocks::HeadExtras heads;
        std::optional<Experts> experts; ///< in the place of the MLP
    };
    struct Weights {
        std::vector<Layer> layers;
        blocks::Norm norm;
    };
    static Weights declare(LayoutBuilder& builder, const ModelConfig& config, const LlamaTraits& traits);
    static Layer declare_layer(LayoutBuilder& builder, const ModelConfig& config, const LlamaTraits& traits,
                               std::int64_t l);
    [[nodiscard]] const Layer& weights(std::int64_t l, const Pass& pass) const {
        return (pass.adapted && !adapted_.empty() ? adapted_ : weights_.layers)[static_cast<std::size_t>(l)];
    }
    void merge_adapters(const Parameters& parameters);
    [[nodiscard]] at::Tensor enter(const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& x, const Pass& pass) const;
    /// residual + MLP(x).
    [[nodiscard]] at::Tensor add_mlp(std::int64_t l, const at::Tensor& residual, const at::Tensor& x,
                                     const Pass& pass) const;
    /// The part that a sublayer adds to the stream: its output, normed and scaled as the family does it.
    [[nodiscard]] at::Tensor addend(const at::Tensor& output, const std::optional<blocks::Norm>& norm) const;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override;

    Weights weights_;
    std::vector<Layer> adapted_; ///< the same with adapters merged in; empty: there are none
    bool entry_norm_;
};

/// Llama itself: what differs, the config says.
inline LlamaTraits plain_llama(const ModelConfig&) {
    return {};
}

/// The same where config.attention_bias is of the output projection, too.
inline LlamaTraits biased_llama(const ModelConfig& config) {
    return {.output_bias = config.attention_bias};
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
