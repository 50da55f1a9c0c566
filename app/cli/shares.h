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

/// The shares of the run for \p trace that this process records. Usually its own share; with \p resume some
/// of the shares of earlier processes. InputError: a shard exists without \p resume, or shards belong to two
/// worlds.
std::vector<Share> shares_of(const World& world, const std::filesystem::path& trace, bool resume);

} // namespace ponderscope::cli
