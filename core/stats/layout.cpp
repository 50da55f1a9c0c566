// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/layout.h"

#include "core/base/error.h"

#include <algorithm>
#include <numeric>

namespace ponderscope {

TokenLayout::TokenLayout(std::vector<std::int64_t> lengths)
    : stretches(std::move(lengths)), cluster_of(stretches.size()) {
    std::iota(cluster_of.begin(), cluster_of.end(), 0);
}

void TokenLayout::add(std::int64_t cluster, bool follows) {
    if (!follows || stretches.empty()) {
        stretches.push_back(0);
        cluster_of.push_back(cluster);
    }
    ++stretches.back();
}

void TokenLayout::append(const TokenLayout& more) {
    stretches.insert(stretches.end(), more.stretches.begin(), more.stretches.end());
    cluster_of.insert(cluster_of.end(), more.cluster_of.begin(), more.cluster_of.end());
}

void TokenLayout::close_gaps() {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(clusters()), -1);
    for (const std::int64_t cluster : cluster_of) {
        numbers[static_cast<std::size_t>(cluster)] = 0;
    }
    std::int64_t next = 0;
    for (std::int64_t& number : numbers) {
        number = number < 0 ? number : next++;
    }
    for (std::int64_t& cluster : cluster_of) {
        cluster = numbers[static_cast<std::size_t>(cluster)];
    }
}

std::int64_t TokenLayout::tokens() const {
    return std::accumulate(stretches.begin(), stretches.end(), std::int64_t{0});
}

std::int64_t TokenLayout::clusters() const {
    return cluster_of.empty() ? 0 : 1 + *std::max_element(cluster_of.begin(), cluster_of.end());
}

std::int64_t ClusterNumbers::of(const SequenceInfo& sequence) {
    const auto next = static_cast<std::int64_t>(numbers_.size());
    const std::string key =
        sequence.group.empty() ? "sequence " + std::to_string(sequence.number) : "group " + sequence.group;
    return numbers_.emplace(key, next).first->second;
}

std::int64_t ClusterNumbers::of(const SequenceInfo& a, const SequenceInfo& b, const std::string& both) {
    if (!a.group.empty() && !b.group.empty() && a.group != b.group) {
        throw InputError(ErrorId::compare_text,
                         both + ": expected one group for sequence " + std::to_string(a.number) +
                             ", found \"" + a.group.substr(0, 60) + "\" and \"" + b.group.substr(0, 60) +
                             "\"; record both with the same groups.");
    }
    return of(a.group.empty() ? b : a);
}

} // namespace ponderscope
