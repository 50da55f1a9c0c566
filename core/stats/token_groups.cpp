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

    void add(double k, double loss, bool stopped) {
        steps.add(k);
        nll.add(loss);
        dropped += stopped ? 1 : 0;
    }
};

TokenGroup group_of(const Sums& sums, const Sums& all) {
    const Moments rest = Moments::without(all.steps, sums.steps);
    TokenGroup group;
    group.count = sums.steps.count;
    group.mean_steps = sums.steps.mean;
    group.mean_nll = sums.nll.mean;
    group.dropped = static_cast<double>(sums.dropped) / static_cast<double>(group.count);
    group.steps_elsewhere = rest.count > 0 ? rest.mean : nan;
    group.p = welch_p(sums.steps, rest);
    return group;
}

void control_false_discoveries(std::vector<TokenGroup>& groups) {
    std::vector<double> p;
    p.reserve(groups.size());
    for (const TokenGroup& group : groups) {
        p.push_back(group.p);
    }
    const std::vector<double> q = benjamini_hochberg(p);
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

TokenGroups group_tokens(std::span<const std::int32_t> ids, std::span<const std::int32_t> steps,
                         std::span<const float> nll, std::int64_t max_steps,
                         const std::vector<std::string>& bytes_by_id, std::int64_t least) {
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
    std::map<std::int32_t, Sums> by_id;
    Sums all;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (std::isnan(nll[i])) {
            continue;
        }
        const bool stopped = steps[i] < max_steps;
        by_id[ids[i]].add(steps[i], static_cast<double>(nll[i]), stopped);
        all.add(steps[i], static_cast<double>(nll[i]), stopped);
    }
    // Classes in a second pass: only now is known which token has no bytes.
    std::map<std::int32_t, std::string> class_of;
    std::map<std::string, Sums> by_class;
    for (const auto& [id, sums] : by_id) {
        class_of[id] = token_class(bytes_of(id));
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!std::isnan(nll[i])) {
            by_class[class_of[ids[i]]].add(steps[i], static_cast<double>(nll[i]), steps[i] < max_steps);
        }
    }
    TokenGroups groups;
    groups.scored = all.steps.count;
    for (const auto& [id, sums] : by_id) {
        if (sums.steps.count >= least) {
            groups.types.push_back(group_of(sums, all));
            groups.types.back().id = id;
            groups.types.back().name = bytes_of(id);
        }
    }
    for (const auto& [name, sums] : by_class) {
        groups.classes.push_back(group_of(sums, all));
        groups.classes.back().name = name;
    }
    for (std::vector<TokenGroup>* table : {&groups.types, &groups.classes}) {
        std::stable_sort(table->begin(), table->end(),
                         [](const TokenGroup& a, const TokenGroup& b) { return a.count > b.count; });
        control_false_discoveries(*table);
    }
    return groups;
}

TokenGroups group_tokens(const TraceReader& trace, const RunInfo& run, std::int64_t least,
                         const ProgressSink& progress, const std::stop_token& stop) {
    constexpr std::int64_t page = 1 << 16;
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> steps;
    std::vector<float> nll;
    for (const SequenceInfo& sequence : trace.sequences(run.id)) {
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            const TokenColumns tokens = trace.tokens(run.id, sequence.index, begin, begin + page);
            ids.insert(ids.end(), tokens.id.begin(), tokens.id.end());
            steps.insert(steps.end(), tokens.steps.begin(), tokens.steps.end());
            nll.insert(nll.end(), tokens.nll.begin(), tokens.nll.end());
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
    return group_tokens(ids, steps, nll, run.max_steps, bytes, least);
}

} // namespace ponderscope
