// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/token_grouping.h"

#include "core/stats/token_groups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <unordered_map>

namespace ponderscope {
namespace {

/// Types by their number of tokens, most first; equal numbers by id.
std::vector<std::pair<std::int32_t, std::int64_t>> counted(std::span<const std::int32_t> ids) {
    std::unordered_map<std::int32_t, std::int64_t> counts;
    for (const std::int32_t id : ids) {
        ++counts[id];
    }
    std::vector<std::pair<std::int32_t, std::int64_t>> types(counts.begin(), counts.end());
    std::sort(types.begin(), types.end(), [](const auto& a, const auto& b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    return types;
}

TokenGrouping grouped_by_id(std::span<const std::int32_t> ids, std::vector<TokenGrouping::Group> names,
                            const std::unordered_map<std::int32_t, std::int32_t>& groups) {
    TokenGrouping result{std::move(names), {}};
    result.group.reserve(ids.size());
    for (const std::int32_t id : ids) {
        const auto found = groups.find(id);
        result.group.push_back(found == groups.end() ? -1 : found->second);
    }
    return result;
}

} // namespace

TokenGrouping group_by_class(std::span<const std::int32_t> ids,
                             const std::function<std::string(std::int32_t)>& bytes) {
    const auto types = counted(ids);
    std::map<std::string, std::int64_t> sizes;
    std::unordered_map<std::int32_t, std::string> classes;
    for (const auto& [id, count] : types) {
        sizes[classes[id] = token_class(bytes(id))] += count;
    }
    std::vector<std::pair<std::string, std::int64_t>> order(sizes.begin(), sizes.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<TokenGrouping::Group> names;
    std::map<std::string, std::int32_t> place;
    for (const auto& [name, count] : order) {
        place[name] = static_cast<std::int32_t>(names.size());
        names.push_back({-1, name});
    }
    std::unordered_map<std::int32_t, std::int32_t> groups;
    for (const auto& [id, name] : classes) {
        groups[id] = place[name];
    }
    return grouped_by_id(ids, std::move(names), groups);
}

TokenGrouping group_by_type(std::span<const std::int32_t> ids,
                            const std::function<std::string(std::int32_t)>& bytes, std::size_t most) {
    std::vector<TokenGrouping::Group> names;
    std::unordered_map<std::int32_t, std::int32_t> groups;
    for (const auto& [id, count] : counted(ids)) {
        if (names.size() == most) {
            break;
        }
        groups[id] = static_cast<std::int32_t>(names.size());
        names.push_back({id, bytes(id)});
    }
    return grouped_by_id(ids, std::move(names), groups);
}

TokenGrouping group_by_position(std::span<const std::int64_t> positions) {
    constexpr int first_bits = 4; // 0 to 15
    TokenGrouping result;
    int most = -1;
    for (const std::int64_t position : positions) {
        const auto bits =
            static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(position, 0))));
        const int group = std::max(0, bits - first_bits);
        result.group.push_back(group);
        most = std::max(most, group);
    }
    for (int group = 0; group <= most; ++group) {
        result.groups.push_back({-1,
                                 {},
                                 group == 0 ? 0 : std::ldexp(1.0, group + first_bits - 1),
                                 std::ldexp(1.0, group + first_bits) - 1});
    }
    return result;
}

TokenGrouping group_by_difficulty(std::span<const double> values) {
    constexpr int parts = 5;
    std::vector<double> sorted;
    for (const double value : values) {
        if (std::isfinite(value)) {
            sorted.push_back(value);
        }
    }
    std::sort(sorted.begin(), sorted.end());
    std::vector<double> bounds; // the lowest value of each further part
    for (int part = 1; part < parts && !sorted.empty(); ++part) {
        bounds.push_back(sorted[sorted.size() * static_cast<std::size_t>(part) / parts]);
    }
    TokenGrouping result;
    for (int part = 0; part < parts && !sorted.empty(); ++part) {
        const double low = part == 0 ? sorted.front() : bounds[static_cast<std::size_t>(part) - 1];
        const double high = part + 1 == parts ? sorted.back() : bounds[static_cast<std::size_t>(part)];
        result.groups.push_back({-1, {}, low, high});
    }
    for (const double value : values) {
        result.group.push_back(
            std::isfinite(value) ? static_cast<std::int32_t>(
                                       std::upper_bound(bounds.begin(), bounds.end(), value) - bounds.begin())
                                 : -1);
    }
    return result;
}

} // namespace ponderscope
