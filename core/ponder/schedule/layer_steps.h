// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/method.h"
#include "core/ponder/schedule/steps.h"

namespace ponderscope {

/// Layers as steps (methods.md section 9): step k of a token is block k of a vanilla stack, k = 0..L-1. The
/// state is the residual stream after the block. The read-out applies the final norm to the state. If a rule
/// stops a token after block e, the state after block e is read out (early exit). Later blocks compute the
/// token's keys and values from this state, with their own norm, projections and rotation.
class LayerSteps final : public Method {
public:
    /// InputError: the method has its own steps, or the residual has several streams.
    explicit LayerSteps(const ModelConfig& config);
    [[nodiscard]] bool layers_are_steps() const override { return true; }
};

/// Runs the blocks one by one over the tokens that have not exited. Exited tokens get only keys and values.
/// Called by run_steps.
StepsResult run_layers(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                       const StepsOptions& options);

} // namespace ponderscope
