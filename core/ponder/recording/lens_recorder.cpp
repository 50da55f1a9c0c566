// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/lens_recorder.h"

#include "core/ponder/schedule/visibility.h"
#include "core/trace/column_labels.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

std::int64_t layers_of(const ModelConfig& config) {
    return config.core_end() - config.core_begin();
}

} // namespace

std::vector<SignalInfo> LensRecorder::infos(const ModelConfig& config) {
    std::vector<std::string> labels;
    for (std::int64_t layer = config.core_begin(); layer < config.core_end(); ++layer) {
        labels.push_back(std::to_string(layer));
    }
    const auto info = [&](const char* name, const char* unit, const char* title, const char* what,
                          DType dtype = DType::f32, bool of_target = false) {
        return SignalInfo{
            name,
            {"token", "step", "layer"},
            unit,
            title,
            with_column_labels(std::string(what) +
                                   " when the layer's state goes through the final norm and the head.",
                               labels),
            dtype,
            SignalStorage::plain,
            false,
            of_target};
    };
    return {
        info(signal::layer_nll, "nats", "NLL by step and layer", "Negative log-likelihood of the next token",
             DType::f32, true),
        info(signal::layer_entropy, "nats", "Entropy by step and layer", "Entropy of the distribution"),
        info(signal::layer_max_probability, "probability", "Maximum probability by step and layer",
             "Largest probability"),
        info(signal::layer_rank, "", "Rank by step and layer",
             "1 + the number of logits above the next token's", DType::i32, true),
        info(signal::layer_argmax, "", "Most likely token by step and layer", "Id of the largest logit",
             DType::i32)};
}

std::int64_t LensRecorder::token_bytes(const ModelConfig& config, std::int64_t steps) {
    return 5 * 4 * steps * layers_of(config);
}

LensRecorder::LensRecorder(const Backbone& backbone, std::int64_t count, std::int64_t steps,
                           at::Tensor targets)
    : backbone_(backbone), config_(backbone.config()), targets_(std::move(targets)) {
    const auto floats = at::TensorOptions(at::kFloat).device(backbone.head().head.device());
    for (const SignalInfo& info : infos(config_)) {
        values_.emplace_back(info.name, at::zeros({count, steps, layers_of(config_)},
                                                  !is_real(info.dtype) ? floats.dtype(at::kLong) : floats));
    }
}

void LensRecorder::heard(std::string_view name, std::int64_t step, std::int64_t layer,
                         const at::Tensor& tensor) {
    if (rows_.empty || !wants_layer(name, layer)) {
        return;
    }
    const HeadWeights head = backbone_.head();
    HeadRequest request;
    request.distribution = true;
    request.targets = select_rows(targets_, rows_.place);
    const at::Tensor states = backbone_.final_norm(select_rows(tensor, rows_.local));
    const HeadResult read = read_out(states.to(head.head.scalar_type()), head, request);
    const at::Tensor results[] = {read.nll, read.entropy, read.max_probability, read.rank, read.argmax};
    for (std::size_t i = 0; i < values_.size(); ++i) {
        at::Tensor column = values_[i].second.select(1, step).select(1, layer - config_.core_begin());
        if (results[i].defined()) {
            rows_.place.defined() ? column.index_copy_(0, rows_.place, results[i]) : column.copy_(results[i]);
        }
    }
}

} // namespace ponderscope
