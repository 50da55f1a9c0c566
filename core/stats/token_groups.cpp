// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/token_groups.h"

#include "core/base/not_a_number.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

namespace ponderscope {
namespace {

constexpr std::int32_t most_ids = 1 << 24; // a stranger's file may name any

bool is_space(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(unsigned char c) {
    return c >= '0' && c <= '9';
}
/// Letters of ASCII, and everything beyond it.
bool is_letter(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}

/// Sum of steps, and number of tokens, in a unit that has some.
struct UnitPart {
    std::size_t unit = 0;
    double tokens = 0;
    double steps = 0;
};

/// What the tokens of a type add up to.
struct TypeSums {
    std::int64_t tokens = 0;
    std::int64_t dropped = 0; ///< that stop before the last step
    double steps = 0;
    double nll = 0;
    std::vector<UnitPart> parts; ///< in the order of the tokens

    void add(const TypeSums& more) { ///< but for the parts
        tokens += more.tokens;
        dropped += more.dropped;
        steps += more.steps;
        nll += more.nll;
    }
};

/// What all tokens add up to, in each unit.
struct Whole {
    TypeSums sums;
    std::vector<double> steps, tokens; ///< a unit
    bool steps_vary = false;
    [[nodiscard]] double mean_steps() const { return sums.steps / static_cast<double>(sums.tokens); }
};

/// \p centred: steps less their mean over all tokens, a sum for each unit.
TokenGroup group_of(const TypeSums& sums, const Whole& all, std::span<const double> centred) {
    const auto count = static_cast<double>(sums.tokens);
    const auto rest = static_cast<double>(all.sums.tokens - sums.tokens);
    TokenGroup group;
    group.count = sums.tokens;
    group.mean_steps = sums.steps / count;
    group.mean_nll = sums.nll / count;
    group.dropped = static_cast<double>(sums.dropped) / count;
    group.steps_elsewhere = rest > 0 ? (all.sums.steps - sums.steps) / rest : not_a_number;
    group.p = not_a_number;
    if (group.count >= 2 && rest > 0 && all.steps_vary) {
        std::vector<std::pair<std::size_t, double>> mine;
        mine.reserve(sums.parts.size());
        for (const UnitPart& part : sums.parts) {
            mine.emplace_back(part.unit, part.steps - part.tokens * all.mean_steps());
        }
        group.p = group_difference_p(centred, mine, count / static_cast<double>(all.sums.tokens));
    }
    return group;
}

void control_false_discoveries(std::vector<TokenGroup>& groups) {
    std::vector<double> p;
    p.reserve(groups.size());
    for (const TokenGroup& group : groups) {
        p.push_back(group.p);
    }
    const std::vector<double> q = false_discovery_q(p);
    for (std::size_t i = 0; i < groups.size(); ++i) {
        groups[i].q = q[i];
    }
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
    // A continuation byte in front: the middle of a character.
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

double group_difference_p(std::span<const double> centred,
                          std::span<const std::pair<std::size_t, double>> in_group, double share) {
    std::vector<double> contributions(centred.size());
    for (std::size_t u = 0; u < centred.size(); ++u) {
        contributions[u] = -share * centred[u];
    }
    for (const auto& [unit, sum] : in_group) {
        contributions[unit] += sum;
    }
    return sign_flip_p(contributions);
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
    const std::span<const double> series[] = {tokens.steps};
    groups.resampling = choose_resampling(tokens.layout, series, options.bootstrap);
    std::vector<std::size_t> unit_of = units_of(tokens.layout, groups.resampling);
    std::size_t units = 1 + *std::max_element(unit_of.begin(), unit_of.end());
    groups.joined = units > most_test_units;
    if (groups.joined) {
        for (std::size_t& unit : unit_of) {
            unit = unit * most_test_units / units;
        }
        units = most_test_units;
    }
    std::unordered_map<std::int32_t, TypeSums> types;
    for (std::size_t i = 0; i < tokens.steps.size(); ++i) {
        const double steps = tokens.steps[i];
        TypeSums& type = types[tokens.id[i]];
        type.add({1, steps < static_cast<double>(max_steps) ? 1 : 0, steps, tokens.nll[i], {}});
        if (type.parts.empty() || type.parts.back().unit != unit_of[i]) {
            type.parts.push_back({unit_of[i]});
        }
        type.parts.back().tokens += 1;
        type.parts.back().steps += steps;
    }
    std::map<std::int32_t, const TypeSums*> by_id;
    for (const auto& [id, sums] : types) {
        by_id.emplace(id, &sums);
    }
    const auto [least, most] = std::ranges::minmax_element(tokens.steps);
    Whole all{{}, std::vector<double>(units), std::vector<double>(units), *least < *most};
    std::map<std::string, Whole> classes;
    for (const auto& [id, sums] : by_id) {
        Whole& of_class = classes.try_emplace(token_class(bytes_of(id)), all).first->second;
        of_class.sums.add(*sums);
        for (const UnitPart& part : sums->parts) {
            of_class.steps[part.unit] += part.steps;
            of_class.tokens[part.unit] += part.tokens;
        }
    }
    for (auto& [name, one] : classes) {
        for (std::size_t u = 0; u < units; ++u) {
            if (one.tokens[u] > 0) {
                one.sums.parts.push_back({u, one.tokens[u], one.steps[u]});
            }
            all.steps[u] += one.steps[u];
            all.tokens[u] += one.tokens[u];
        }
        all.sums.add(one.sums);
    }
    groups.scored = all.sums.tokens;
    groups.units = std::count_if(all.tokens.begin(), all.tokens.end(), [](double n) { return n > 0; });
    std::vector<double> centred(units);
    for (std::size_t u = 0; u < units; ++u) {
        centred[u] = all.steps[u] - all.tokens[u] * all.mean_steps();
    }
    for (const auto& [id, sums] : by_id) {
        if (sums->tokens >= options.least) {
            groups.types.push_back(group_of(*sums, all, centred));
            groups.types.back().id = id;
            groups.types.back().name = bytes_of(id);
        }
    }
    for (const auto& [name, one] : classes) {
        groups.classes.push_back(group_of(one.sums, all, centred));
        groups.classes.back().name = name;
    }
    for (std::vector<TokenGroup>* table : {&groups.types, &groups.classes}) {
        std::stable_sort(table->begin(), table->end(),
                         [](const TokenGroup& a, const TokenGroup& b) { return a.count > b.count; });
        control_false_discoveries(*table);
    }
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
