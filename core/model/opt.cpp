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

    std::vector<Layer> layers_;
    at::Tensor positions_; ///< [max_positions, d], without the rows before position 0's
    at::Tensor project_in_, project_out_;
    blocks::Norm final_layer_norm_;
};

ParameterLayout Opt::layout(const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const std::string stack = opt_decoder;
    LayoutBuilder builder;
    builder.blocks(config.layers, opt_block);
    const auto norm = [&](const std::string& name) {
        if (config.norm_affine) {
            builder.norm(name, d, true);
        }
    };
    builder.matrix(stack + "embed_tokens.weight", config.vocab_size, config.embed_dim);
    builder.matrix(stack + "embed_positions.weight", config.max_positions + position_offset, d);
    if (projects(config)) {
        builder.linear(stack + "project_in", d, config.embed_dim, false);
        builder.linear(stack + "project_out", config.embed_dim, d, false);
    }
    for (std::int64_t l = 0; l < config.layers; ++l) {
        for (const char* const projection : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
            builder.linear(opt_block(l) + "self_attn." + projection, d, d, config.attention_bias);
        }
        norm(opt_block(l) + "self_attn_layer_norm");
        builder.linear(opt_block(l) + "fc1", config.intermediate_size, d, config.mlp_bias);
        builder.linear(opt_block(l) + "fc2", d, config.intermediate_size, config.mlp_bias);
        norm(opt_block(l) + "final_layer_norm");
    }
    if (has_final_norm(config)) {
        norm(stack + "final_layer_norm");
    }
    builder.matrix("lm_head.weight", config.vocab_size, config.embed_dim);
    return builder.finish(stack + "embed_tokens.weight", "lm_head.weight", config.tied_embeddings, {});
}

Opt::Opt(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), opt_blocks),
      positions_(
          parameters.at(std::string(opt_decoder) + "embed_positions.weight").slice(0, position_offset)),
      project_in_(parameters.find(std::string(opt_decoder) + "project_in.weight")),
      project_out_(parameters.find(std::string(opt_decoder) + "project_out.weight")) {
    for (std::int64_t l = 0; l < config.layers; ++l) {
        layers_.push_back({blocks::Norm::from(parameters, opt_block(l) + "self_attn_layer_norm", config),
                           blocks::Norm::from(parameters, opt_block(l) + "final_layer_norm", config),
                           blocks::Linear::from(parameters, opt_block(l) + "self_attn.q_proj"),
                           blocks::Linear::from(parameters, opt_block(l) + "self_attn.k_proj"),
                           blocks::Linear::from(parameters, opt_block(l) + "self_attn.v_proj"),
                           blocks::Linear::from(parameters, opt_block(l) + "self_attn.out_proj"),
                           blocks::Linear::from(parameters, opt_block(l) + "fc1"),
                           blocks::Linear::from(parameters, opt_block(l) + "fc2")});
    }
    final_layer_norm_ = blocks::Norm::from(parameters, std::string(opt_decoder) + "final_layer_norm", config);
}

at::Tensor Opt::enter(const at::Tensor& x, const Pass& pass) const {
    return (project_in_.defined() ? at::linear(x, project_in_) : x) +
           at::embedding(positions_, pass.positions);
}

at::Tensor Opt::attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const {
    const Layer& w = layers_[static_cast<std::size_t>(l)];
    const auto heads = [&](const at::Tensor& rows, const blocks::Linear& projection, Workspace::Use use) {
        return blocks::linear(rows, projection, pass, use)
            .view({rows.size(0), config_.query_heads, config_.head_dim});
    };
    return blocks::self_attention(l,
                                  heads(blocks::attending(input, pass), w.q_proj, Workspace::Use::projection),
                                  heads(input, w.k_proj, Workspace::Use::key_projection),
                                  heads(input, w.v_proj, Workspace::Use::value_projection), config_, pass);
}

at::Tensor Opt::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = layers_[static_cast<std::size_t>(l)];
    const at::Tensor through = blocks::attending(x, pass);
    if (config_.pre_norm) {
        const at::Tensor normed = blocks::normalise(x, w.self_attn_layer_norm, pass, Workspace::Use::normed);
        const at::Tensor attended = blocks::add_linear(through, attention(l, normed, pass), w.out_proj, pass);
        const at::Tensor mlp_input =
            blocks::normalise(attended, w.final_layer_norm, pass, Workspace::Use::normed);
        return blocks::add_mlp(attended, mlp_input, w.fc1, w.fc2, config_.activation, pass);
    }
    // Each sum is normed as a whole, and the norm is both the next sublayer's input and what it adds to. (In
    // memory of its own: additions happen in place.)
    const at::Tensor attended = blocks::normalise(
        blocks::add_linear(through, attention(l, x, pass), w.out_proj, pass), w.self_attn_layer_norm);
    const at::Tensor input = pass.workspace != nullptr ? attended.clone() : attended;
    return blocks::normalise(blocks::add_mlp(attended, input, w.fc1, w.fc2, config_.activation, pass),
                             w.final_layer_norm);
}

at::Tensor Opt::final_norm(const at::Tensor& x) const {
    const at::Tensor normed = has_final_norm(config_) ? blocks::normalise(x, final_layer_norm_) : x;
    if (project_out_.defined()) {
        return at::linear(normed, project_out_);
    }
    return has_final_norm(config_) ? normed : x.clone(); // a tensor of its own
}

} // namespace

BackboneEntry opt_backbone() {
    return backbone_entry<Opt>(Architecture::opt);
}

} // namespace ponderscope
