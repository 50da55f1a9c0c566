// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/sensitivity.h"

#include <algorithm>

namespace ponderscope {

std::vector<BlockRow> block_sensitivity(std::span<const double> series, const TokenLayout& layout,
                                        const BootstrapOptions& options) {
    BootstrapOptions blocks = options;
    blocks.unit = ResamplingUnit::blocks;
    const std::int64_t length = choose_resampling(layout, std::span(&series, 1), blocks).block;
    const PrefixSums sums(series, 1, layout);
    const Statistic mean = [](std::span<const double> total, std::int64_t tokens) {
        return total[0] / static_cast<double>(tokens);
    };
    std::vector<BlockRow> rows;
    for (const std::int64_t block : {std::max<std::int64_t>(1, length / 2), length, 2 * length}) {
        blocks.block = block;
        rows.push_back({block, bootstrap(sums, std::span(&mean, 1), blocks).front()});
    }
    return rows;
}

} // namespace ponderscope
