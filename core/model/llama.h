// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/blocks.h"

namespace ponderscope {

/// Llama: RMSNorm, rotary embedding, grouped KV heads, gated MLP; optional head size of its own and biases.
class Llama final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    Llama(const ModelConfig& config, const Parameters& parameters);

private:
    struct Layer {
        blocks::Norm input_layernorm, post_attention_layernorm;
        blocks::Linear q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj;
    };
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override;

    std::vector<Layer> layers_;
    blocks::Norm norm_;
};

} // namespace ponderscope
