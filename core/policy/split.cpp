// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/split.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"

#include <algorithm>
#include <numeric>

namespace ponderscope {

SplitRows split_rows(const ScoredRows& all, std::uint64_t seed) {
    if (all.rows.size() < 2) {
        throw InputError("a split needs at least two scored tokens, found " +
                         std::to_string(all.rows.size()) + "; score a longer text.");
    }
    const auto clusters = static_cast<std::size_t>(all.layout.clusters());
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
    std::size_t at = 0;
    std::vector<std::int64_t> numbers(clusters, -1);
    std::int64_t counts[2] = {0, 0};
    for (std::size_t s = 0; s < all.layout.stretches.size(); ++s) {
        const auto cluster = static_cast<std::size_t>(all.layout.cluster_of[s]);
        for (std::int64_t t = 0; t < all.layout.stretches[s]; ++t, ++at) {
            const bool first = clusters > 1 ? chooses[cluster] != 0 : at < all.rows.size() / 2;
            const bool cut = clusters == 1 && at == all.rows.size() / 2;
            if (numbers[cluster] < 0 || cut) {
                numbers[cluster] = counts[first ? 0 : 1]++;
            }
            ScoredRows& half = first ? split.choosing : split.reporting;
            half.layout.add(numbers[cluster], t > 0 && !cut);
            half.rows.push_back(all.rows[at]);
        }
    }
    split.words = clusters > 1 ? std::to_string(counts[0]) + " clusters chose, the other " +
                                     std::to_string(counts[1]) + " are reported"
                               : std::string("the first half of the one text chose, the second is reported: "
                                             "they are of one text, and the choice may know it");
    return split;
}

} // namespace ponderscope
