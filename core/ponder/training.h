// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/head.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ponderscope {

/// The slots (t, k) of one step k.
struct StepStates {
    at::Tensor tokens; ///< int64 [n_k], ascending: the token of each row. Undefined: all N in order
    at::Tensor input;  ///< [n_k, d], the input of the slot
    at::Tensor hidden; ///< [n_k, d], the state after the final norm
    at::Tensor value;  ///< fp32 [n_k], value of the gate or router after the slot; undefined: none
};

/// Settings of a method's penalty on steps, besides its weight lambda.
struct PenaltySettings {
    double gate_share = 0; ///< k_s of AdaPonderLM (methods.md 5): share of gates to penalise, smallest first
    double beta = 0;       ///< adaptive latent CoT (section 7): exponent of the target's probability
};

/// Options of Model::forward.
struct ForwardForm {
    /// Interleaved rule: Jacobi refreshes after those that create the slots (core/README.md); absent: exact.
    std::optional<std::int64_t> refreshes;
    /// For the training loss: computes the method's penalty. Runs every slot if the method does not halt in
    /// training.
    bool training = false;
    PenaltySettings penalty;
};

/// The input of a penalty: every slot that ran, with gradients.
struct TrainingRun {
    std::span<const StepStates> states; ///< steps 0..K, up to the last step of any token
    std::int64_t tokens = 0;            ///< N
    at::Tensor targets;                 ///< int64 [N], -1: none
    HeadWeights head;
    PenaltySettings settings;
};

} // namespace ponderscope
