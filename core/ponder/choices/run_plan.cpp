// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/choices/run_plan.h"

#include "core/base/error.h"
#include "core/base/words.h"

#include <iterator>
#include <numeric>
#include <set>
#include <string_view>

namespace ponderscope {

namespace {

constexpr const char* kv_names[] = {"full", "per_step", "shared", "skip"};

/// A list of numbers on the command line, from `begin` to `end` - 1.
struct MemberRange {
    std::string option; ///< "--attention"
    std::string what;   ///< "layers"
    std::string usage;  ///< "LAYERS or LAYERS:HEADS"
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// Parses `all`, or numbers and ranges as in 0,3-5. Returns ascending numbers without repeats. InputError:
/// other text, or a number outside of the range.
std::vector<std::int64_t> parse_members(std::string_view text, const MemberRange& range) {
    if (text == "all") {
        std::vector<std::int64_t> all(static_cast<std::size_t>(range.end - range.begin));
        std::iota(all.begin(), all.end(), range.begin);
        return all;
    }
    std::set<std::int64_t> chosen;
    for (const std::string_view entry : split_at(text, ',')) {
        const std::size_t dash = entry.find('-');
        const std::int64_t first = parse_count(entry.substr(0, dash));
        const std::int64_t last =
            dash == std::string_view::npos ? first : parse_count(entry.substr(dash + 1));
        if (first < 0 || last < first) {
            throw InputError(ErrorId::usage_value,
                             range.option + ": expected for the " + range.what +
                                 " all, or numbers and ranges from 0 such as 0,3-5, found '" +
                                 std::string(entry) + "'; write " + range.usage + ".");
        }
        if (first < range.begin || last >= range.end) {
            throw InputError(
                ErrorId::usage_value,
                range.option + ": expected " + range.what + " from " + std::to_string(range.begin) + " to " +
                    std::to_string(range.end - 1) +
                    (range.begin == 0 ? ", which this model has" : ", which this model runs again") +
                    ", found " + std::string(entry) + ".");
        }
        for (std::int64_t one = first; one <= last; ++one) {
            chosen.insert(one);
        }
    }
    return {chosen.begin(), chosen.end()};
}

/// Writes numbers as "0, 3-5".
std::string members_in_words(const std::vector<std::int64_t>& members) {
    std::string text;
    for (std::size_t i = 0; i < members.size();) {
        std::size_t end = i + 1;
        while (end < members.size() && members[end] == members[end - 1] + 1) {
            ++end;
        }
        text += text.empty() ? "" : ", ";
        text += std::to_string(members[i]);
        if (end - i > 1) {
            text += '-';
            text += std::to_string(members[end - 1]);
        }
        i = end;
    }
    return text;
}

} // namespace

std::string to_string(KvPolicy policy) {
    return kv_names[static_cast<std::size_t>(policy)];
}

std::optional<KvPolicy> kv_policy_from_string(const std::string& name) {
    for (std::size_t i = 0; i < std::size(kv_names); ++i) {
        if (name == kv_names[i]) {
            return static_cast<KvPolicy>(i);
        }
    }
    return std::nullopt;
}

AttentionChoice AttentionChoice::parse(const std::string& text, const ModelConfig& config) {
    const std::size_t colon = text.find(':');
    const std::string_view all(text);
    const auto members = [](std::string_view list, const char* what, std::int64_t count) {
        return parse_members(list, {"--attention", what, "LAYERS or LAYERS:HEADS", 0, count});
    };
    return {members(all.substr(0, colon), "layers", config.layers),
            members(colon == std::string::npos ? std::string_view("all") : all.substr(colon + 1), "heads",
                    config.query_heads)};
}

std::string AttentionChoice::text() const {
    return "layers " + members_in_words(layers) + "; heads " + members_in_words(heads);
}

void require_single_stream(const ModelConfig& config, const std::string& what) {
    if (config.depth.kind != DepthMixing::none && config.depth.kind != DepthMixing::depth_attention) {
        throw InputError(ErrorId::usage_unsuited,
                         what + ": expected a model with one residual stream, found depth mixing " +
                             to_string(config.depth.kind) +
                             ", which has no single stream after a layer; leave the layers out.");
    }
}

StateChoice StateChoice::parse(const std::string& text, const ModelConfig& config) {
    if (text.empty()) {
        return {};
    }
    require_single_stream(config, "--record states:LAYERS");
    return {parse_members(text, {"--record states:LAYERS", "layers", "states or states:LAYERS",
                                 config.core_begin(), config.core_end()})};
}

std::string StateChoice::text() const {
    return layers.empty() ? "at the end of each step" : "after layers " + members_in_words(layers);
}

} // namespace ponderscope
