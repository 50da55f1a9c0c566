// SPDX-License-Identifier: GPL-3.0-or-later
// OPT, and with it Galactica: learned positions whose table begins two rows early, norms before or after the
// sublayers, and embeddings that may be narrower than the stack. The projections between the two widths are
// part of the stack: what enters and leaves it has the embedding's width, so that a state can be fed back.
#include "core/model/backbone_table.h"
#include "core/model/blocks.h"
#include "core/model/layout_builder.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

constexpr const char* opt_decoder = "model.decoder.";
constexpr const char* opt_blocks = "model.decoder.layers.";
/// Rows of the position table before position 0's.
constexpr std::int64_t position_offset = 2;

std::string opt_block(std::int64_t l) {
    return opt_blocks + std::to_string(l) + ".";
}

bool has_final_norm(const ModelConfig& config) {
    return config.pre_norm && !config.remove_final_norm;
}

bool projects(const ModelConfig& config) {
    return config.embed_dim != config.hidden_size;
}

class Opt final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    Opt(const ModelConfig& config, const Parameters& parameters);

private:
    struct Layer {
        blocks::Norm self_attn_layer_norm, final_layer_norm;
        blocks::Linear q_proj, k_proj, v_proj, out_proj, fc1, fc2;
    };
    [[nodiscard]] at::Tensor enter(const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override;

    struct Weights {
        std::vector<Layer> layers;
        at::Tensor positions; ///< [max_positions, d], without the rows before position 0's
        at::Tensor project_in, project_out;
        blocks::Norm final_layer_norm;
    };
    static Weights declare(LayoutBuilder& builder, const ModelConfig& config);

    Weights weights_;
};

Opt::Weights Opt::declare(LayoutBuilder& builder, const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t m = config.intermediate_size;
    const std::string stack = opt_decoder;
    Weights weights;
    const auto norm = [&](const std::string& name) {
        return config.norm_affine ? builder.norm(name, d, true)
                                  : blocks::Norm{config.norm, {}, {}, config.norm_eps};
    };
    builder.matrix(stack + "embed_tokens.weight", config.vocab_size, config.embed_dim);
    weights.positions =
        builder.matrix(stack + "embed_positions.weight", config.max_positions + position_offset, d);
    if (weights.positions.defined()) {
        weights.positions = weights.positions.slice(0, position_offset);
    }
    if (projects(config)) {
        weights.project_in = builder.linear(stack + "project_in", d, config.embed_dim).weight;
        weights.project_out = builder.linear(stack + "project_out", config.embed_dim, d).weight;
    }
    for (std::int64_t l = 0; l < config.layers; ++l) {
        const std::string name = opt_block(l);
        Layer layer;
        for (const auto& [own, linear] : {std::pair{"q_proj", &layer.q_proj},
                                          {"k_proj", &layer.k_proj},
                                          {"v_proj", &layer.v_proj},
                                          {"out_proj", &layer.out_proj}}) {
            *linear = builder.linear(name + "self_attn." + own, d, d, config.attention_bias);
        }
        layer.self_attn_layer_norm = norm(name + "self_attn_layer_norm");
        layer.fc1 = builder.linear(name + "fc1", m, d, config.mlp_bias);
        layer.fc2 = builder.linear(name + "fc2", d, m, config.mlp_bias);
        layer.final_layer_norm = norm(name + "final_layer_norm");
        weights.layers.push_back(std::move(layer));
    }
    if (has_final_norm(config)) {
        weights.final_layer_norm = norm(stack + "final_layer_norm");
    }
    builder.matrix("lm_head.weight", config.vocab_size, config.embed_dim);
    return weights;
}

ParameterLayout Opt::layout(const ModelConfig& config) {
    LayoutBuilder builder(config);
    declare(builder, config);
    return builder.finish(std::string(opt_decoder) + "embed_tokens.weight", "lm_head.weight",
                          config.tied_embeddings, {});
}

Opt::Opt(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), opt_blocks) {
    LayoutBuilder builder(config, &parameters);
    weights_ = declare(builder, config);
}

at::Tensor Opt::enter(const at::Tensor& x, const Pass& pass) const {
    return (weights_.project_in.defined() ? at::linear(x, weights_.project_in) : x) +
           at::embedding(weights_.positions, pass.positions);
}

at::Tensor Opt::attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const {
    const Layer& w = weights_.layers[static_cast<std::size_t>(l)];
    const auto heads = [&](const at::Tensor& rows, const blocks::Linear& projection) {
        return blocks::linear(rows, projection).view({rows.size(0), config_.query_heads, config_.head_dim});
    };
    return blocks::self_attention(l, heads(blocks::attending(input, pass), w.q_proj), heads(input, w.k_proj),
                                  heads(input, w.v_proj), config_, pass);
}

at::Tensor Opt::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights_.layers[static_cast<std::size_t>(l)];
    const at::Tensor through = blocks::attending(x, pass);
    if (config_.pre_norm) {
        const at::Tensor normed = blocks::normalise(x, w.self_attn_layer_norm);
        const at::Tensor attended = blocks::add_linear(through, attention(l, normed, pass), w.out_proj);
        const at::Tensor mlp_input = blocks::normalise(attended, w.final_layer_norm);
        return blocks::add_mlp(attended, mlp_input, w.fc1, w.fc2, config_.activation);
    }
    // Each sum is normed as a whole, and the norm is both the next sublayer's input and what it adds to.
    const at::Tensor attended = blocks::normalise(
        blocks::add_linear(through, attention(l, x, pass), w.out_proj), w.self_attn_layer_norm);
    return blocks::normalise(blocks::add_mlp(attended, attended, w.fc1, w.fc2, config_.activation),
                             w.final_layer_norm);
}

at::Tensor Opt::final_norm(const at::Tensor& x) const {
    const at::Tensor normed = has_final_norm(config_) ? blocks::normalise(x, weights_.final_layer_norm) : x;
    if (weights_.project_out.defined()) {
        return at::linear(normed, weights_.project_out);
    }
    return has_final_norm(config_) ? normed : x.clone(); // a tensor of its own
}

} // namespace

BackboneEntry opt_backbone() {
    return backbone_entry<Opt>(Architecture::opt);
}

} // namespace ponderscope
