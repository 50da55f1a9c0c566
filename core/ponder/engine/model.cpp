// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/engine/model.h"

#include "core/kernels/head.h"
#include "core/model/device.h"
#include "core/ponder/halting/halting.h"
#include "core/ponder/method.h"
#include "core/ponder/schedule/steps.h"

#include <ATen/ATen.h>

#include <utility>

namespace ponderscope {

PackedBatch PackedBatch::from_windows(const std::vector<std::span<const std::int32_t>>& windows,
                                      at::Device device) {
    PackedBatch batch;
    std::vector<std::int64_t> targets;
    for (const std::span<const std::int32_t> window : windows) {
        batch.sequences.emplace_back(window.begin(), window.end() - 1);
        targets.insert(targets.end(), window.begin() + 1, window.end());
    }
    batch.targets = send(targets, device);
    return batch;
}

Model::Model(const ModelConfig& config, Parameters parameters)
    : parameters_(std::make_unique<Parameters>(std::move(parameters))) {
    backbone_ = make_backbone(config, *parameters_);
    method_ = make_method(config, *parameters_, *backbone_);
}

Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

ForwardResult Model::forward(const PackedBatch& batch, const ForwardForm& form) const {
    const Backbone& backbone = *backbone_;
    const Method& method = *method_;
    StepsOptions options;
    options.plan.refreshes = form.refreshes;
    if (form.training && !method.halts_in_training()) {
        options.plan.rule = full_halting();
    }
    const TokenBatch tokens = TokenBatch::make(backbone, {batch.sequences.begin(), batch.sequences.end()},
                                               parameters_->device(), options.plan.keeps_rows(method));
    options.keep_states = true;
    StepsResult run = run_steps(backbone, method, tokens, options);
    ForwardResult result;
    result.steps = std::move(run.states);
    result.readout = run.readout;
    if (batch.targets.defined()) {
        result.cross_entropy = cross_entropy(run.readout, backbone.head(), batch.targets);
        if (form.training) {
            result.penalty =
                method.penalty({result.steps, tokens.size(), batch.targets, backbone.head(), form.penalty});
        }
    }
    result.mean_steps = run.steps.defined()
                            ? run.steps.to(at::kFloat).mean()
                            : at::full({}, static_cast<double>(method.max_steps()), at::kFloat);
    return result;
}

ParameterLayout parameter_layout(const ModelConfig& config) {
    ParameterLayout layout = backbone_layout(config);
    for (TensorSpec& spec : method_tensors(config)) {
        layout.tensors.push_back(std::move(spec));
    }
    return layout;
}

} // namespace ponderscope
