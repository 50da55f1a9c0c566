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

/// Which part of a run a trace holds. A run that one process recorded alone is rank 0 of 1.
struct ShardInfo {
    std::int64_t rank = 0;
    std::int64_t world = 1; ///< processes that recorded the run together
    std::int64_t batch = 0; ///< windows computed together: results agree bit by bit only at the same
};

/// "a/b.ponder" -> "a/b.r0003-of-0016.ponder".
std::filesystem::path shard_path(const std::filesystem::path& trace, std::int64_t rank, std::int64_t world);

/// The parts of a shard's name; nothing for other names.
struct ShardName {
    std::filesystem::path trace; ///< what shard_path was given
    std::int64_t rank = 0;
    std::int64_t world = 0;
};
std::optional<ShardName> parse_shard_name(const std::filesystem::path& file);

/// The shards of \p path: a folder, a pattern with * ? or [ ], or the name of the whole trace where only its
/// shards are there; on another machine too (ssh://…). Sorted; empty: a file, or a name without shards.
/// InputError: a folder or a pattern without any.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& path);
/// The shards of \p trace, whose name is taken literally, not as a pattern.
std::vector<std::filesystem::path> shards_of(const std::filesystem::path& trace);

/// Everything that the numbers of a run depend on: names for messages, and values. All shards have the same.
std::vector<std::pair<std::string, std::string>> marks_of_run(const RunInfo& run);

/// The difference of two records that are not of one run: "policy learned, and policy full"; empty: none.
/// Compares everything that numbers depend on, but not names, times and totals.
std::string difference_of_runs(const RunInfo& one, const RunInfo& other);

/// The start parameters of a run.
struct Recording {
    RunInfo run;
    std::vector<SignalInfo> signals;
    std::int64_t batch = 0; ///< ShardInfo::batch; 0: not known
};

/// The difference of two recordings that are not of one run: "policy learned, and policy full"; empty: none.
/// Compares everything that numbers and recorded signals depend on, but not names, times and totals.
std::string difference_of_recordings(const Recording& one, const Recording& other);

} // namespace ponderscope
