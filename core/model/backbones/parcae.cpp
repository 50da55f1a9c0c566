// SPDX-License-Identifier: GPL-3.0-or-later
// Parcae (methods-released.md section 4): prelude, core and coda of pre-norm blocks, some of whose values get
// a row of a table of their own, and an injection that decays the state.
#include "core/model/backbone_table.h"
#include "core/model/blocks.h"
#include "core/model/layout_builder.h"

#include <ATen/ATen.h>

#include <limits>
#include <string>
#include <vector>

namespace ponderscope {

namespace {

/// What a value gate reads of the block's normed input.
constexpr std::int64_t gate_reads = 32;

/// x = x + Attn(N1(x));   x = x + MLP(N2(x))
///   v += 2·sigmoid(ve_gate · y[0:32])_g · ve_g, y = N1(x), ve the row of the token's id;   rotation;   q and
///   k over their root mean square, without weights
class Parcae final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    Parcae(const ModelConfig& config, const Parameters& parameters);

    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override {
        return blocks::normalise(x, weights_.ln_f);
    }
    [[nodiscard]] at::Tensor inject(const at::Tensor& state, const at::Tensor& entering) const override;
    [[nodiscard]] std::int64_t injection_flops() const override;
    [[nodiscard]] std::int64_t before_coda_flops() const override { return 2 * weights_.c.numel(); }

private:
    struct Block {
        blocks::Norm norm_1, norm_2;
        blocks::Linear c_q, c_k, c_v, c_proj, fc, gate, proj;
        at::Tensor value_table; ///< [V, d]; undefined: none
        at::Tensor value_gate;  ///< [heads, 32]
    };
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const;
    [[nodiscard]] at::Tensor after_prelude(const at::Tensor& x) const override {
        return config_.sandwich.prelude_norm ? blocks::normalise(x, weights_.ln_prelude) : x;
    }
    [[nodiscard]] at::Tensor before_coda(const at::Tensor& x) const override {
        return at::linear(x, weights_.c);
    }

    struct Weights {
        std::vector<Block> blocks;
        blocks::Norm ln_prelude, ln_f;
        at::Tensor decay, step; ///< fp32 [d], of the diagonal injection
        at::Tensor injection;   ///< B [d, d] or the adapter [d, 2d]
        at::Tensor c;           ///< [d, d]
    };
    static Weights declare(LayoutBuilder& builder, const ModelConfig& config);
    static Block declare_block(LayoutBuilder& builder, const ModelConfig& config, std::int64_t l);

    Weights weights_;
    blocks::HeadExtras head_extras_;
};

Parcae::Block Parcae::declare_block(LayoutBuilder& builder, const ModelConfig& config, std::int64_t l) {
    const std::int64_t d = config.hidden_size;
    const ReleasedConfig& released = config.released;
    const std::string name = sandwich_block_name(config, l);
    const bool core = l >= config.core_begin() && l < config.core_end();
    const std::int64_t width = core ? released.core_intermediate_size : config.intermediate_size;
    Block block;
    block.norm_1 = builder.norm(name + "norm_1", d);
    block.c_q = builder.linear(name + "attn.c_q", d, d);
    block.c_k = builder.linear(name + "attn.c_k", d, d);
    block.c_v = builder.linear(name + "attn.c_v", d, d);
    block.c_proj = builder.linear(name + "attn.c_proj", d, d);
    if (released.qk_bias) {
        const at::Tensor bias =
            builder.tensor(name + "attn.qk_bias", {2, 1, config.query_heads, config.head_dim}, 0.0);
        if (bias.defined()) {
            block.c_q.bias = bias.select(0, 0).reshape({-1});
            block.c_k.bias = bias.select(0, 1).reshape({-1});
        }
    }
    if (released.value_embeddings[static_cast<std::size_t>(l)]) {
        block.value_gate = builder.matrix(name + "attn.ve_gate.weight", config.query_heads, gate_reads);
        block.value_table =
            builder.matrix("value_embeds." + std::to_string(l) + ".weight", config.vocab_size, d);
    }
    block.norm_2 = builder.norm(name + "norm_2", d);
    const blocks::Linear fc = builder.linear(name + "mlp.fc", (released.gated_mlp ? 2 : 1) * width, d);
    if (released.gated_mlp) {
        block.gate = fc.part(0, width);
        block.fc = fc.part(width, width);
    } else {
        block.fc = fc;
    }
    block.proj = builder.linear(name + "mlp.proj", d, width);
    return block;
}

Parcae::Weights Parcae::declare(LayoutBuilder& builder, const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    Weights weights;
    builder.matrix("transformer.wte.weight", config.vocab_size, d);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        weights.blocks.push_back(declare_block(builder, config, l));
    }
    if (config.sandwich.prelude_norm) {
        weights.ln_prelude = builder.norm("transformer.ln_prelude", d);
    }
    switch (config.sandwich.injection) {
    case SandwichConfig::Injection::diagonal: {
        const at::Tensor rate = builder.vector("transformer.adapter.A_log", d, 0.0);
        const at::Tensor bias = builder.vector("transformer.adapter.dt_bias", d, 0.0);
        weights.injection = builder.matrix("transformer.adapter.B", d, d);
        if (bias.defined()) {
            weights.step = at::softplus(bias.to(at::kFloat));
            weights.decay = at::exp(-weights.step * at::exp(rate.to(at::kFloat)));
        }
        break;
    }
    case SandwichConfig::Injection::linear:
        weights.injection = builder.matrix("transformer.adapter.adapter.weight", d, 2 * d);
        break;
    case SandwichConfig::Injection::add:
        break;
    }
    weights.c = builder.matrix("transformer.C.weight", d, d);
    weights.ln_f = builder.norm("transformer.ln_f", d);
    builder.matrix("lm_head.weight", config.vocab_size, d);
    return weights;
}

ParameterLayout Parcae::layout(const ModelConfig& config) {
    LayoutBuilder builder(config);
    declare(builder, config);
    ParameterLayout layout =
        builder.finish("transformer.wte.weight", "lm_head.weight", config.tied_embeddings, {"freqs_cis"});
    layout.prefixes = {"module.", "model."};
    return layout;
}

Parcae::Parcae(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), "transformer.") {
    LayoutBuilder builder(config, &parameters);
    weights_ = declare(builder, config);
    if (config.qk_norm) {
        // A rotation keeps lengths, so that the norms may come before it as well as after.
        const blocks::Norm plain{NormKind::rms_norm, {}, {}, std::numeric_limits<float>::epsilon()};
        head_extras_.query = head_extras_.key = plain;
    }
}

at::Tensor Parcae::inject(const at::Tensor& state, const at::Tensor& entering) const {
    const at::Tensor x = state.to(entering.scalar_type());
    switch (config_.sandwich.injection) {
    case SandwichConfig::Injection::diagonal:
        return (x.to(at::kFloat) * weights_.decay +
                weights_.step * at::linear(entering, weights_.injection).to(at::kFloat))
            .to(entering.scalar_type());
    case SandwichConfig::Injection::linear:
        return at::linear(at::cat({x, entering}, 1), weights_.injection);
    case SandwichConfig::Injection::add:
        break;
    }
    return x + entering;
}

std::int64_t Parcae::injection_flops() const {
    const std::int64_t square = config_.hidden_size * config_.hidden_size;
    switch (config_.sandwich.injection) {
    case SandwichConfig::Injection::diagonal:
        return 2 * square;
    case SandwichConfig::Injection::linear:
        return 4 * square;
    case SandwichConfig::Injection::add:
        break;
    }
    return 0;
}

at::Tensor Parcae::attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const {
    const Block& w = weights_.blocks[static_cast<std::size_t>(l)];
    const auto heads = [&](const blocks::Linear& projection) {
        return blocks::linear(input, projection).view({input.size(0), config_.query_heads, config_.head_dim});
    };
    at::Tensor value = heads(w.c_v);
    if (w.value_table.defined() && w.value_gate.defined()) {
        const at::Tensor rows = at::embedding(w.value_table, pass.ids.to(w.value_table.device()))
                                    .to(value.device())
                                    .view(value.sizes());
        const at::Tensor share =
            at::sigmoid(at::linear(input.narrow(1, 0, gate_reads), w.value_gate)) * 2; // [n, heads]
        value = value + share.unsqueeze(2) * rows;
    }
    return blocks::self_attention(l, heads(w.c_q), heads(w.c_k), value, config_, pass, head_extras_);
}

at::Tensor Parcae::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Block& w = weights_.blocks[static_cast<std::size_t>(l)];
    const at::Tensor normed = blocks::normalise(x, w.norm_1);
    const at::Tensor attended = blocks::add_linear(x, attention(l, normed, pass), w.c_proj);
    const at::Tensor mlp_input = blocks::normalise(attended, w.norm_2);
    if (config_.released.gated_mlp) {
        return blocks::add_gated_mlp(attended, mlp_input, w.gate, w.fc, w.proj, config_.activation);
    }
    return blocks::add_mlp(attended, mlp_input, w.fc, w.proj, config_.activation);
}

} // namespace

BackboneEntry parcae_backbone() {
    return backbone_entry<Parcae>(Architecture::parcae);
}

} // namespace ponderscope
