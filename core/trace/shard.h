// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// The part of a run that a trace holds. A run that one process recorded is rank 0 of 1.
struct ShardInfo {
    std::int64_t rank = 0;
    std::int64_t world = 1; ///< number of processes that recorded the run
    std::int64_t batch = 0; ///< windows computed together; affects the last bits of results
};

/// "a/b.ponder" -> "a/b.r0003-of-0016.ponder".
std::filesystem::path shard_path(const std::filesystem::path& trace, std::int64_t rank, std::int64_t world);

/// The parts of a shard's name; no value for other names.
struct ShardName {
    std::filesystem::path trace; ///< the argument of shard_path
    std::int64_t rank = 0;
    std::int64_t world = 0;
};
std::optional<ShardName> parse_shard_name(const std::filesystem::path& file);

/// The shards of \p path, sorted. \p path is a folder, a pattern with * ? or [ ], or the name of a whole
/// trace that exists only as shards. A path may be on another machine (ssh://…). Empty: \p path is a file, or
/// a name without shards. InputError: a folder or pattern without shards.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& path);
/// The shards of \p trace, whose name is taken literally, not as a pattern.
std::vector<std::filesystem::path> shards_of(const std::filesystem::path& trace);

/// The parameters with which a run starts.
struct Recording {
    RunInfo run;
    std::vector<SignalInfo> signals;
    std::int64_t batch = 0; ///< ShardInfo::batch; 0: unknown
};

/// Why two recordings cannot be shards of one run: "policy learned, and policy full". Empty: they can.
/// Compares all values that affect recorded numbers; ignores names, times and totals.
std::string difference_of_recordings(const Recording& one, const Recording& other);

} // namespace ponderscope
