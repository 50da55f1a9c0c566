// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/token_groups.h"

#include "core/base/error.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace ponderscope {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

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

struct Sums {
    Moments steps;
    Moments nll;
    std::int64_t dropped = 0;
    /// Sum of steps, and number of tokens, in each unit that has some, in the order of the units.
    struct Part {
        std::size_t unit;
        double steps;
        double tokens;
    };
    std::vector<Part> parts;

    void add(double k, double loss, bool stopped, std::size_t unit) {
        steps.add(k);
        nll.add(loss);
        dropped += stopped ? 1 : 0;
        if (parts.empty() || parts.back().unit != unit) {
            parts.push_back({unit, 0, 0});
        }
        parts.back().steps += k;
        parts.back().tokens += 1;
    }
};

/// \p centred: steps less their mean over all tokens, a sum for each unit.
TokenGroup group_of(const Sums& sums, const Sums& all, std::span<const double> centred) {
    const Moments rest = Moments::without(all.steps, sums.steps);
    TokenGroup group;
    group.count = sums.steps.count;
    group.mean_steps = sums.steps.mean;
    group.mean_nll = sums.nll.mean;
    group.dropped = static_cast<double>(sums.dropped) / static_cast<double>(group.count);
    group.steps_elsewhere = rest.count > 0 ? rest.mean : nan;
    group.p = nan;
    if (group.count >= 2 && rest.count > 0 && all.steps.squares > 0) {
        std::vector<std::pair<std::size_t, double>> mine;
        mine.reserve(sums.parts.size());
        for (const Sums::Part& part : sums.parts) {
            mine.emplace_back(part.unit, part.steps - part.tokens * all.steps.mean);
        }
        group.p = group_difference_p(centred, mine,
                                     static_cast<double>(group.count) / static_cast<double>(all.steps.count));
    }
    return group;
}

void control_false_discoveries(std::vector<TokenGroup>& groups, DiscoveryControl control) {
    std::vector<double> p;
    p.reserve(groups.size());
    for (const TokenGroup& group : groups) {
        p.push_back(group.p);
    }
    const std::vector<double> q = false_discovery_q(p, control);
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

TokenGroups group_tokens(std::span<const std::int32_t> ids, std::span<const std::int32_t> steps,
                         std::span<const float> nll, const TokenLayout& layout, std::int64_t max_steps,
                         const std::vector<std::string>& bytes_by_id, const GroupingOptions& options) {
    if (ids.size() != steps.size() || ids.size() != nll.size()) {
        throw InputError("expected ids, steps and NLL of the same tokens, found " +
                         std::to_string(ids.size()) + ", " + std::to_string(steps.size()) + " and " +
                         std::to_string(nll.size()) + ".");
    }
    const auto bytes_of = [&](std::int32_t id) {
        return id >= 0 && static_cast<std::size_t>(id) < bytes_by_id.size()
                   ? bytes_by_id[static_cast<std::size_t>(id)]
                   : std::string();
    };
    std::vector<double> scored_steps;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!std::isnan(nll[i])) {
            scored_steps.push_back(static_cast<double>(steps[i]));
        }
    }
    if (static_cast<std::int64_t>(scored_steps.size()) != layout.tokens()) {
        throw InputError("expected a layout of the " + std::to_string(scored_steps.size()) +
                         " tokens with a target, found one of " + std::to_string(layout.tokens()) + ".");
    }
    TokenGroups groups;
    if (scored_steps.empty()) {
        return groups;
    }
    const std::span<const double> series[] = {scored_steps};
    groups.resampling = choose_resampling(layout, series, options.bootstrap);
    const std::vector<std::size_t> units = units_of(layout, groups.resampling);
    std::map<std::int32_t, Sums> by_id;
    std::map<std::int32_t, std::string> class_of;
    std::map<std::string, Sums> by_class;
    Sums all;
    std::size_t at = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (std::isnan(nll[i])) {
            continue;
        }
        const auto found = class_of.find(ids[i]);
        const std::string& name = found != class_of.end()
                                      ? found->second
                                      : class_of.emplace(ids[i], token_class(bytes_of(ids[i]))).first->second;
        const bool stopped = steps[i] < max_steps;
        for (Sums* sums : {&by_id[ids[i]], &by_class[name], &all}) {
            sums->add(steps[i], static_cast<double>(nll[i]), stopped, units[at]);
        }
        ++at;
    }
    std::vector<double> centred(1 + *std::max_element(units.begin(), units.end()));
    for (const Sums::Part& part : all.parts) {
        centred[part.unit] += part.steps - part.tokens * all.steps.mean;
    }
    groups.scored = all.steps.count;
    for (const auto& [id, sums] : by_id) {
        if (sums.steps.count >= options.least) {
            groups.types.push_back(group_of(sums, all, centred));
            groups.types.back().id = id;
            groups.types.back().name = bytes_of(id);
        }
    }
    for (const auto& [name, sums] : by_class) {
        groups.classes.push_back(group_of(sums, all, centred));
        groups.classes.back().name = name;
    }
    for (std::vector<TokenGroup>* table : {&groups.types, &groups.classes}) {
        std::stable_sort(table->begin(), table->end(),
                         [](const TokenGroup& a, const TokenGroup& b) { return a.count > b.count; });
        control_false_discoveries(*table, options.control);
    }
    return groups;
}

TokenGroups group_tokens(const TraceReader& trace, const RunInfo& run, const GroupingOptions& options,
                         const ProgressSink& progress, const std::stop_token& stop) {
    constexpr std::int64_t page = 1 << 16;
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> steps;
    std::vector<float> nll;
    TokenLayout layout;
    ClusterNumbers clusters;
    for (const SequenceInfo& sequence : trace.sequences(run.id)) {
        std::int64_t cluster = -1;
        bool follows = false;
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            const TokenColumns tokens = trace.tokens(run.id, sequence.index, begin, begin + page);
            ids.insert(ids.end(), tokens.id.begin(), tokens.id.end());
            steps.insert(steps.end(), tokens.steps.begin(), tokens.steps.end());
            nll.insert(nll.end(), tokens.nll.begin(), tokens.nll.end());
            for (const float loss : tokens.nll) {
                if (!std::isnan(loss)) {
                    cluster = cluster < 0 ? clusters.of(sequence) : cluster;
                    layout.add(cluster, follows);
                }
                follows = !std::isnan(loss);
            }
            if (progress) {
                progress({"reading", static_cast<std::int64_t>(ids.size()), run.tokens, "tokens"});
            }
        }
    }
    std::vector<std::string> bytes;
    constexpr std::int32_t most_ids = 1 << 24; // a stranger's file may name any
    for (auto& [id, text] : trace.vocabulary(run.id)) {
        if (id >= 0 && id < most_ids) {
            if (static_cast<std::size_t>(id) >= bytes.size()) {
                bytes.resize(static_cast<std::size_t>(id) + 1);
            }
            bytes[static_cast<std::size_t>(id)] = text;
        }
    }
    return group_tokens(ids, steps, nll, layout, run.max_steps, bytes, options);
}

} // namespace ponderscope
