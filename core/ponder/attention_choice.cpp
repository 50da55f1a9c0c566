// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/attention_choice.h"

#include "core/base/error.h"

#include <charconv>
#include <numeric>
#include <set>
#include <string_view>

namespace ponderscope {

namespace {

/// A number from 0 that fills all of \p text; -1 otherwise.
std::int64_t number(std::string_view text) {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

/// \p what: "layers" or "heads", of which the model has \p count.
std::vector<std::int64_t> members(std::string_view text, std::int64_t count, const std::string& what) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    if (text == "all") {
        return all;
    }
    std::set<std::int64_t> chosen;
    while (true) {
        const std::string_view entry = text.substr(0, text.find(','));
        const std::size_t dash = entry.find('-');
        const std::int64_t first = number(entry.substr(0, dash));
        const std::int64_t last = dash == std::string_view::npos ? first : number(entry.substr(dash + 1));
        if (first < 0 || last < first) {
            throw InputError("--attention: expected " + what +
                             " as all, numbers and ranges from 0, as in 0,3-5, found '" + std::string(entry) +
                             "'; write LAYERS or LAYERS:HEADS.");
        }
        if (last >= count) {
            throw InputError("--attention: expected " + what + " from 0 to " + std::to_string(count - 1) +
                             ", which this model has, found " + std::string(entry) + ".");
        }
        for (std::int64_t one = first; one <= last; ++one) {
            chosen.insert(one);
        }
        if (entry.size() == text.size()) {
            return {chosen.begin(), chosen.end()};
        }
        text.remove_prefix(entry.size() + 1);
    }
}

std::string in_words(const std::vector<std::int64_t>& members) {
    std::string text;
    for (std::size_t i = 0; i < members.size();) {
        std::size_t end = i + 1;
        while (end < members.size() && members[end] == members[end - 1] + 1) {
            ++end;
        }
        text += (text.empty() ? "" : ", ") + std::to_string(members[i]);
        if (end - i > 1) {
            text += "-" + std::to_string(members[end - 1]);
        }
        i = end;
    }
    return text;
}

} // namespace

AttentionChoice AttentionChoice::parse(const std::string& text, const ModelConfig& config) {
    const std::size_t colon = text.find(':');
    const std::string_view all(text);
    return {members(all.substr(0, colon), config.layers, "layers"),
            members(colon == std::string::npos ? std::string_view("all") : all.substr(colon + 1),
                    config.query_heads, "heads")};
}

std::string AttentionChoice::text() const {
    return "layers " + in_words(layers) + "; heads " + in_words(heads);
}

} // namespace ponderscope
