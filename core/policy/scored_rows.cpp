// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/scored_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ponderscope {

ScoredRows::ScoredRows(const ReplayTable& table, std::span<const std::span<const float>> nll) {
    const std::span<const float> own[] = {table.nll};
    const std::span<const std::span<const float>> columns = nll.empty() ? own : nll;
    // Numbers clusters in the order of their first rows. Without clusters, each sequence is a cluster.
    std::map<std::int64_t, std::int64_t> numbers;
    TokenLayout layout;
    for (std::size_t i = 0; i < table.tokens(); ++i) {
        if (std::any_of(columns.begin(), columns.end(),
                        [i](std::span<const float> one) { return std::isnan(one[i]); })) {
            continue;
        }
        const std::uint32_t sequence = table.places[i].sequence;
        const std::int64_t cluster = table.clusters.empty() ? sequence : table.clusters[sequence];
        const auto number = numbers.emplace(cluster, static_cast<std::int64_t>(numbers.size())).first;
        layout.add(number->second,
                   !tokens_.empty() && tokens_.back() + 1 == i && table.places[i].position != 0);
        tokens_.push_back(i);
    }
    layout_ = std::move(layout);
}

void ScoredRows::add_up_clusters(const BootstrapOptions& options) {
    const TokenLayout& tokens = layout_.layout();
    if (!draws_whole_clusters(options, tokens.clusters())) {
        return;
    }
    std::vector<std::int64_t> counts(static_cast<std::size_t>(tokens.clusters()));
    for (std::size_t s = 0; s < tokens.stretches.size(); ++s) {
        const auto cluster = static_cast<std::size_t>(tokens.cluster_of[s]);
        cluster_.insert(cluster_.end(), static_cast<std::size_t>(tokens.stretches[s]), cluster);
        counts[cluster] += tokens.stretches[s];
    }
    layout_ = RowLayout::of_clusters(std::move(counts));
}

BootstrapOptions with_block_of_run(const ReplayTable& table, const ScoredRows& rows,
                                   const BootstrapOptions& options) {
    if (rows.tokens().empty() || rows.layout().by_cluster() || options.block != 0) {
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
    BootstrapOptions settled = options; // the compared rows decide whether blocks are drawn
    settled.block = rows.layout().resampling(series, blocks).block;
    settled.block_from_data = true;
    return settled;
}

} // namespace ponderscope
