// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/model/parameters.h"
#include "core/ponder/training.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

class Method;

/// Sequences of any lengths; N tokens.
struct PackedBatch {
    std::vector<std::vector<std::int32_t>> sequences;
    at::Tensor targets; ///< int64 [N], on the model's device; -1: no target. Undefined: no loss

    /// Windows of T + 1 ids, for training. Inputs are the first T ids, targets the last T ids.
    static PackedBatch from_windows(const std::vector<std::span<const std::int32_t>>& windows,
                                    at::Device device);
};

struct ForwardResult {
    std::vector<StepStates> steps; ///< steps 0..K, up to the last step of any token
    at::Tensor readout;            ///< [N, d]: Σ_k mass_{t,k} h^k_t, the input of the head
    at::Tensor cross_entropy; ///< scalar, fp32: mean over tokens with a target, nats; undefined: no targets
    at::Tensor penalty;       ///< scalar; undefined: no penalty in the method, no targets, or not training
    at::Tensor mean_steps;    ///< scalar, fp32: mean of K_t over all tokens
};

/// A backbone with a method (methods.md sections 2 and 10), for scoring, generation and training.
///
/// forward() records an autograd graph if GradMode is on and parameters require grad. It then overwrites no
/// buffer and uses the differentiable attention and head. Under at::autocast, products run in autocast's
/// dtype. The residual stream stays fp32. The model refers to the tensors of \p parameters, so an optimiser
/// may update them in place.
class Model {
public:
    /// InputError: this build does not run the architecture, method or depth mixing.
    Model(const ModelConfig& config, Parameters parameters);
    Model(Model&&) noexcept;
    Model& operator=(Model&&) noexcept;
    ~Model();

    [[nodiscard]] const ModelConfig& config() const { return backbone_->config(); }
    [[nodiscard]] const Parameters& parameters() const { return *parameters_; }
    [[nodiscard]] Parameters& parameters() { return *parameters_; }
    [[nodiscard]] const Backbone& backbone() const { return *backbone_; }
    [[nodiscard]] const Method& method() const { return *method_; }

    [[nodiscard]] ForwardResult forward(const PackedBatch& batch, const ForwardForm& form = {}) const;

private:
    std::unique_ptr<Parameters> parameters_; ///< backbone and method refer to it
    std::unique_ptr<Backbone> backbone_;
    std::unique_ptr<Method> method_;
};

/// Names and shapes of the tensors of backbone and method. InputError: this build does not run the config.
ParameterLayout parameter_layout(const ModelConfig& config);

} // namespace ponderscope
