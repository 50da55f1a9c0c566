// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/shares.h"

#include "core/base/error.h"
#include "core/trace/shard.h"

#include <optional>
#include <vector>

namespace ponderscope::cli {
std::vector<Share> shares_of(const World& world, const std::filesystem::path& trace, bool resume) {
    if (world.size > 1 && trace.extension() != ".ponder") {
        throw InputError(ErrorId::usage_value, trace,
                         "a name that ends in .ponder, because the names of shards need this ending",
                         "another", "write " + trace.string() + ".ponder");
    }
    std::error_code error;
    const Share own{world.rank, world.size,
                    world.size == 1 ? trace : shard_path(trace, world.rank, world.size)};
    const bool there =
        std::filesystem::exists(own.trace, error) && std::filesystem::file_size(own.trace, error) > 0;
    if (!resume) {
        if (world.size > 1 && there) {
            throw InputError(ErrorId::file_exists, own.trace, "an unused name",
                             "a shard that was recorded before",
                             "continue it with --resume, or choose another name");
        }
        return {own};
    }
    if (world.size == 1 && there) {
        return {own};
    }
    // Shards that others began may have been of more processes, or of fewer.
    std::optional<std::int64_t> size;
    for (const std::filesystem::path& shard : shards_of(trace)) {
        const std::int64_t found = parse_shard_name(shard)->world;
        if (size && *size != found) {
            throw InputError(ErrorId::shard_mixed, trace, "shards of one recording",
                             "shards of " + std::to_string(*size) + " and of " + std::to_string(found) +
                                 " processes",
                             "remove the old shards");
        }
        size = found;
    }
    if (!size) {
        return {own};
    }
    std::vector<Share> shares;
    for (std::int64_t rank = world.rank; rank < *size; rank += world.size) {
        shares.push_back({rank, *size, shard_path(trace, rank, *size)});
    }
    return shares;
}

} // namespace ponderscope::cli
