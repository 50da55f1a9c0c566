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

ScoredSetting ScoredRows::of(const std::string& policy, const ReplayResult& result) const {
    return {policy, of(result.steps), of(result.nll),
            result.flops.empty() ? std::vector<double>() : of(result.flops)};
}

BootstrapOptions with_block_of_run(const ReplayTable& table, const ScoredRows& rows,
                                   const BootstrapOptions& options) {
    if (rows.rows.empty() || options.block != 0) {
        return options;
    }
    const std::vector<double> full = rows.of(replay(table, PolicySpec::parse("full")).nll);
    std::vector<double> gain = rows.of(replay(table, PolicySpec::parse("fixed:n=0")).nll);
    for (std::size_t i = 0; i < gain.size(); ++i) {
        gain[i] -= full[i];
    }
    const std::span<const double> series[] = {full, gain};
    BootstrapOptions blocks = options;
    blocks.unit = ResamplingUnit::blocks;
    BootstrapOptions settled = options; // whether blocks are drawn is up to the rows that are compared
    settled.block = choose_resampling(rows.layout, series, blocks).block;
    settled.block_from_data = true;
    return settled;
}

} // namespace ponderscope
