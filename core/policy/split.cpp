// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/split.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"

#include <algorithm>
#include <numeric>

namespace ponderscope {

std::vector<double> SampleHalf::of(const std::vector<double>& column) const {
    std::vector<double> values;
    values.reserve(rows.size());
    for (const std::size_t row : rows) {
        values.push_back(column[row]);
    }
    return values;
}

SplitRows split_rows(const RowLayout& all, std::uint64_t seed) {
    if (all.tokens() < 2) {
        throw InputError("a split needs at least two scored tokens, found " + std::to_string(all.tokens()) +
                         "; score a longer text.");
    }
    const TokenLayout& layout = all.layout();
    const auto clusters = static_cast<std::size_t>(layout.clusters());
    std::vector<std::uint8_t> chooses(clusters, 0);
    if (clusters > 1) {
        std::vector<std::size_t> order(clusters);
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(),
                  [seed](std::size_t a, std::size_t b) { return splitmix64(seed, a) < splitmix64(seed, b); });
        for (std::size_t i = 0; i < clusters; i += 2) {
            chooses[order[i]] = 1;
        }
    }
    SplitRows split;
    TokenLayout halves[2];
    std::size_t at = 0;
    std::vector<std::int64_t> numbers(clusters, -1);
    std::int64_t counts[2] = {0, 0};
    for (std::size_t s = 0; s < layout.stretches.size(); ++s) {
        const auto cluster = static_cast<std::size_t>(layout.cluster_of[s]);
        const std::int64_t rows = all.by_cluster() ? 1 : layout.stretches[s];
        for (std::int64_t t = 0; t < rows; ++t, ++at) {
            const bool first = clusters > 1 ? chooses[cluster] != 0 : at < all.rows() / 2;
            const bool cut = clusters == 1 && at == all.rows() / 2;
            if (numbers[cluster] < 0 || cut) {
                numbers[cluster] = counts[first ? 0 : 1]++;
            }
            TokenLayout& half = halves[first ? 0 : 1];
            half.add(numbers[cluster], t > 0 && !cut);
            half.stretches.back() += all.by_cluster() ? layout.stretches[s] - 1 : 0;
            (first ? split.choosing : split.reporting).rows.push_back(at);
        }
    }
    const auto of_half = [&](TokenLayout& half) {
        return all.by_cluster() ? RowLayout::of_clusters(std::move(half.stretches))
                                : RowLayout(std::move(half));
    };
    split.choosing.layout = of_half(halves[0]);
    split.reporting.layout = of_half(halves[1]);
    split.words = clusters > 1 ? std::to_string(counts[0]) + " clusters chose, the other " +
                                     std::to_string(counts[1]) + " are reported"
                               : std::string("the first half of the one text chose, the second is reported: "
                                             "they are of one text, and the choice may know it");
    return split;
}

} // namespace ponderscope
