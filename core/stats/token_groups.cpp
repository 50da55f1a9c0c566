// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/token_groups.h"

#include "core/base/not_a_number.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>

namespace ponderscope {
namespace {

constexpr std::int32_t most_ids = 1 << 24; // ids from an untrusted file may be anything

bool is_space(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(unsigned char c) {
    return c >= '0' && c <= '9';
}
/// ASCII letters, and all bytes above ASCII.
bool is_letter(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

/// Token types with their counts, the most frequent first; equal counts by id.
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

std::string token_class(std::string_view bytes) {
    if (bytes.empty()) {
        return "empty";
    }
    const auto begins = [&](auto is) { return is(static_cast<unsigned char>(bytes.front())); };
    if (std::all_of(bytes.begin(), bytes.end(),
                    [](char c) { return is_space(static_cast<unsigned char>(c)); })) {
        return "white space";
    }
    // The first byte continues a UTF-8 character.
    if ((static_cast<unsigned char>(bytes.front()) & 0xC0U) == 0x80U) {
        return "piece of a character";
    }
    const bool spaced = begins(is_space);
    std::string_view core = bytes;
    while (is_space(static_cast<unsigned char>(core.front()))) {
        core.remove_prefix(1);
    }
    const auto any = [&](auto is) {
        return std::any_of(core.begin(), core.end(),
                           [&](char c) { return is(static_cast<unsigned char>(c)); });
    };
    if (any(is_letter)) {
        return spaced ? "word" : "word part";
    }
    return any(is_digit) ? "number" : "punctuation";
}

std::vector<TokenGroup> tested_groups(const GroupedTokens& tokens, std::size_t groups, std::int64_t max_steps,
                                      std::int64_t least) {
    struct Part { // the tokens of a group in one unit
        std::size_t unit;
        double tokens, steps;
    };
    std::vector<TokenGroup> found(groups + 1); // the last entry: all groups together
    std::vector<std::vector<Part>> parts(groups);
    std::vector<double> unit_steps, unit_tokens;
    bool steps_vary = false;
    const double* first = nullptr;
    for (std::size_t i = 0; i < tokens.group.size(); ++i) {
        if (tokens.group[i] < 0) {
            continue;
        }
        const auto g = static_cast<std::size_t>(tokens.group[i]);
        const std::size_t unit = tokens.units[i];
        for (const std::size_t of : {g, groups}) {
            found[of].count += 1;
            found[of].mean_steps += tokens.steps[i];
            found[of].mean_nll += tokens.nll[i];
            found[of].dropped += tokens.steps[i] < static_cast<double>(max_steps) ? 1 : 0;
        }
        if (unit >= unit_steps.size()) {
            unit_steps.resize(unit + 1);
            unit_tokens.resize(unit + 1);
        }
        unit_steps[unit] += tokens.steps[i];
        unit_tokens[unit] += 1;
        if (parts[g].empty() || parts[g].back().unit != unit) {
            parts[g].push_back({unit, 0, 0});
        }
        parts[g].back().tokens += 1;
        parts[g].back().steps += tokens.steps[i];
        first = first == nullptr ? &tokens.steps[i] : first;
        steps_vary = steps_vary || tokens.steps[i] != *first;
    }
    const TokenGroup all = found.back();
    found.pop_back();
    const auto all_count = static_cast<double>(all.count);
    const double mean = all.mean_steps / all_count;
    for (std::size_t g = 0; g < groups; ++g) {
        TokenGroup& group = found[g];
        const auto count = static_cast<double>(group.count);
        const double rest = all_count - count;
        group.steps_elsewhere = rest > 0 ? (all.mean_steps - group.mean_steps) / rest : not_a_number;
        group.p = not_a_number;
        for (double* sum : {&group.mean_steps, &group.mean_nll, &group.dropped}) {
            *sum /= count;
        }
        if (group.count >= std::max<std::int64_t>(least, 2) && rest > 0 && steps_vary) {
            std::vector<double> contributions(unit_steps.size());
            for (std::size_t u = 0; u < contributions.size(); ++u) {
                contributions[u] = -count / all_count * (unit_steps[u] - unit_tokens[u] * mean);
            }
            for (const Part& part : parts[g]) {
                contributions[part.unit] += part.steps - part.tokens * mean;
            }
            group.p = sign_flip_p(contributions);
        }
    }
    return found;
}

TokenGroups group_tokens(const ScoredTokens& tokens, std::int64_t max_steps,
                         const std::vector<std::string>& bytes_by_id, const GroupingOptions& options) {
    const auto bytes_of = [&](std::int32_t id) {
        return id >= 0 && static_cast<std::size_t>(id) < bytes_by_id.size()
                   ? bytes_by_id[static_cast<std::size_t>(id)]
                   : std::string();
    };
    TokenGroups groups;
    if (tokens.steps.empty()) {
        return groups;
    }
    groups.scored = static_cast<std::int64_t>(tokens.steps.size());
    const std::span<const double> series[] = {tokens.steps};
    groups.resampling = choose_resampling(tokens.layout, series, options.bootstrap);
    std::vector<std::size_t> unit_of = units_of(tokens.layout, groups.resampling);
    const std::size_t units = 1 + *std::ranges::max_element(unit_of);
    groups.joined = units > most_test_units;
    groups.units = groups.joined ? most_test_units : static_cast<std::int64_t>(units);
    if (groups.joined) {
        for (std::size_t& unit : unit_of) {
            unit = unit * most_test_units / units;
        }
    }
    const auto tested = [&](const TokenGrouping& grouping, std::int64_t least) {
        std::vector<TokenGroup> found = tested_groups({grouping.group, tokens.steps, tokens.nll, unit_of},
                                                      grouping.groups.size(), max_steps, least);
        for (std::size_t g = 0; g < found.size(); ++g) {
            found[g].id = grouping.groups[g].id;
            found[g].name = grouping.groups[g].name;
        }
        return found;
    };
    groups.types = tested(group_by_type(tokens.id, bytes_of, SIZE_MAX), options.least);
    std::erase_if(groups.types, [&](const TokenGroup& one) { return one.count < options.least; });
    groups.classes = tested(group_by_class(tokens.id, bytes_of), 2);
    set_q(groups.types);
    set_q(groups.classes);
    return groups;
}

std::vector<std::string> vocabulary_by_id(const TraceReader& trace, const RunInfo& run) {
    std::vector<std::string> bytes;
    for (auto& [id, text] : trace.vocabulary(run.id)) {
        if (id >= 0 && id < most_ids) {
            if (static_cast<std::size_t>(id) >= bytes.size()) {
                bytes.resize(static_cast<std::size_t>(id) + 1);
            }
            bytes[static_cast<std::size_t>(id)] = std::move(text);
        }
    }
    return bytes;
}

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
    constexpr int first_bits = 4; // first group: 0 to 15
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

TokenGrouping group_by_fifths(std::span<const double> values) {
    constexpr std::size_t parts = 5;
    std::vector<double> sorted;
    std::ranges::copy_if(values, std::back_inserter(sorted),
                         [](double value) { return std::isfinite(value); });
    std::ranges::sort(sorted);
    TokenGrouping result;
    auto first = sorted.begin(); // first value that has no group yet
    for (std::size_t part = 1; part <= parts; ++part) {
        const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() * part / parts);
        if (first < end) {
            result.groups.push_back({-1, {}, *first, *(end - 1)});
            first = std::upper_bound(end, sorted.end(), *(end - 1)); // equal values stay together
        }
    }
    for (const double value : values) {
        const auto group = std::ranges::lower_bound(result.groups, value, {}, &TokenGrouping::Group::high);
        result.group.push_back(std::isfinite(value) ? static_cast<std::int32_t>(group - result.groups.begin())
                                                    : -1);
    }
    return result;
}

} // namespace ponderscope
