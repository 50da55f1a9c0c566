// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace ponderscope {

/// How threads share the work of a read-out: blocks of tokens times chunks of the vocabulary, numbered block
/// by block. Each thread takes neighbouring pairs. Nothing of the result depends on it.
struct HeadShares {
    std::int64_t groups_per_block = 1;
    std::vector<std::int64_t> ends; ///< a thread: one past its last (block, chunk) pair
};

/// \p lanes columns make a vector and \p vectors vectors a group; at most \p most_groups groups of a block
/// stay in a core's cache. Blocks are as large as that allows, unless somewhat smaller ones (half of it at
/// least) divide more evenly: otherwise a few tokens less would leave the slowest thread with as much to do.
HeadShares share_head(std::int64_t tokens, std::int64_t chunks, std::int64_t lanes, std::int64_t vectors,
                      std::int64_t most_groups, std::int64_t threads);

} // namespace ponderscope
