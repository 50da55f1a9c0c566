// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/world.h"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace ponderscope::cli {

/// The part of a run that a process records into a trace.
struct Share {
    std::int64_t rank = 0;
    std::int64_t world = 1;
    std::filesystem::path trace;
};

/// The shares that this process records of the run for \p trace: one share, or with \p resume some shares of
/// the earlier processes. InputError: a shard exists without \p resume, or shards belong to two worlds.
std::vector<Share> shares_of(const World& world, const std::filesystem::path& trace, bool resume);

} // namespace ponderscope::cli
