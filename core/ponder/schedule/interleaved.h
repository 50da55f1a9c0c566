// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/schedule/steps.h"

namespace ponderscope {

/// Runs all slots of all tokens under the interleaved rule, in which every slot of token t comes before token
/// t + 1 (methods.md sections 4 and 6).
///
/// With RunPlan::refreshes: a pass computes all slots that a token has so far at once, with inputs from the
/// pass before; the next pass has at most one more slot a token. After the growth this number of passes
/// refresh all inputs, and a last pass gives the output.
///
/// Without: the result is exact. Tokens at the same position of all sequences run side by side, one slot of
/// each at a time, so that no slot is computed twice.
///
/// With a cache, K/V of the slots are appended to each sequence's rows (StepCache::counts [1, S]: rows in
/// use). Taps: `embeds` and `hidden` of the result by step, and the taps of the passes that made it
/// (dense_taps.h). StepsResult::pass_flops counts every slot that a pass computed.
StepsResult run_interleaved(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                            const StepsOptions& options);

} // namespace ponderscope
