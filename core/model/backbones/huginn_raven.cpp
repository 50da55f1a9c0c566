// SPDX-License-Identifier: GPL-3.0-or-later
// Huginn and the models retrofitted in its format (methods-released.md sections 3 and 5): prelude, core and
// coda of the same blocks, and an adapter that joins the state and the prelude's output.
#include "core/model/backbone_table.h"
#include "core/model/blocks.h"
#include "core/model/layout_builder.h"

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace ponderscope {

namespace {

/// Three kinds of block. Norms of Huginn's own are on the sums: the residual stream itself is normed.
///   sandwich:  x = N2(Attn(N1(x)) + x);   x = N4(MLP(N3(x)) + x)
///   llama:     x = x + Attn(N1(x));       x = x + MLP(N2(x))
///   olmo2:     x = x + N1(Attn(x));       x = x + N2(MLP(x)), q and k normed over all heads together
/// MLP(y) = proj(silu(a) * b), [a; b] = fc y.
class HuginnRaven final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    HuginnRaven(const ModelConfig& config, const Parameters& parameters);

    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override {
        return blocks::normalise(x, weights_.ln_f);
    }
    /// W_a [x ; e] + b_a: the state first.
    [[nodiscard]] at::Tensor inject(const at::Tensor& state, const at::Tensor& entering) const override {
        const at::Tensor both = at::cat({state.to(entering.scalar_type()), entering}, 1);
        const blocks::Linear& adapter = weights_.adapter;
        return at::linear(both, adapter.weight,
                          adapter.bias.defined() ? std::optional(adapter.bias) : std::nullopt);
    }
    [[nodiscard]] std::int64_t injection_flops() const override {
        return 4 * config_.hidden_size * config_.hidden_size;
    }

private:
    struct Block {
        blocks::Norm norm_1, norm_2, norm_3, norm_4, q_norm, k_norm;
        blocks::Linear qkv, proj, gate, up, mlp_proj;
    };
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const;
    [[nodiscard]] at::Tensor before_coda(const at::Tensor& x) const override {
        return config_.sandwich.norm_before_coda ? final_norm(x) : x;
    }

    struct Weights {
        std::vector<Block> blocks;
        blocks::Linear adapter;
        blocks::Norm ln_f;
    };
    static Weights declare(LayoutBuilder& builder, const ModelConfig& config);

    Weights weights_;
};

HuginnRaven::Weights HuginnRaven::declare(LayoutBuilder& builder, const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t m = config.intermediate_size;
    const std::int64_t queries = config.query_heads * config.head_dim;
    const std::int64_t keys = config.kv_heads * config.head_dim;
    const RavenBlock kind = config.released.block;
    Weights weights;
    builder.matrix("transformer.wte.weight", config.vocab_size, d);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        const std::string name = sandwich_block_name(config, l);
        Block block;
        block.norm_1 = builder.norm(name + "norm_1", d);
        block.norm_2 = builder.norm(name + "norm_2", d);
        if (kind == RavenBlock::sandwich) {
            block.norm_3 = builder.norm(name + "norm_3", d);
            block.norm_4 = builder.norm(name + "norm_4", d);
        }
        block.qkv.weight = builder.matrix(name + "attn.Wqkv.weight", queries + 2 * keys, d);
        if (config.released.qk_bias) {
            const at::Tensor bias =
                builder.tensor(name + "attn.qk_bias", {2, 1, config.query_heads, config.head_dim}, 0.0);
            if (bias.defined()) {
                block.qkv.bias = at::cat({bias.reshape({-1}), at::zeros({queries}, bias.options())});
            }
        }
        if (kind == RavenBlock::olmo2) {
            block.q_norm = builder.norm(name + "attn.q_norm", queries);
            block.k_norm = builder.norm(name + "attn.k_norm", keys);
        }
        block.proj = builder.linear(name + "attn.proj", d, queries);
        const blocks::Linear fc = builder.linear(name + "mlp.fc", 2 * m, d);
        block.gate = fc.part(0, m);
        block.up = fc.part(m, m);
        block.mlp_proj = builder.linear(name + "mlp.proj", d, m);
        weights.blocks.push_back(std::move(block));
    }
    weights.adapter = builder.linear("transformer.adapter", d, 2 * d, config.sandwich.injection_bias);
    weights.ln_f = builder.norm("transformer.ln_f", d);
    builder.matrix("lm_head.weight", config.vocab_size, d);
    return weights;
}

ParameterLayout HuginnRaven::layout(const ModelConfig& config) {
    LayoutBuilder builder(config);
    declare(builder, config);
    return builder.finish("transformer.wte.weight", "lm_head.weight", config.tied_embeddings, {"freqs_cis"});
}

HuginnRaven::HuginnRaven(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), "transformer.") {
    LayoutBuilder builder(config, &parameters);
    weights_ = declare(builder, config);
}

at::Tensor HuginnRaven::attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const {
    const Block& w = weights_.blocks[static_cast<std::size_t>(l)];
    const std::int64_t n = input.size(0);
    const std::int64_t queries = config_.query_heads * config_.head_dim;
    const std::int64_t keys = config_.kv_heads * config_.head_dim;
    const at::Tensor qkv = blocks::linear(input, w.qkv);
    at::Tensor q = qkv.narrow(1, 0, queries);
    at::Tensor k = qkv.narrow(1, queries, keys);
    const at::Tensor v = qkv.narrow(1, queries + keys, keys);
    if (w.q_norm.weight.defined()) {
        q = blocks::normalise(q.contiguous(), w.q_norm);
        k = blocks::normalise(k.contiguous(), w.k_norm);
    }
    const at::Tensor attended =
        blocks::self_attention(l, q.unflatten(1, {config_.query_heads, config_.head_dim}),
                               k.unflatten(1, {config_.kv_heads, config_.head_dim}),
                               v.unflatten(1, {config_.kv_heads, config_.head_dim}), config_, pass);
    TORCH_CHECK(attended.size(0) == n, "a sandwich's blocks run all slots of a pass");
    return attended;
}

at::Tensor HuginnRaven::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Block& w = weights_.blocks[static_cast<std::size_t>(l)];
    const auto mlp = [&](const at::Tensor& residual, const at::Tensor& input) {
        return blocks::add_gated_mlp(residual, input, w.gate, w.up, w.mlp_proj, config_.activation);
    };
    const auto norm = [&](const at::Tensor& rows, const blocks::Norm& one) {
        return blocks::normalise(rows, one);
    };
    switch (config_.released.block) {
    case RavenBlock::sandwich: {
        const at::Tensor sum = blocks::add_linear(x, attention(l, norm(x, w.norm_1), pass), w.proj);
        const at::Tensor attended = blocks::normalise(sum, w.norm_2);
        return blocks::normalise(mlp(attended, norm(attended, w.norm_3)), w.norm_4);
    }
    case RavenBlock::llama: {
        const at::Tensor attended = blocks::add_linear(x, attention(l, norm(x, w.norm_1), pass), w.proj);
        return mlp(attended, norm(attended, w.norm_2));
    }
    case RavenBlock::olmo2:
        break;
    }
    const at::Tensor added = blocks::linear(attention(l, x, pass), w.proj);
    const at::Tensor attended = x + norm(added, w.norm_1);
    return attended + norm(mlp(at::zeros_like(attended), attended), w.norm_2);
}

} // namespace

BackboneEntry huginn_raven_backbone() {
    return backbone_entry<HuginnRaven>(Architecture::huginn_raven);
}

} // namespace ponderscope
