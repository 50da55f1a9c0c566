// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/model/parameters.h"
#include "core/ponder/engine/runnable.h"
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

/// Sequences of any lengths, packed one after the other without padding.
struct PackedBatch {
    at::Tensor ids;                    ///< int64 [N], on the model's device
    std::vector<std::int64_t> lengths; ///< of the sequences; their sum is N
    at::Tensor targets; ///< int64 [N], on the model's device; -1: no target. Undefined: no loss is computed

    /// Packs host ids; every token's target is the next id of its sequence; the last token has none.
    static PackedBatch pack(const std::vector<std::vector<std::int32_t>>& sequences, at::Device device);
    /// The same from int64 ids [B, T + 1] (on any device): inputs are the first T columns, targets the last
    /// T. For training.
    static PackedBatch from_rows(const at::Tensor& rows, at::Device device);
};

struct ForwardResult {
    std::vector<StepStates> steps; ///< 0..K, as far as any token went
    at::Tensor readout;            ///< [N, d]: Σ_k mass_{t,k} h^k_t, the input of the head
    at::Tensor
        cross_entropy;  ///< scalar, fp32: mean over the tokens with a target, nats. Undefined without targets
    at::Tensor penalty; ///< scalar of the method (gates, routers); undefined if it has none, and without
                        ///< targets or ForwardForm::training
    at::Tensor mean_steps; ///< scalar, fp32: K_t over all tokens
};

/// A backbone with a method on it: the one forward that scoring, generation and training share. methods.md
/// sections 2 and 10.
///
/// forward() records a graph when GradMode is on and parameters require grad; no buffer is then reused or
/// overwritten, and attention and head take their differentiable forms. Under at::autocast, products run in
/// its dtype and the residual stream stays fp32. Holds references to the tensors of \p parameters: an
/// optimiser that updates them in place needs no rebuild.
class Model {
public:
    /// InputError for an architecture, method or depth mixing that this build does not run.
    Model(const ModelConfig& config, Parameters parameters);
    Model(Model&&) noexcept;
    Model& operator=(Model&&) noexcept;
    ~Model();

    [[nodiscard]] const ModelConfig& config() const;
    [[nodiscard]] const Parameters& parameters() const;
    [[nodiscard]] Parameters& parameters();
    [[nodiscard]] const Backbone& backbone() const;
    [[nodiscard]] const Method& method() const;

    [[nodiscard]] ForwardResult forward(const PackedBatch& batch, const ForwardForm& form = {}) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Every tensor of backbone and method. InputError for what this build does not run.
ParameterLayout parameter_layout(const ModelConfig& config);

/// Whether the method's loss has a penalty on steps.
bool has_penalty(const ModelConfig& config);

} // namespace ponderscope
