// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/choices/request.h"
#include "core/record/session.h"

#include <cstdint>
#include <vector>

namespace ponderscope {

/// A signal with one value for each token, in runs that store scalars only: the gate at the last step that
/// ran, if the method has a gate.
inline constexpr const char* exit_gate = "exit_gate";

/// Selects the signals that a run stores. \p given: the engine's signals.
std::vector<SignalInfo> kept_signals(const std::vector<SignalInfo>& given, const KeptSignals& kept);
/// Removes from a window's result the signals that a run does not store.
void keep(WindowResult& result, const KeptSignals& kept);

/// Approximate uncompressed bytes per token in the trace, without the text itself. \p tokens: the number of
/// tokens in the text.
std::int64_t bytes_a_token(const Engine& engine, const RecordOptions& options, std::int64_t tokens);

} // namespace ponderscope
