// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/schedule/steps.h"

namespace ponderscope {

/// Runs all slots of all tokens under the interleaved rule, in which every slot of token t comes before token
/// t + 1 (methods.md sections 4 and 6).
///
/// With RunPlan::refreshes: each pass computes all slots that exist so far at once, with inputs from the
/// previous pass, and may add one slot to each token. When all slots exist, `refreshes` further passes renew
/// all inputs, and a last pass gives the output.
///
/// Without refreshes the result is exact. Tokens at the same position of all sequences run side by side, one
/// slot of each at a time, so that no slot is computed twice.
///
/// With a cache, the K/V of the slots are appended to each sequence's rows (StepCache::counts [1, S]: rows in
/// use). Taps: `embeds` and `hidden` of the result by step, and the taps of the passes that computed the
/// result.
StepsResult run_interleaved(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                            const StepsOptions& options);

} // namespace ponderscope
