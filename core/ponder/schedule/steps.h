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

/// The packed tokens of one run, with the data that a pass needs. N tokens of S sequences.
struct TokenBatch {
    /// int64 [planes, N]: the following tensors, in one copy from the host
    at::Tensor numbers;
    at::Tensor ids;                       ///< int64 [N]
    at::Tensor positions;                 ///< int64 [N]
    at::Tensor rotation_rows;             ///< int64 [N]
    at::Tensor cos, sin;                  ///< rotation tables
    std::vector<std::int64_t> lengths;    ///< tokens of this run, a sequence
    std::vector<std::int64_t> past;       ///< tokens of earlier runs, a sequence; all 0 without a cache
    std::vector<std::int64_t> first_rows; ///< where each sequence's rows begin in a segment, a sequence
    std::int64_t room = 0; ///< largest number of tokens of a sequence in the cache; 0: no further tokens
    RowSpace space;        ///< defined when rows are kept: tokens may halt, or there is a cache
    TokenPlaces places;    ///< defined for runs with a halting rule
    at::Tensor start;      ///< [N, d], the start state of stacks that have one
    std::vector<std::int64_t> prefix; ///< first tokens that see each other, a sequence; empty: none

    /// Host ids. \p past and \p sequence_rows (a generation's rows in the cache) are empty for a run without
    /// a cache. With \p plan_rows, `space` is filled in. The host tensors travel in one copy.
    static TokenBatch make(const Backbone& backbone,
                           const std::vector<std::span<const std::int32_t>>& sequences, at::Device device,
                           bool plan_rows, const std::vector<std::int64_t>& past = {},
                           const std::vector<std::int64_t>& sequence_rows = {},
                           std::int64_t segment_rows = 0);
    /// Ids [N] that are on the device already.
    static TokenBatch from_ids(const Backbone& backbone, const at::Tensor& ids,
                               const std::vector<std::int64_t>& lengths, bool plan_rows);
    [[nodiscard]] std::int64_t size() const { return ids.size(0); }
    /// One token of every sequence, as decoding has them.
    [[nodiscard]] bool single() const;
    /// Largest number of tokens of a sequence, earlier and future runs included.
    [[nodiscard]] std::int64_t longest() const;
};

/// K/V of every step of a batch of generated sequences: a segment for each step, and in it a fixed room for
/// each sequence. A run's TokenBatch names the rooms of its sequences, because sequences finish one by one.
struct StepCache {
    KvRows rows;
    std::int64_t segment_rows = 0;
    /// Number of slots in each segment, for the S sequences of the next run in their order. Two-dimensional:
    /// int64 [K + 1, S]; interleaved: [1, S].
    at::Tensor counts;
    at::Tensor bias;             ///< fp32 [rows], of the keys; undefined: none
    at::Tensor seen;             ///< of StepRowPlanner, where skipped tokens meet sliding windows
    bool coda_each_step = false; ///< a segment a step for the coda's blocks, too
};

struct StepsResult {
    at::Tensor readout;             ///< [N, d]
    at::Tensor steps;               ///< int64 [N], K_t; undefined: K for every token
    bool all_ran = false;           ///< every step ran for every token, and K_t is the step of the read-out
    std::vector<StepStates> states; ///< when kept
    // If the interleaved rule is computed in passes over all slots:
    at::Tensor
        differences; ///< fp32 [N, refreshes]: largest movement of an input of the token; undefined: none
    at::Tensor pass_flops; ///< int64 [N]: cost of the passes; decoding costs what section 11 counts
};

struct StepsOptions {
    /// Make the read-out after every step, even if it costs a coda. Otherwise it is made only if a halting
    /// rule needs it, and at the end.
    bool read_out_every_step = false;
    RunListener* listener = nullptr;
    StepCache* cache = nullptr;
    RunPlan plan;
    bool keep_states = false;
    bool chunks = false; ///< under KvPolicy::shared: tokens of a run go through each step together
    const std::stop_token* stop = nullptr; ///< Pass::stop
    const RunPatches* patches = nullptr;   ///< states that replace computed ones; nullptr: none
};

/// The order in which the slots of a batch are computed.
enum class Schedule : std::uint8_t {
    by_step, ///< all tokens of a step together; halted tokens are gathered out and cost nothing
    /// Each token through all of its steps before the next: slots need finished predecessors. The rows that
    /// stopped tokens leave, and the coda's entry of each token, are then known.
    token_by_token,
    interleaved, ///< interleaved.h
    layers       ///< layer_steps.h
};
Schedule schedule_of(const Backbone& backbone, const Method& method, const StepsOptions& options);

/// Runs all steps of all tokens in the order of their schedule.
StepsResult run_steps(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                      const StepsOptions& options);

/// Runs the tokens of each step together. The device is read back only if tokens may halt.
StepsResult run_by_step(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                        const StepsOptions& options);

/// Room for the K/V of \p total tokens of \p sequences sequences, as runs with these options fill it.
StepCache make_step_cache(const Backbone& backbone, const Method& method, const StepsOptions& options,
                          std::int64_t total, std::int64_t sequences);

/// Shared data of every pass over tokens of the batch. \p tokens: int64 [n]; undefined: all.
Pass pass_of(const TokenBatch& batch, const at::Tensor& tokens, const StepsOptions& options);

} // namespace ponderscope
