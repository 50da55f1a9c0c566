// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/schedule/steps.h"

namespace ponderscope {

/// What a pass costs before its first slot, in slots: weights are read and calls are made whatever their
/// number. Measured on one core: 11 of a model of 1M parameters, 16 of 70M; on a GPU by theory, a launch
/// being some five microseconds. StepsOptions::pass_overhead says otherwise.
inline constexpr std::int64_t pass_overhead_cpu = 12;
inline constexpr std::int64_t pass_overhead_gpu = 384;
/// Passes over a window until a token in it is still, growth included: 15 to 20 in trained models of both
/// methods, whose movement shrinks to about half a pass.
inline constexpr std::int64_t usual_passes = 16;
/// An input that moves between two passes by no more than this many units in the last place of its slot's
/// largest element is still. In fp32 that is a part of 1.9e-6, within the 1e-5 of methods.md section 6 and
/// above what the order of sums moves; in bf16 and fp16 a smaller change is within rounding.
inline constexpr double still_units_fp32 = 16;
inline constexpr double still_units_half = 1;

/// Runs all slots of all tokens under the interleaved rule, in which every slot of token t comes before token
/// t + 1 (methods.md sections 4 and 6).
///
/// With RunPlan::refreshes: a pass computes all slots that a token has so far at once, with inputs from
/// the pass before; the next pass has at most one slot more a token. After the growth this number of passes
/// refresh all inputs, and a last one gives the output.
///
/// Without: the result is exact, by windows to what is taken for still (still_units_fp32, still_units_half).
/// Every sequence has a front, before which slots are final and their K/V kept. Where a pass costs little
/// beside its slots (`pass_overhead`), the tokens at the fronts of all sequences go side by side, a slot of
/// each at a time, which computes nothing twice. Where it costs much and sequences are few, a pass takes a
/// window of tokens behind each front, and what is still then moves the front: no slot appeared or vanished,
/// no input moved, and so before it. A front that does not advance continues token by token for the length of
/// a window. Each sequence is watched by itself, so that a batch gives what its members give alone; by
/// windows, where batches of another size may go side by side, to that tolerance.
///
/// With a cache, K/V of the slots are appended to each sequence's rows (StepCache::counts [1, S]: rows in
/// use), always token by token. Taps: `embeds` and `hidden` by step, of the result, and what the passes that
/// made it said (dense_taps.h). StepsResult::pass_flops counts every slot that a pass computed.
StepsResult run_interleaved(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                            const StepsOptions& options);

} // namespace ponderscope
