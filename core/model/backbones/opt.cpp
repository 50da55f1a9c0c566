// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbones/block_stack.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

/// Number of rows in the position table before the row of position 0.
constexpr std::int64_t position_offset = 2;

/// OPT and Galactica: learned positions (the table has two extra rows at the start), norms before or after
/// the sublayers, and embeddings that may be narrower than the stack. The projections between the two widths
/// belong to the stack. So a state has the embedding's width, and can be an input again.
class Opt final : public BlockStack {
public:
    Opt(const ModelConfig& config, TensorBuilder& builder) : BlockStack(config) {
        const std::int64_t d = config.hidden_size;
        const std::int64_t m = config.intermediate_size;
        const std::string stack = "model.decoder.";
        embedding_ = builder.embedding(stack + "embed_tokens.weight");
        positions_ =
            builder.matrix(stack + "embed_positions.weight", config.max_positions + position_offset, d);
        if (positions_.defined()) {
            positions_ = positions_.slice(0, position_offset);
        }
        if (config.embed_dim != d) {
            project_in_ = builder.linear(stack + "project_in", d, config.embed_dim).weight;
            project_out_ = builder.linear(stack + "project_out", config.embed_dim, d).weight;
        }
        for (const std::string& name : builder.blocks(stack + "layers.")) {
            const auto square = [&](const char* own) {
                return builder.linear(name + "self_attn." + own, d, d, config.attention_bias);
            };
            Layer layer;
            layer.q = square("q_proj");
            layer.k = square("k_proj");
            layer.v = square("v_proj");
            layer.o = square("out_proj");
            // Without pre_norm, the norm follows the residual sum and changes the residual stream itself.
            (config.pre_norm ? layer.before_attention : layer.attention_sum) =
                builder.norm(name + "self_attn_layer_norm", d, true);
            layer.up = builder.linear(name + "fc1", m, d, config.mlp_bias);
            layer.down = builder.linear(name + "fc2", d, m, config.mlp_bias);
            (config.pre_norm ? layer.before_mlp : layer.mlp_sum) =
                builder.norm(name + "final_layer_norm", d, true);
            layers_.push_back(std::move(layer));
        }
        if (config.pre_norm && !config.remove_final_norm) {
            norm_ = builder.norm(stack + "final_layer_norm", d, true);
        }
        head_ = builder.head("lm_head.weight");
    }

private:
    [[nodiscard]] at::Tensor enter(const at::Tensor& x, const Pass& pass) const override {
        return (project_in_.defined() ? at::linear(x, project_in_) : x) +
               at::embedding(positions_, pass.positions);
    }
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override {
        const at::Tensor left = BlockStack::final_norm(x);
        return project_out_.defined() ? at::linear(left, project_out_) : left;
    }

    at::Tensor positions_; ///< [max_positions, d], without the extra rows
    at::Tensor project_in_, project_out_;
};

} // namespace

std::unique_ptr<Backbone> opt_backbone(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<Opt>(config, builder);
}

} // namespace ponderscope
