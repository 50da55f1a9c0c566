// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbone.h"

#include "core/base/error.h"
#include "core/kernels/gradient.h"
#include "core/model/backbones/block_stack.h"
#include "core/model/depth_attention.h"
#include "core/model/residual.h"
#include "core/model/rope.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace ponderscope {

namespace {

/// Rotation tables grow by this number of rows, so that not every longer text makes a new table.
constexpr std::int64_t table_step = 512;

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
    return (value + step - 1) / step * step;
}

void check_combination(const ModelConfig& config) {
    if (config.embed_dim != config.hidden_size && config.ponder.method == MethodKind::looped) {
        throw InputError(ErrorId::usage_unsuited,
                         "The stack of this model cannot loop, because its hidden size (" +
                             std::to_string(config.hidden_size) +
                             ") differs from the width of its embeddings (" +
                             std::to_string(config.embed_dim) + "); use --method vanilla.");
    }
    if (config.depth.kind == DepthMixing::depth_attention && config.rope.kind == RopeConfig::Kind::none) {
        throw InputError(ErrorId::usage_unsuited,
                         "Depth-Attention mixes the values of layers with rotary positions, and " +
                             to_string(config.architecture) +
                             " models have none; remove use_depth_attention from config.json.");
    }
}

std::unique_ptr<Backbone> build(const ModelConfig& config, TensorBuilder& builder) {
    check_combination(config);
    switch (config.architecture) {
#define PONDERSCOPE_ARCHITECTURE(name)                                                                       \
    case Architecture::name:                                                                                 \
        return name##_backbone(config, builder);
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE
    }
    return nullptr;
}

at::Tensor edited(std::int64_t layer, const at::Tensor& stream, const Pass& pass) {
    return pass.edit ? pass.edit(layer, stream) : stream;
}

/// The part of the stream that listeners receive and patches replace. hrm_text has two states side by side:
/// the part is the state that block \p l changes.
at::Tensor part_of(std::int64_t l, const at::Tensor& stream, const ModelConfig& config) {
    if (config.released.low_passes == 0) {
        return stream;
    }
    const bool high = l >= config.layers - config.layers / (config.released.low_passes + 1);
    return stream.narrow(1, high ? 0 : config.hidden_size, config.hidden_size);
}

} // namespace

KvRows::KvRows(const std::vector<std::int64_t>& rows, std::int64_t kv_heads, std::int64_t head_dim,
               const at::TensorOptions& options) {
    // Rows must be finite if attention uses an explicit mask (a gradient, fp64, or a GPU without our kernel),
    // because unwritten rows then get the weight 0. On the CPU, attention never reads unwritten rows.
    const bool written_first = options.device().is_cpu() && !at::GradMode::is_enabled() &&
                               c10::typeMetaToScalarType(options.dtype()) != at::kDouble;
    for (std::vector<at::Tensor>* side : {&k_, &v_}) {
        for (const std::int64_t count : rows) {
            side->push_back(written_first ? at::empty({count, kv_heads, head_dim}, options)
                                          : at::zeros({count, kv_heads, head_dim}, options));
        }
    }
}

void KvRows::put(std::int64_t layer, const at::Tensor& rows, const at::Tensor& k, const at::Tensor& v) {
    at::Tensor& keys = k_[static_cast<std::size_t>(layer)];
    at::Tensor& values = v_[static_cast<std::size_t>(layer)];
    if (keys.scalar_type() != k.scalar_type()) {
        // Under autocast the rows have its dtype, not the dtype of the weights.
        keys = keys.to(k.scalar_type());
        values = values.to(v.scalar_type());
    }
    if (wants_gradient(k) || wants_gradient(v) || wants_gradient(keys)) {
        keys = at::index_copy(keys, 0, rows, k);
        values = at::index_copy(values, 0, rows, v);
        return;
    }
    keys.index_copy_(0, rows, k);
    values.index_copy_(0, rows, v);
}

void KvRows::copy(std::int64_t first, std::int64_t last, std::int64_t from, std::int64_t to,
                  std::int64_t count) {
    for (std::vector<at::Tensor>* side : {&k_, &v_}) {
        for (std::int64_t l = first; l < last; ++l) {
            at::Tensor& tensor = (*side)[static_cast<std::size_t>(l)];
            if (tensor.requires_grad()) {
                tensor = at::slice_scatter(tensor, tensor.narrow(0, from, count), 0, to, to + count);
            } else {
                tensor.narrow(0, to, count).copy_(tensor.narrow(0, from, count));
            }
        }
    }
}

Backbone::Backbone(ModelConfig config) : config_(std::move(config)) {}

void Backbone::count_elements(const ParameterLayout& layout, const std::vector<std::string>& blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i) { // a block may appear several times
        const auto l = static_cast<std::int64_t>(i);
        std::int64_t& part = l < config_.core_begin() ? part_elements_.prelude
                             : l < config_.core_end() ? part_elements_.core
                                                      : part_elements_.coda;
        for (const TensorSpec& spec : layout.tensors) {
            if (spec.shape.size() == 2 && spec.multiplies && spec.name.starts_with(blocks[i])) {
                part += spec.shape[0] * spec.shape[1];
            }
        }
    }
    const ExpertsConfig& experts = config_.experts; // a row runs only its chosen experts
    block_matrix_elements_ = part_elements_.prelude + part_elements_.core + part_elements_.coda +
                             static_cast<std::int64_t>(experts.layers.size()) * experts.chosen * 3 *
                                 config_.hidden_size * experts.intermediate_size;
}

Backbone::~Backbone() = default;

std::int64_t Backbone::longest_sequence() const {
    return config_.rope.kind == RopeConfig::Kind::none || config_.released.positions_end
               ? config_.max_positions
               : std::numeric_limits<std::int64_t>::max();
}

at::Tensor Backbone::embed(const at::Tensor& ids) const {
    const at::Tensor rows = at::embedding(embedding_, ids);
    const double multiplier = config_.scales.embedding;
    return multiplier == 1.0 ? rows : rows * multiplier;
}

at::Tensor Backbone::prelude(const at::Tensor& embedded, const Pass& pass) const {
    return after_prelude(run_blocks(embedded, 0, config_.core_begin(), pass));
}

at::Tensor Backbone::inject(const at::Tensor&, const at::Tensor&) const {
    TORCH_CHECK(false, to_string(config_.architecture), " has no steps that read a prelude");
}

at::Tensor Backbone::coda(const at::Tensor& state, const Pass& pass) const {
    return final_norm(run_blocks(before_coda(state), config_.core_end(), config_.layers, pass));
}

at::Tensor Backbone::enter(const at::Tensor& x, const Pass&) const {
    return x;
}

at::Tensor Backbone::run(const at::Tensor& x, const Pass& pass) const {
    if (config_.depth.kind == DepthMixing::depth_attention && pass.mixer == nullptr) {
        const std::unique_ptr<ValueMixer> mixer = make_mixer();
        Pass mixing = pass;
        mixing.mixer = mixer.get();
        return run(x, mixing);
    }
    if (pass.mixer != nullptr) {
        pass.mixer->begin_pass(pass);
    }
    if (config_.recurs()) {
        return after_core(run_blocks(x, config_.core_begin(), config_.core_end(), pass));
    }
    return final_norm(run_layers(enter(x, pass), pass));
}

void Pass::check_stop() const {
    if (stop != nullptr && stop->stop_requested()) {
        throw Cancelled();
    }
}

at::Tensor Backbone::block(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    pass.check_stop();
    TORCH_CHECK(residual_ == nullptr, "a single block needs the usual residual");
    return layer(l, x, pass);
}

at::Tensor Backbone::run_layers(at::Tensor stream, const Pass& pass) const {
    const auto apply = [&](std::int64_t c, const at::Tensor& input) {
        pass.check_stop();
        return sublayer(c, input, pass);
    };
    stream = residual_ != nullptr ? residual_->run(stream, apply, pass)
                                  : run_blocks(stream, 0, config_.layers, pass);
    if (pass.stream != nullptr) {
        *pass.stream = stream;
    }
    return stream;
}

at::Tensor Backbone::run_blocks(at::Tensor stream, std::int64_t first, std::int64_t last,
                                const Pass& pass) const {
    for (std::int64_t l = first; l < last; ++l) {
        pass.check_stop();
        stream = layer(l, stream, pass);
        at::Tensor part = part_of(l, stream, config_);
        if (part.is_same(stream)) {
            part = stream = edited(l, stream, pass);
        } else if (pass.edit) {
            part.copy_(edited(l, part.contiguous(), pass));
        }
        pass.tap("layer_output", part, l);
        if (pass.wanted_blocks != nullptr) {
            for (std::size_t i = 0; i < pass.wanted_blocks->size(); ++i) {
                if ((*pass.wanted_blocks)[i] == l) {
                    (*pass.block_outputs)[i] = stream;
                }
            }
        }
    }
    return stream;
}

at::Tensor Backbone::sublayer(std::int64_t, const at::Tensor&, const Pass&) const {
    TORCH_CHECK(false, to_string(config_.architecture), " has no sublayers to join in another way");
}

KvRows Backbone::kv_rows(const std::vector<std::int64_t>& rows) const {
    return {rows, config_.kv_heads, config_.head_dim, embedding_.options()};
}

std::unique_ptr<ValueMixer> Backbone::make_mixer() const {
    return config_.depth.kind == DepthMixing::depth_attention ? std::make_unique<DepthAttention>(config_)
                                                              : nullptr;
}

HeadWeights Backbone::head() const {
    const ScaleConfig& scales = config_.scales;
    return {head_,         head_bias_,      embedding_, scales.logit_softcap.value_or(0.0),
            scales.logits, scales.embedding};
}

RotationTable Backbone::rotation(const std::vector<std::int64_t>& lengths) const {
    if (config_.rope.kind == RopeConfig::Kind::none) {
        return {{}, {}, std::vector<std::int64_t>(lengths.size(), 0)};
    }
    const bool two = std::find(config_.layer_rope.begin(), config_.layer_rope.end(), LayerRope::local) !=
                     config_.layer_rope.end();
    // [rows, r]; with two kinds of layers [2, rows, r].
    const auto tables = [&](std::int64_t length, std::int64_t positions) {
        auto [cos, sin] = rope_table(config_.rope, config_.max_positions, length, positions);
        if (two) {
            const auto [local_cos, local_sin] =
                rope_table(config_.local_rope, config_.max_positions, length, positions);
            cos = at::stack({cos, local_cos});
            sin = at::stack({sin, local_sin});
        }
        return std::pair(cos.to(embedding_.device()), sin.to(embedding_.device()));
    };
    const std::int64_t shared = std::min(config_.rope.longest_shared(config_.max_positions),
                                         two ? config_.local_rope.longest_shared(config_.max_positions)
                                             : std::numeric_limits<std::int64_t>::max());
    const std::int64_t longest =
        lengths.empty() ? 1 : std::max<std::int64_t>(1, *std::max_element(lengths.begin(), lengths.end()));
    if (!cached_rotation_.cos.defined() || cached_rotation_.cos.size(-2) < longest) {
        std::tie(cached_rotation_.cos, cached_rotation_.sin) = tables(0, rounded_up(longest, table_step));
    }
    RotationTable table{cached_rotation_.cos, cached_rotation_.sin,
                        std::vector<std::int64_t>(lengths.size(), 0)};
    if (longest <= shared) {
        return table;
    }
    // Each sequence beyond this length has its own angles.
    std::vector<at::Tensor> cosines{table.cos};
    std::vector<at::Tensor> sines{table.sin};
    std::int64_t rows = table.cos.size(-2);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        if (lengths[i] <= shared) {
            continue;
        }
        auto [cos, sin] = tables(lengths[i], lengths[i]);
        cosines.push_back(cos);
        sines.push_back(sin);
        table.row_base[i] = rows;
        rows += lengths[i];
    }
    table.cos = at::cat(cosines, -2);
    table.sin = at::cat(sines, -2);
    return table;
}

ParameterLayout backbone_layout(const ModelConfig& config) {
    TensorBuilder builder(config);
    (void)build(config, builder);
    (void)make_residual_structure(config, builder);
    ParameterLayout layout = builder.finish();
    layout.first_layers = config.layers_left_out > 0;
    return layout;
}

std::unique_ptr<Backbone> make_backbone(const ModelConfig& config, const Parameters& parameters) {
    TensorBuilder builder(config, &parameters);
    std::unique_ptr<Backbone> backbone = build(config, builder);
    backbone->residual_ = make_residual_structure(config, builder);
    backbone->count_elements(builder.layout(), builder.blocks());
    return backbone;
}

} // namespace ponderscope
