// SPDX-License-Identifier: GPL-3.0-or-later
// HRM-Text (Sapient): runs a low and a high stack of equal blocks in cycles. The stream has both states side
// by side, [n, 2d], the high state first. Layer numbers run through a cycle: low passes, then the high pass.
#include "core/model/backbones/block_stack.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace ponderscope {

namespace {

/// A cycle: low = L(low + high), several times; then high = H(high + low). A stack (n: norm without weights):
///   x = x + o_proj(y ⊙ sigmoid(g)), y = Attn(n(x));   x = x + MLP(n(x));   at its end n(x)
class HrmText final : public BlockStack {
public:
    HrmText(const ModelConfig& config, TensorBuilder& builder)
        : BlockStack(config), stack_(config.layers / (config.released.low_passes + 1)) {
        norm_ = blocks::Norm{config.norm, {}, {}, config.norm_eps};
        const std::vector<std::string>& names = builder.blocks([&](std::int64_t l) {
            return std::string("model.") + (is_high(l) ? "H" : "L") + "_module.layers." +
                   std::to_string(l % stack_) + ".";
        });
        embedding_ = builder.embedding("model.embed_tokens.weight");
        builder.vector("model.z_L_init", config.hidden_size, 0.0);
        for (std::size_t l = 0; l < names.size(); ++l) {
            const auto first = std::find(names.begin(), names.end(), names[l]) - names.begin();
            layers_.push_back(static_cast<std::size_t>(first) < l ? layers_[static_cast<std::size_t>(first)]
                                                                  : declare(builder, names[l]));
        }
        head_ = builder.head("lm_head.weight");
    }

    /// The norm at the end of a stack, for the high state of a stream, or for a single state.
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override {
        return BlockStack::final_norm(x.narrow(1, 0, config_.hidden_size).contiguous());
    }

private:
    [[nodiscard]] bool is_high(std::int64_t l) const { return l >= config_.layers - stack_; }
    [[nodiscard]] Layer declare(TensorBuilder& builder, const std::string& name) const;
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override {
        const std::int64_t d = config_.hidden_size;
        const at::Tensor high = x.narrow(1, 0, d);
        const at::Tensor low = x.narrow(1, d, d);
        const at::Tensor& mine = is_high(l) ? high : low;
        const at::Tensor entering = l % stack_ == 0 ? high + low : mine.contiguous();
        at::Tensor left = run_layer(l, layers_[static_cast<std::size_t>(l)], entering, pass);
        if (!is_high(l) && l % stack_ == stack_ - 1) {
            left = blocks::normalise(left, *norm_); // final_norm normalises the high state
        }
        return is_high(l) ? at::cat({left, low}, 1) : at::cat({high, left}, 1);
    }

    std::int64_t stack_; ///< number of layers in a stack
};

BlockStack::Layer HrmText::declare(TensorBuilder& builder, const std::string& name) const {
    const std::int64_t d = config_.hidden_size;
    const std::int64_t m = config_.intermediate_size;
    const std::int64_t width = config_.query_heads * config_.head_dim;
    Layer layer;
    layer.before_attention = layer.before_mlp = norm_;
    if (config_.released.split_projections) {
        layer.attention_gate = builder.linear(name + "self_attn.gate_proj", width, d);
        layer.q = builder.linear(name + "self_attn.q_proj", width, d);
        layer.k = builder.linear(name + "self_attn.k_proj", width, d);
        layer.v = builder.linear(name + "self_attn.v_proj", width, d);
        layer.o = builder.linear(name + "self_attn.o_proj", d, width);
        layer.gate = builder.linear(name + "mlp.gate_proj", m, d);
        layer.up = builder.linear(name + "mlp.up_proj", m, d);
    } else {
        const blocks::Linear all = builder.linear(name + "attn.gqkv_proj", 4 * width, d);
        layer.attention_gate = all.part(0, width);
        layer.qkv = all.part(width, 3 * width);
        layer.o = builder.linear(name + "attn.o_proj", d, width);
        const blocks::Linear both = builder.linear(name + "mlp.gate_up_proj", 2 * m, d);
        layer.gate = both.part(0, m);
        layer.up = both.part(m, m);
    }
    layer.down = builder.linear(name + "mlp.down_proj", d, m);
    return layer;
}

} // namespace

std::unique_ptr<Backbone> hrm_text_backbone(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<HrmText>(config, builder);
}

} // namespace ponderscope
