// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/ponder/forward.h"
#include "core/ponder/method.h"
#include "core/ponder/visibility.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ponderscope {

/// The tokens of one run, packed, with what a pass needs to know about them. N tokens of S sequences.
struct TokenBatch {
    at::Tensor ids;                    ///< int64 [N]
    at::Tensor positions;              ///< int64 [N]
    at::Tensor rotation_rows;          ///< int64 [N]
    at::Tensor cos, sin;               ///< rotation tables
    std::vector<std::int64_t> lengths; ///< tokens of this run, a sequence
    std::vector<std::int64_t> past;    ///< tokens of earlier runs, a sequence; all 0 without a cache
    RowSpace space;                    ///< defined when rows are kept: the method halts, or there is a cache

    /// Host ids. \p past and \p sequence_rows (a generation's places in the cache) are empty for a run that
    /// stands alone. With \p plan_rows, `space` is filled in. The host tensors travel in one copy.
    static TokenBatch make(const Backbone& backbone,
                           const std::vector<std::span<const std::int32_t>>& sequences, at::Device device,
                           bool plan_rows, const std::vector<std::int64_t>& past = {},
                           const std::vector<std::int64_t>& sequence_rows = {},
                           std::int64_t segment_rows = 0);
    /// Ids [N] that are on the device already.
    static TokenBatch from_ids(const Backbone& backbone, const at::Tensor& ids,
                               const std::vector<std::int64_t>& lengths, bool plan_rows);
    [[nodiscard]] std::int64_t size() const { return ids.size(0); }
};

/// K/V of every step of a batch of sequences that are generated: a segment a step, a fixed room a sequence.
struct StepCache {
    KvRows rows;
    std::int64_t segment_rows = 0;
    std::vector<std::int64_t> sequence_rows; ///< where each sequence begins in a segment
    at::Tensor counts; ///< two-dimensional rule: slots in each segment, int64 [K + 1, S]
};

/// Sees a run of steps while it happens, and supplies the expected embeddings, since the pass over the
/// vocabulary that makes them is the same that reads a state out for the record.
class StepObserver {
public:
    virtual ~StepObserver() = default;
    /// Expected embeddings [n, d] of the slots' states, not scaled. The default is the differentiable one
    /// where a gradient is wanted, else read_out.
    virtual at::Tensor expected_embedding(const Slots& slots, const HeadWeights& head,
                                          const MixtureWish& wish);
    /// After slots ran and their method answered. \p readout: [n, d], the token's read-out had it stopped
    /// here.
    virtual void step_ran(const Slots& slots, const Decision& decision, const at::Tensor& readout);
};

struct StepsResult {
    at::Tensor readout;             ///< [N, d]
    at::Tensor steps;               ///< int64 [N], K_t; undefined: K for every token
    std::vector<StepStates> states; ///< when kept
};

struct StepsOptions {
    StepObserver* observer = nullptr;
    StepCache* cache = nullptr;
    Workspace* workspace = nullptr;
    TapListener* taps = nullptr;
    bool keep_states = false;
};

/// Runs all steps of all tokens under the rules in which a step's tokens run together. Nothing is read back
/// from the device unless the method halts; halted tokens are gathered out and cost nothing.
StepsResult run_steps(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                      const StepsOptions& options);

} // namespace ponderscope
