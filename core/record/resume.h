// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/shard.h"

#include <filesystem>
#include <optional>

namespace ponderscope {

/// The newest run of that name in a trace that is not complete; else the newest one; no value: no such run
/// yet. Tokens and (about) bytes of text of its finished sequences. InputError: it has other texts, weights
/// or options.
std::optional<RunInfo> run_to_resume(const std::filesystem::path& trace, const Recording& wanted,
                                     const ShardInfo& place);

} // namespace ponderscope
