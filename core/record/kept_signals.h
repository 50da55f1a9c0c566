// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/choices/request.h"
#include "core/record/session.h"

#include <cstdint>
#include <vector>

namespace ponderscope {

/// Signal [token]: the gate at the last step that ran, where the method has a gate. Of runs of scalars.
inline constexpr const char* exit_gate = "exit_gate";

/// The signals of an engine that a run keeps (RecordOptions: scalars, candidates, depth_sums).
std::vector<SignalInfo> kept_signals(const std::vector<SignalInfo>& given, const RecordOptions& options);
/// About how many bytes a token takes in the trace, uncompressed, without its text, attention and states
/// (session.h has the prices of the last two).
double bytes_a_token(const std::vector<SignalInfo>& kept, const RecordOptions& options,
                     const ModelConfig& config, std::int64_t max_steps);

/// Likewise of a window's result.
void keep(WindowResult& result, const RecordOptions& options);

} // namespace ponderscope
