// SPDX-License-Identifier: GPL-3.0-or-later
// Parcae (methods-released.md section 4): prelude, core and coda of pre-norm blocks, and an injection that
// decays the state. Some blocks have value embeddings: they add a row of their own table to the values.
#include "core/model/backbones/block_stack.h"

#include <ATen/ATen.h>

#include <limits>

namespace ponderscope {

namespace {

/// Number of elements of the block's normed input that a value gate reads.
constexpr std::int64_t gate_reads = 32;

/// x = x + Attn(N1(x)); x = x + MLP(N2(x)). After the rotation, an RMSNorm without weights on q and k.
class Parcae final : public BlockStack {
public:
    Parcae(const ModelConfig& config, TensorBuilder& builder);

    [[nodiscard]] at::Tensor inject(const at::Tensor& state, const at::Tensor& entering) const override {
        const at::Tensor x = state.to(entering.scalar_type());
        switch (config_.sandwich.injection) {
        case SandwichConfig::Injection::diagonal:
            return (x.to(at::kFloat) * decay_ + step_ * at::linear(entering, injection_).to(at::kFloat))
                .to(entering.scalar_type());
        case SandwichConfig::Injection::linear:
            return at::linear(at::cat({x, entering}, 1), injection_);
        case SandwichConfig::Injection::add:
            break;
        }
        return x + entering;
    }
    [[nodiscard]] std::int64_t injection_flops() const override {
        return injection_.defined() ? 2 * injection_.numel() : 0;
    }
    [[nodiscard]] std::int64_t before_coda_flops() const override { return 2 * c_.numel(); }

private:
    [[nodiscard]] Layer declare(TensorBuilder& builder, const std::string& name, std::int64_t l) const;
    [[nodiscard]] at::Tensor after_prelude(const at::Tensor& x) const override {
        return prelude_norm_ ? blocks::normalise(x, *prelude_norm_) : x;
    }
    [[nodiscard]] at::Tensor before_coda(const at::Tensor& x) const override { return at::linear(x, c_); }

    Norm prelude_norm_;
    at::Tensor decay_, step_; ///< fp32 [d], of the diagonal injection
    at::Tensor injection_;    ///< B [d, d] or the adapter [d, 2d]; undefined: the state is added
    at::Tensor c_;            ///< [d, d]
};

BlockStack::Layer Parcae::declare(TensorBuilder& builder, const std::string& name, std::int64_t l) const {
    const std::int64_t d = config_.hidden_size;
    const ReleasedConfig& released = config_.released;
    const bool core = l >= config_.core_begin() && l < config_.core_end();
    const std::int64_t m = core ? released.core_intermediate_size : config_.intermediate_size;
    Layer layer;
    layer.before_attention = builder.norm(name + "norm_1", d);
    layer.q = builder.linear(name + "attn.c_q", d, d);
    layer.k = builder.linear(name + "attn.c_k", d, d);
    layer.v = builder.linear(name + "attn.c_v", d, d);
    layer.o = builder.linear(name + "attn.c_proj", d, d);
    if (released.qk_bias) {
        const at::Tensor bias =
            builder.tensor(name + "attn.qk_bias", {2, 1, config_.query_heads, config_.head_dim}, 0.0);
        if (bias.defined()) {
            layer.q.bias = bias.select(0, 0).reshape({-1});
            layer.k.bias = bias.select(0, 1).reshape({-1});
        }
    }
    if (config_.qk_norm) {
        // A rotation does not change lengths, so these norms may as well come before it.
        layer.heads.query = layer.heads.key =
            blocks::Norm{NormKind::rms_norm, {}, {}, std::numeric_limits<float>::epsilon()};
    }
    if (released.value_embeddings[static_cast<std::size_t>(l)]) {
        layer.value_gate = builder.matrix(name + "attn.ve_gate.weight", config_.query_heads, gate_reads);
        layer.value_table =
            builder.matrix("value_embeds." + std::to_string(l) + ".weight", config_.vocab_size, d);
    }
    layer.before_mlp = builder.norm(name + "norm_2", d);
    layer.up = builder.linear(name + "mlp.fc", (released.gated_mlp ? 2 : 1) * m, d);
    if (released.gated_mlp) {
        layer.gate = layer.up.part(0, m);
        layer.up = layer.up.part(m, m);
    }
    layer.down = builder.linear(name + "mlp.proj", d, m);
    return layer;
}

Parcae::Parcae(const ModelConfig& config, TensorBuilder& builder) : BlockStack(config) {
    const std::int64_t d = config.hidden_size;
    embedding_ = builder.embedding("transformer.wte.weight");
    for (const std::string& name :
         builder.blocks([&](std::int64_t l) { return sandwich_block_name(config, l); })) {
        layers_.push_back(declare(builder, name, static_cast<std::int64_t>(layers_.size())));
    }
    if (config.sandwich.prelude_norm) {
        prelude_norm_ = builder.norm("transformer.ln_prelude", d);
    }
    if (config.sandwich.injection == SandwichConfig::Injection::diagonal) {
        const at::Tensor rate = builder.vector("transformer.adapter.A_log", d, 0.0);
        const at::Tensor bias = builder.vector("transformer.adapter.dt_bias", d, 0.0);
        injection_ = builder.matrix("transformer.adapter.B", d, d);
        if (bias.defined()) {
            step_ = at::softplus(bias.to(at::kFloat));
            decay_ = at::exp(-step_ * at::exp(rate.to(at::kFloat)));
        }
    } else if (config.sandwich.injection == SandwichConfig::Injection::linear) {
        injection_ = builder.matrix("transformer.adapter.adapter.weight", d, 2 * d);
    }
    c_ = builder.matrix("transformer.C.weight", d, d);
    norm_ = builder.norm("transformer.ln_f", d);
    head_ = builder.head("lm_head.weight");
    builder.layout().prefixes = {"model."};
}

} // namespace

std::unique_ptr<Backbone> parcae_backbone(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<Parcae>(config, builder);
}

} // namespace ponderscope
