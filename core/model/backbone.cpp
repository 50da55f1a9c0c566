// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbone.h"

#include "core/base/error.h"
#include "core/model/gpt2.h"
#include "core/model/gpt_neox.h"
#include "core/model/llama.h"
#include "core/model/rope.h"
#include "core/model/workspace.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <string>

namespace ponderscope {

namespace {

/// Rows of a rotation table are made in steps of this size, so that growing texts do not make one table each.
constexpr std::int64_t table_step = 512;

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
    return (value + step - 1) / step * step;
}

void require_supported(const ModelConfig& config) {
    if (!is_runnable(config.architecture)) {
        throw InputError("This build runs gpt2, gpt_neox and llama models, not " +
                         to_string(config.architecture) + ".");
    }
    if (config.depth.kind != DepthMixing::none) {
        throw InputError("This build does not run the depth mixing " + to_string(config.depth.kind) + ".");
    }
}

} // namespace

bool is_runnable(Architecture architecture) {
    return architecture == Architecture::gpt2 || architecture == Architecture::gpt_neox ||
           architecture == Architecture::llama;
}

KvRows::KvRows(std::int64_t layers, std::int64_t rows, std::int64_t kv_heads, std::int64_t head_dim,
               const at::TensorOptions& options) {
    for (std::int64_t l = 0; l < layers; ++l) {
        k_.push_back(at::zeros({rows, kv_heads, head_dim}, options));
        v_.push_back(at::zeros({rows, kv_heads, head_dim}, options));
    }
}

void KvRows::put(std::int64_t layer, const at::Tensor& rows, const at::Tensor& k, const at::Tensor& v) {
    at::Tensor& keys = k_[static_cast<std::size_t>(layer)];
    at::Tensor& values = v_[static_cast<std::size_t>(layer)];
    if (at::GradMode::is_enabled() && (k.requires_grad() || v.requires_grad() || keys.requires_grad())) {
        keys = at::index_copy(keys, 0, rows, k);
        values = at::index_copy(values, 0, rows, v);
        return;
    }
    keys.index_copy_(0, rows, k);
    values.index_copy_(0, rows, v);
}

void KvRows::copy(std::int64_t from, std::int64_t to, std::int64_t count) {
    for (std::vector<at::Tensor>* side : {&k_, &v_}) {
        for (at::Tensor& tensor : *side) {
            if (tensor.requires_grad()) {
                tensor = at::slice_scatter(tensor, tensor.narrow(0, from, count), 0, to, to + count);
            } else {
                tensor.narrow(0, to, count).copy_(tensor.narrow(0, from, count));
            }
        }
    }
}

Backbone::Backbone(ModelConfig config, const Parameters& parameters, const ParameterLayout& layout,
                   const std::string& block_prefix)
    : config_(std::move(config)),
      embedding_(parameters.at(layout.embedding)),
      head_(parameters.at(layout.head)) {
    for (const TensorSpec& spec : layout.tensors) {
        if (spec.shape.size() == 2 && spec.name.starts_with(block_prefix)) {
            block_matrix_elements_ += spec.shape[0] * spec.shape[1];
        }
    }
}

std::int64_t Backbone::longest_sequence() const {
    return config_.architecture == Architecture::gpt2 ? config_.max_positions
                                                      : std::numeric_limits<std::int64_t>::max();
}

at::Tensor Backbone::embed(const at::Tensor& ids) const {
    return at::embedding(embedding_, ids);
}

at::Tensor Backbone::enter(const at::Tensor& x, const Pass&) const {
    return x;
}

at::Tensor Backbone::run(const at::Tensor& x, const Pass& pass) const {
    at::Tensor stream = enter(x, pass);
    if (pass.workspace != nullptr) {
        // Layers add to the stream in place, and the slots' inputs belong to the method.
        at::Tensor residual = pass.workspace->take(Workspace::Use::residual, x.sizes(), x.options());
        residual.copy_(stream);
        stream = residual;
    }
    for (std::int64_t l = 0; l < config_.layers; ++l) {
        stream = layer(l, stream, pass);
        pass.tap("layer_output", stream, l);
    }
    if (pass.stream != nullptr) {
        *pass.stream = pass.workspace != nullptr ? stream.clone() : stream;
    }
    return final_norm(stream);
}

HeadWeights Backbone::head() const {
    return {head_, head_bias_, embedding_};
}

RotationTable Backbone::rotation(const std::vector<std::int64_t>& lengths) const {
    if (config_.rope.kind == RopeConfig::Kind::none) {
        return {{}, {}, std::vector<std::int64_t>(lengths.size(), 0)};
    }
    const std::int64_t longest =
        lengths.empty() ? 1 : std::max<std::int64_t>(1, *std::max_element(lengths.begin(), lengths.end()));
    if (!cached_rotation_.cos.defined() || cached_rotation_.cos.size(0) < longest) {
        auto [cos, sin] = rope_table(config_.rope, config_.max_positions, 0, rounded_up(longest, table_step));
        cached_rotation_.cos = cos.to(embedding_.device());
        cached_rotation_.sin = sin.to(embedding_.device());
    }
    RotationTable table{cached_rotation_.cos, cached_rotation_.sin,
                        std::vector<std::int64_t>(lengths.size(), 0)};
    if (config_.rope.kind != RopeConfig::Kind::dynamic || longest <= config_.max_positions) {
        return table;
    }
    // Beyond the trained length every sequence turns by angles of its own.
    std::vector<at::Tensor> cosines{table.cos};
    std::vector<at::Tensor> sines{table.sin};
    std::int64_t rows = table.cos.size(0);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] <= config_.max_positions) {
            continue;
        }
        auto [cos, sin] = rope_table(config_.rope, config_.max_positions, lengths[i], lengths[i]);
        cosines.push_back(cos.to(embedding_.device()));
        sines.push_back(sin.to(embedding_.device()));
        table.row_base[i] = rows;
        rows += lengths[i];
    }
    table.cos = at::cat(cosines);
    table.sin = at::cat(sines);
    return table;
}

ParameterLayout backbone_layout(const ModelConfig& config) {
    require_supported(config);
    switch (config.architecture) {
    case Architecture::gpt2:
        return Gpt2::layout(config);
    case Architecture::gpt_neox:
        return GptNeox::layout(config);
    default:
        return Llama::layout(config);
    }
}

std::unique_ptr<Backbone> make_backbone(const ModelConfig& config, const Parameters& parameters) {
    require_supported(config);
    switch (config.architecture) {
    case Architecture::gpt2:
        return std::make_unique<Gpt2>(config, parameters);
    case Architecture::gpt_neox:
        return std::make_unique<GptNeox>(config, parameters);
    default:
        return std::make_unique<Llama>(config, parameters);
    }
}

} // namespace ponderscope
