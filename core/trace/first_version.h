// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// Traces of version 1 have 0 where a step did not run. Puts in its place what later versions have: NaN, or
/// did_not_run in whole numbers. What is not 0 was known of steps that did not run (a router that decides up
/// front) and stays.
///
/// \p axes: of the signal; without an axis "step" in the second place nothing changes. \p steps: the last
/// step that ran, of each token of the chunk.
void mark_what_did_not_run(SignalChunk& chunk, const std::vector<std::string>& axes,
                           std::span<const std::int32_t> steps);

} // namespace ponderscope
