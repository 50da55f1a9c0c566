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

/// Of the run that is recorded to \p trace, what this process of the world records: one share, or with \p
/// resume those of the processes that recorded before, dealt out to the ones there are now. InputError: a
/// shard that is there and is not to be resumed, shards of two worlds.
std::vector<Share> shares_of(const World& world, const std::filesystem::path& trace, bool resume);

} // namespace ponderscope::cli
