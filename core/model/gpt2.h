// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/blocks.h"

namespace ponderscope {

/// GPT-2: learned positions added before the first layer, LayerNorm, one fused projection for Q, K and V,
/// matrices stored as Conv1D.
class Gpt2 final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    Gpt2(const ModelConfig& config, const Parameters& parameters);

private:
    struct Layer {
        blocks::Norm ln_1, ln_2;
        blocks::Linear c_attn, attention_c_proj, c_fc, mlp_c_proj;
    };
    [[nodiscard]] at::Tensor enter(const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override;
    [[nodiscard]] double attention_scale(std::int64_t l) const;

    std::vector<Layer> layers_;
    at::Tensor positions_; ///< [max_positions, d]
    blocks::Norm ln_f_;
};

} // namespace ponderscope
