// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/choices/attention_choice.h"

#include "core/ponder/choices/member_list.h"

#include <string_view>

namespace ponderscope {

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

} // namespace ponderscope
