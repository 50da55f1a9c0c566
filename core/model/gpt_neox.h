// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/blocks.h"

namespace ponderscope {

/// GPT-NeoX and Pythia: LayerNorm, QKV fused and interleaved per head, partial rotary, parallel or sequential
/// residual.
class GptNeox final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    GptNeox(const ModelConfig& config, const Parameters& parameters);

private:
    struct Layer {
        blocks::Norm input_layernorm, post_attention_layernorm;
        blocks::Linear query_key_value, dense, dense_h_to_4h, dense_4h_to_h;
    };
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override;

    std::vector<Layer> layers_;
    blocks::Norm final_layer_norm_;
};

} // namespace ponderscope
