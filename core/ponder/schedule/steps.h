// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/ponder/choices/request.h"
#include "core/ponder/choices/run_plan.h"
#include "core/ponder/method.h"
#include "core/ponder/schedule/visibility.h"
#include "core/ponder/schedule/walk.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace ponderscope {

class RunPatches;

/// The packed tokens of one run, and the data that a pass over them needs. N tokens of S sequences.
struct TokenBatch {
    /// int64 [planes, N]: one plane for each int64 tensor below, copied from the host together
    at::Tensor numbers;
    at::Tensor ids;                       ///< int64 [N]
    at::Tensor positions;                 ///< int64 [N]
    at::Tensor rotation_rows;             ///< int64 [N]: each token's row of cos and sin
    at::Tensor cos, sin;                  ///< rotation tables
    std::vector<std::int64_t> lengths;    ///< for each sequence: tokens of this run
    std::vector<std::int64_t> past;       ///< for each sequence: tokens of earlier runs in the cache
    std::vector<std::int64_t> first_rows; ///< for each sequence: the first row in a segment
    std::int64_t room = 0;            ///< largest number of tokens of a sequence in the cache; 0: no cache
    RowSpace space;                   ///< defined with a cache, or if RunPlan::keeps_rows()
    TokenPlaces places;               ///< defined for runs with a halting rule
    at::Tensor start;                 ///< [N, d], the start state, if the stack has one
    std::vector<std::int64_t> prefix; ///< for each sequence: length of its bidirectional prefix; empty: none

    /// \p sequence_rows becomes `first_rows`. \p sequence_rows and \p past are empty without a cache.
    /// \p plan_rows: fills in `space`. All host tensors are copied together.
    static TokenBatch make(const Backbone& backbone,
                           const std::vector<std::span<const std::int32_t>>& sequences, at::Device device,
                           bool plan_rows, const std::vector<std::int64_t>& past = {},
                           const std::vector<std::int64_t>& sequence_rows = {},
                           std::int64_t segment_rows = 0);
    [[nodiscard]] std::int64_t size() const { return ids.size(0); }
    /// The rows that each token sees in the segment at \p first_row. Every token needs a slot in the segment.
    [[nodiscard]] std::vector<Visibility::CausalBlock> causal_blocks(std::int64_t first_row = 0) const;
    /// Whether the batch has one token of every sequence, as in decoding.
    [[nodiscard]] bool single() const;
    /// Largest number of tokens of a sequence, including earlier and future runs.
    [[nodiscard]] std::int64_t longest() const;
};

/// K/V of every step for a batch of generated sequences. Each step has a segment, and each sequence has a
/// fixed part of the segment. Sequences finish one by one, so TokenBatch::first_rows says where the parts of
/// the remaining sequences begin.
struct StepCache {
    KvRows rows;
    std::int64_t segment_rows = 0;
    /// Number of slots in each segment, for the S sequences of the next run, in order. Two-dimensional rule
    /// and KvPolicy::skip: int64 [K + 1, S]; interleaved: [1, S]; otherwise undefined.
    at::Tensor counts;
    at::Tensor bias;             ///< fp32 [rows], bias of the keys; undefined: none
    at::Tensor seen;             ///< as in StepRowPlanner; only for KvPolicy::skip with sliding windows
    bool coda_each_step = false; ///< the coda's blocks have a segment for each step; false: one segment
};

struct StepsResult {
    at::Tensor readout;             ///< [N, d]
    at::Tensor steps;               ///< int64 [N], K_t; undefined: K for every token
    bool all_ran = false;           ///< every step ran for every token; K_t is the step of the read-out
    std::vector<StepStates> states; ///< empty unless requested
    // Only if the interleaved rule is computed in passes over all slots:
    at::Tensor differences; ///< fp32 [N, refreshes]: largest change of a token's inputs in each refresh
};

struct StepsOptions {
    /// Make the read-out after every step, even if each read-out costs a pass through the coda. False: make
    /// the read-out at the end and where a halting rule needs it.
    bool read_out_every_step = false;
    RunListener* listener = nullptr;
    StepCache* cache = nullptr;
    RunPlan plan;
    bool keep_states = false;
    bool chunks = false; ///< for KvPolicy::shared: Schedule::by_step, as released models compute a prompt
    const std::stop_token* stop = nullptr; ///< Pass::stop
    const RunPatches* patches = nullptr;   ///< states that replace computed ones; nullptr: none
    /// int64 [N]: if the batch is a part of a larger run, the tokens' indices in the run, for listener and
    /// patches. Undefined: the batch is the run.
    at::Tensor numbers = {};
};

/// The order in which a batch's slots are computed.
enum class Schedule : std::uint8_t {
    by_step, ///< all tokens of a step together; halted tokens are removed and cost nothing
    /// Each token runs all its steps before the next token starts, because slots read K/V that exist only
    /// when earlier tokens are finished: rows of their last step (KvPolicy::shared) or of the coda.
    token_by_token,
    interleaved, ///< run_interleaved()
    layers       ///< layer_steps.h
};
Schedule schedule_of(const Backbone& backbone, const Method& method, const StepsOptions& options);

/// Runs all steps of all tokens in the order of the schedule.
StepsResult run_steps(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                      const StepsOptions& options);

/// Runs the tokens of each step together. Copies data to the host only if tokens may halt.
StepsResult run_by_step(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                        const StepsOptions& options);

/// Runs all steps of one token of each sequence, then the next token. Exact also if a slot depends on the
/// last steps of earlier tokens (Schedule). As slow as decoding. With a cache, continues after the cached
/// tokens.
StepsResult run_token_by_token(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                               const StepsOptions& options);

/// Runs all slots of all tokens under the interleaved rule, in which every slot of token t comes before token
/// t + 1 (methods.md sections 4 and 6). The slots are computed in one of three orders (core/README.md). With
/// a cache, the K/V of the slots are appended to each sequence's rows (StepCache::counts [1, S]: rows in
/// use). The listener gets the tensors of the final slots step by step.
StepsResult run_interleaved(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                            const StepsOptions& options);

/// Allocates K/V for \p total tokens of \p sequences sequences, for runs with these options.
StepCache make_step_cache(const Backbone& backbone, const Method& method, const StepsOptions& options,
                          std::int64_t total, std::int64_t sequences);

/// The data that all passes over the batch share. \p tokens: int64 [n]; undefined: all.
Pass pass_of(const TokenBatch& batch, const at::Tensor& tokens, const StepsOptions& options);

} // namespace ponderscope
