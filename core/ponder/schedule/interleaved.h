// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/schedule/steps.h"

namespace ponderscope {

/// Refreshes after which an exact run gives up waiting for stillness and goes token by token instead: on a
/// CPU a text token by token costs about as much as some ten passes over all of it.
inline constexpr std::int64_t exact_refreshes = 32;
/// An input that moves between two passes by no more than this many units in the last place of its slot's
/// largest element is still. In fp32 that is a part of 2.4e-7, well within the 1e-5 of methods.md section 6;
/// in bf16 and fp16 nothing smaller could be told from rounding.
inline constexpr double still_units_fp32 = 2;
inline constexpr double still_units_half = 1;

/// Runs all slots of all tokens under the interleaved rule, in which every slot of token t comes before token
/// t + 1 (methods.md sections 4 and 6). A pass computes all slots that a token has so far at once, with
/// inputs from the pass before; the next pass has at most one slot more a token. After the growth,
/// RunChoices::refreshes passes refresh all inputs and a last one gives the output; without that number the
/// result is exact: a sequence is done when no slot appeared or vanished and every input is still, and what
/// does not come to rest in time goes token by token (StepsResult::restless). Each sequence is watched by
/// itself, so that a batch gives what its members give alone.
///
/// With a cache, K/V of the slots are appended to each sequence's rows (StepCache::counts [1, S]: rows in
/// use), and a run of single tokens goes slot by slot. Taps: `embeds` and `hidden` by step, of the result,
/// and what the passes that made it said (dense_taps.h).
StepsResult run_interleaved(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                            const StepsOptions& options);

} // namespace ponderscope
