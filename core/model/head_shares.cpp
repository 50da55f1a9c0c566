// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/head_shares.h"

#include <algorithm>
#include <limits>

namespace ponderscope {

HeadShares share_head(std::int64_t tokens, std::int64_t chunks, std::int64_t lanes, std::int64_t vectors,
                      std::int64_t most_groups, std::int64_t threads) {
    HeadShares best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t groups = most_groups; groups >= std::max<std::int64_t>(1, (most_groups + 1) / 2);
         --groups) {
        const std::int64_t block = groups * vectors * lanes; // tokens
        const std::int64_t blocks = (tokens + block - 1) / block;
        const std::int64_t total = chunks * ((tokens + lanes - 1) / lanes);
        HeadShares shares{groups, {}};
        std::int64_t task = 0;
        std::int64_t done = 0;
        std::int64_t largest = 0;
        for (std::int64_t thread = 1; thread <= threads; ++thread) {
            const std::int64_t wanted = total * thread / threads;
            const std::int64_t before = done;
            while (task < blocks * chunks) {
                const std::int64_t first = task / chunks * block;
                const std::int64_t work = (std::min(block, tokens - first) + lanes - 1) / lanes;
                // The boundary that lies nearer.
                if (thread < threads && 2 * (wanted - done) < work) {
                    break;
                }
                done += work;
                ++task;
            }
            largest = std::max(largest, done - before);
            shares.ends.push_back(task);
        }
        if (largest < least) {
            least = largest;
            best = std::move(shares);
        }
    }
    return best;
}

} // namespace ponderscope
