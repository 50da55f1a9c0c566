// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/head.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ponderscope {

/// The slots (t, k) of one step k.
struct StepStates {
    at::Tensor tokens; ///< int64 [n_k], ascending: which token each row belongs to. Undefined: all N in order
    at::Tensor input;  ///< [n_k, d], what went into the slot
    at::Tensor hidden; ///< [n_k, d], the state after the final norm
    at::Tensor value; ///< fp32 [n_k], the gate or router value that decided after it; undefined where nothing
                      ///< decides
};

/// The n smallest gates of a batch that is computed in pieces (AdaPonderLM, methods.md section 5: the pool is
/// the whole batch), found before any piece has its gradient.
struct GatePool {
    double cutoff = 0;         ///< the largest of them
    double tie_share = 1;      ///< how much each value equal to it counts, so that there are n of them
    std::int64_t smallest = 0; ///< n, gates that were not asked included; 0: nothing is pushed down
    std::int64_t pieces = 1;   ///< of the batch

    /// \p asked: the values of all pieces, fp32; \p pool: their number and that of the gates that were not
    /// asked, which are 0. \p share: k_s.
    static GatePool of(const std::vector<at::Tensor>& asked, std::int64_t pool, double share,
                       std::int64_t pieces);
};

/// What a method's penalty on steps takes from the recipe beside its weight lambda.
struct PenaltySettings {
    double gate_share = 0; ///< k_s of AdaPonderLM (methods.md section 5): share of the pool of gates that is
                           ///< pushed down
    double beta = 0;       ///< of adaptive latent CoT (section 7): power of the probability of the next token
    /// The batch is one of several pieces of a step; absent: it is the whole. A piece's penalty is its part
    /// of the step's, times the number of pieces.
    std::optional<GatePool> pool = std::nullopt;
};

/// How Model::forward runs.
struct ForwardForm {
    /// Interleaved rule: refreshes after the growth of slots; absent: exact (interleaved.h).
    std::optional<std::int64_t> refreshes;
    /// As a loss wants it: with the method's penalty, and every slot running where the method does not halt
    /// in training.
    bool training = false;
    PenaltySettings penalty;
    /// With gradients: less memory for more time; what the MLPs compute inside is computed again when the
    /// gradient needs it. The same numbers.
    bool recompute = false;
};

/// What a penalty is computed from: every slot that ran, with gradients.
struct TrainingRun {
    std::span<const StepStates> states; ///< steps 0..K, as far as any token went
    std::int64_t tokens = 0;            ///< N
    at::Tensor targets;                 ///< int64 [N], -1: none
    HeadWeights head;
    PenaltySettings settings;
};

} // namespace ponderscope
