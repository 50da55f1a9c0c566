// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/shard.h"

#include <filesystem>
#include <optional>

namespace ponderscope {

/// Chooses a run with this name to resume: the newest incomplete run, else the newest run. No value: no such
/// run. The run's tokens and (approximate) bytes of text are those of finished sequences. InputError: the
/// run has other texts, weights or options.
std::optional<RunInfo> run_to_resume(const std::filesystem::path& trace, const Recording& wanted,
                                     const ShardInfo& place);

} // namespace ponderscope
