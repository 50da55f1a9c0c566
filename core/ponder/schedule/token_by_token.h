// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/schedule/steps.h"

namespace ponderscope {

/// Runs one token of each sequence through all its steps, then the next token: exact also if a slot depends
/// on the last steps of earlier tokens (Schedule). As slow as decoding. Called by run_steps. With a cache,
/// continues after the cached tokens.
StepsResult run_token_by_token(const Backbone& backbone, const Method& method, const TokenBatch& batch,
                               const StepsOptions& options);

} // namespace ponderscope
