// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/scored_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ponderscope {

ScoredRows::ScoredRows(const ReplayTable& table, std::span<const std::span<const float>> nll) {
    const std::span<const float> own[] = {table.nll};
    const std::span<const std::span<const float>> columns = nll.empty() ? own : nll;
    // Clusters are numbered as they first give a row; a table without clusters has one for each sequence.
    std::map<std::int64_t, std::int64_t> numbers;
    for (std::size_t i = 0; i < table.tokens(); ++i) {
        if (std::any_of(columns.begin(), columns.end(),
                        [i](std::span<const float> one) { return std::isnan(one[i]); })) {
            continue;
        }
        const std::uint32_t sequence = table.places[i].sequence;
        const std::int64_t cluster = table.clusters.empty() ? sequence : table.clusters[sequence];
        const auto number = numbers.emplace(cluster, static_cast<std::int64_t>(numbers.size())).first;
        layout.add(number->second, !rows.empty() && rows.back() + 1 == i && table.places[i].position != 0);
        rows.push_back(i);
    }
}

} // namespace ponderscope
