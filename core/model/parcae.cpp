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
        return blocks::normalise(x, ln_f_);
    }
    [[nodiscard]] at::Tensor inject(const at::Tensor& state, const at::Tensor& entering) const override;
    [[nodiscard]] std::int64_t injection_flops() const override;
    [[nodiscard]] std::int64_t before_coda_flops() const override { return 2 * c_.numel(); }

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
        return config_.sandwich.prelude_norm ? blocks::normalise(x, ln_prelude_) : x;
    }
    [[nodiscard]] at::Tensor before_coda(const at::Tensor& x) const override { return at::linear(x, c_); }

    std::vector<Block> blocks_;
    blocks::HeadNorms head_norms_;
    blocks::Norm ln_prelude_, ln_f_;
    at::Tensor decay_, step_; ///< fp32 [d], of the diagonal injection
    at::Tensor injection_;    ///< B [d, d] or the adapter [d, 2d]
    at::Tensor c_;            ///< [d, d]
};

ParameterLayout Parcae::layout(const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const ReleasedConfig& released = config.released;
    LayoutBuilder builder;
    builder.blocks(config.layers, [&](std::int64_t l) { return sandwich_block_name(config, l); });
    builder.matrix("transformer.wte.weight", config.vocab_size, d);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        const std::string name = sandwich_block_name(config, l);
        const bool core = l >= config.core_begin() && l < config.core_end();
        const std::int64_t width = core ? released.core_intermediate_size : config.intermediate_size;
        builder.norm(name + "norm_1", d, false);
        for (const char* const projection : {"c_q", "c_k", "c_v", "c_proj"}) {
            builder.matrix(name + "attn." + projection + ".weight", d, d);
        }
        if (released.qk_bias) {
            builder.tensor(name + "attn.qk_bias", {2, 1, config.query_heads, config.head_dim}, 0.0);
        }
        if (released.value_embeddings[static_cast<std::size_t>(l)]) {
            builder.matrix(name + "attn.ve_gate.weight", config.query_heads, gate_reads);
            builder.matrix("value_embeds." + std::to_string(l) + ".weight", config.vocab_size, d);
        }
        builder.norm(name + "norm_2", d, false);
        builder.matrix(name + "mlp.fc.weight", (released.gated_mlp ? 2 : 1) * width, d);
        builder.matrix(name + "mlp.proj.weight", d, width);
    }
    if (config.sandwich.prelude_norm) {
        builder.norm("transformer.ln_prelude", d, false);
    }
    switch (config.sandwich.injection) {
    case SandwichConfig::Injection::diagonal:
        builder.vector("transformer.adapter.A_log", d, 0.0);
        builder.vector("transformer.adapter.dt_bias", d, 0.0);
        builder.matrix("transformer.adapter.B", d, d);
        break;
    case SandwichConfig::Injection::linear:
        builder.matrix("transformer.adapter.adapter.weight", d, 2 * d);
        break;
    case SandwichConfig::Injection::add:
        break;
    }
    builder.matrix("transformer.C.weight", d, d);
    builder.norm("transformer.ln_f", d, false);
    builder.matrix("lm_head.weight", config.vocab_size, d);
    ParameterLayout layout =
        builder.finish("transformer.wte.weight", "lm_head.weight", config.tied_embeddings, {"freqs_cis"});
    layout.prefixes = {"module.", "model."};
    return layout;
}

Parcae::Parcae(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), "transformer.") {
    const auto norm = [&](const std::string& name) { return blocks::Norm::from(parameters, name, config); };
    for (std::int64_t l = 0; l < config.layers; ++l) {
        const std::string name = sandwich_block_name(config, l);
        Block block;
        block.norm_1 = norm(name + "norm_1");
        block.norm_2 = norm(name + "norm_2");
        block.c_q = blocks::Linear::from(parameters, name + "attn.c_q");
        block.c_k = blocks::Linear::from(parameters, name + "attn.c_k");
        block.c_v = blocks::Linear::from(parameters, name + "attn.c_v");
        block.c_proj = blocks::Linear::from(parameters, name + "attn.c_proj");
        if (const at::Tensor bias = parameters.find(name + "attn.qk_bias"); bias.defined()) {
            block.c_q.bias = bias.select(0, 0).reshape({-1});
            block.c_k.bias = bias.select(0, 1).reshape({-1});
        }
        block.value_table = parameters.find("value_embeds." + std::to_string(l) + ".weight");
        block.value_gate = parameters.find(name + "attn.ve_gate.weight");
        const at::Tensor fc = parameters.at(name + "mlp.fc.weight");
        if (config.released.gated_mlp) {
            block.gate.weight = fc.narrow(0, 0, fc.size(0) / 2);
            block.fc.weight = fc.narrow(0, fc.size(0) / 2, fc.size(0) / 2);
        } else {
            block.fc.weight = fc;
        }
        block.proj = blocks::Linear::from(parameters, name + "mlp.proj");
        blocks_.push_back(std::move(block));
    }
    if (config.qk_norm) {
        // A rotation keeps lengths, so that the norms may come before it as well as after.
        const at::Tensor ones =
            at::ones({config.head_dim}, parameters.at("transformer.wte.weight").options());
        const blocks::Norm plain{NormKind::rms_norm, ones, {}, std::numeric_limits<float>::epsilon()};
        head_norms_ = {plain, plain, false};
    }
    ln_prelude_ = norm("transformer.ln_prelude");
    ln_f_ = norm("transformer.ln_f");
    c_ = parameters.at("transformer.C.weight");
    if (config.sandwich.injection == SandwichConfig::Injection::diagonal) {
        const at::Tensor bias = parameters.at("transformer.adapter.dt_bias").to(at::kFloat);
        step_ = at::softplus(bias);
        decay_ = at::exp(-step_ * at::exp(parameters.at("transformer.adapter.A_log").to(at::kFloat)));
        injection_ = parameters.at("transformer.adapter.B");
    } else {
        injection_ = parameters.find("transformer.adapter.adapter.weight");
    }
}

at::Tensor Parcae::inject(const at::Tensor& state, const at::Tensor& entering) const {
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
    const Block& w = blocks_[static_cast<std::size_t>(l)];
    const auto heads = [&](const blocks::Linear& projection, Workspace::Use use) {
        return blocks::linear(input, projection, pass, use)
            .view({input.size(0), config_.query_heads, config_.head_dim});
    };
    at::Tensor value = heads(w.c_v, Workspace::Use::value_projection);
    if (w.value_table.defined() && w.value_gate.defined()) {
        const at::Tensor rows = at::embedding(w.value_table, pass.ids.to(w.value_table.device()))
                                    .to(value.device())
                                    .view(value.sizes());
        const at::Tensor share =
            at::sigmoid(at::linear(input.narrow(1, 0, gate_reads), w.value_gate)) * 2; // [n, heads]
        value = value + share.unsqueeze(2) * rows;
    }
    return blocks::self_attention(l, heads(w.c_q, Workspace::Use::projection),
                                  heads(w.c_k, Workspace::Use::key_projection), value, config_, pass,
                                  head_norms_);
}

at::Tensor Parcae::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Block& w = blocks_[static_cast<std::size_t>(l)];
    const at::Tensor normed = blocks::normalise(x, w.norm_1, pass, Workspace::Use::normed);
    const at::Tensor attended = blocks::add_linear(x, attention(l, normed, pass), w.c_proj, pass);
    const at::Tensor mlp_input = blocks::normalise(attended, w.norm_2, pass, Workspace::Use::normed);
    if (config_.released.gated_mlp) {
        return blocks::add_gated_mlp(attended, mlp_input, w.gate, w.fc, w.proj, config_.activation, pass);
    }
    return blocks::add_mlp(attended, mlp_input, w.fc, w.proj, config_.activation, pass);
}

} // namespace

BackboneEntry parcae_backbone() {
    return backbone_entry<Parcae>(Architecture::parcae);
}

} // namespace ponderscope
