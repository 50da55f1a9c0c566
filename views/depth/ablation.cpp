// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/depth/ablation.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <string_view>

namespace ponderscope {

namespace {

/// The number after \p before, which goes away with it; nothing where the text does not begin so.
std::optional<std::int64_t> number_after(std::string_view& text, std::string_view before) {
    if (!text.starts_with(before)) {
        return std::nullopt;
    }
    std::int64_t value = 0;
    const char* const begin = text.data() + before.size();
    const auto [end, fault] = std::from_chars(begin, text.data() + text.size(), value);
    if (fault != std::errc() || value < 0) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

} // namespace

std::vector<AblatedSource> ablated_sources(const RunInfo& run) {
    std::vector<AblatedSource> found;
    const nlohmann::json notices = nlohmann::json::parse(run.notices, nullptr, false);
    if (!notices.is_array()) {
        return found;
    }
    for (const nlohmann::json& notice : notices) {
        if (!notice.is_string()) {
            continue;
        }
        const std::string sentence = notice.get<std::string>();
        std::string_view rest = sentence;
        const auto source = number_after(rest, "Changed for this run: the value of layer ");
        if (!source) {
            continue;
        }
        std::string_view place = rest;
        if (rest.starts_with(" is left out of the depth attention of all layers;")) {
            found.push_back({*source, std::nullopt});
        } else if (const auto layer = number_after(place, " is left out of the depth attention of layer ")) {
            found.push_back({*source, layer});
        }
    }
    return found;
}

} // namespace ponderscope
