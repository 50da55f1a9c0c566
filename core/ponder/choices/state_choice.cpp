// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/choices/state_choice.h"

#include "core/base/error.h"
#include "core/ponder/choices/member_list.h"

namespace ponderscope {

void require_single_stream(const ModelConfig& config, const std::string& what) {
    if (config.depth.kind != DepthMixing::none && config.depth.kind != DepthMixing::depth_attention) {
        throw InputError(what + ": expected a model with one residual stream, found depth mixing " +
                         to_string(config.depth.kind) +
                         ", which has no single one after a layer; take the state at the end of each step.");
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
