// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/state_recorder.h"

#include "core/ponder/schedule/visibility.h"
#include "core/trace/column_labels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace ponderscope {

StateForm::StateForm(const StateChoice& choice, const ModelConfig& config, const Method& method)
    : steps(method.max_steps() + 1),
      layers(static_cast<std::int64_t>(choice.layers.size())),
      // opt's blocks are wider than what goes in and comes out.
      width(choice.layers.empty() && !method.layers_are_steps() ? config.embed_dim : config.hidden_size) {}

SignalInfo StateForm::info(const StateChoice& choice, const std::string& states) const {
    SignalInfo info{signal::state, {"token", "step"}, "", "States", "The " + states + ".", DType::f16};
    if (layers > 0) {
        std::vector<std::string> labels;
        for (const std::int64_t layer : choice.layers) {
            labels.push_back(std::to_string(layer));
        }
        info.axes.emplace_back("layer");
        info.description = with_column_labels("The residual stream after each chosen layer.", labels);
    }
    info.axes.emplace_back("dim");
    return info;
}

StateRecorder::StateRecorder(StateChoice choice, const StateForm& form, std::int64_t count, at::Device device)
    : choice_(std::move(choice)) {
    std::vector<std::int64_t> shape{count, form.steps, form.width};
    if (form.layers > 0) {
        shape.insert(shape.end() - 1, form.layers);
    }
    values_ = at::full(shape, std::numeric_limits<double>::quiet_NaN(),
                       at::TensorOptions(at::kHalf).device(device));
}

bool StateRecorder::wants_layer(std::string_view, std::int64_t layer) const {
    return std::binary_search(choice_.layers.begin(), choice_.layers.end(), layer);
}

namespace {

void put(at::Tensor column, const RecordedRows& rows, const at::Tensor& states) {
    const at::Tensor some = select_rows(states, rows.local);
    rows.place.defined() ? column.index_copy_(0, rows.place, some.to(at::kHalf)) : column.copy_(some);
}

} // namespace

void StateRecorder::step_ran(std::int64_t step, const at::Tensor& hidden) {
    if (choice_.layers.empty() && !rows_.empty) {
        put(values_.select(1, step), rows_, hidden);
    }
}

void StateRecorder::heard(std::string_view name, std::int64_t step, std::int64_t layer,
                          const at::Tensor& tensor) {
    if (rows_.empty || !wants_layer(name, layer)) {
        return;
    }
    const auto column = std::lower_bound(choice_.layers.begin(), choice_.layers.end(), layer);
    put(values_.select(1, step).select(1, column - choice_.layers.begin()), rows_, tensor);
}

} // namespace ponderscope
