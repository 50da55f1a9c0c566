// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"

#include <memory>

namespace ponderscope {

/// What an architecture's file gives to the rest: which tensors it has, and the stack over them. A new
/// architecture is one file that defines such an entry, a line below and a line in backbone.cpp's table.
struct BackboneEntry {
    Architecture architecture;
    ParameterLayout (*layout)(const ModelConfig& config);
    std::unique_ptr<Backbone> (*make)(const ModelConfig& config, const Parameters& parameters);
};

BackboneEntry gpt2_backbone();
BackboneEntry gpt_neox_backbone();
BackboneEntry llama_backbone();
BackboneEntry mistral_backbone();
BackboneEntry nanbeige_backbone();
BackboneEntry opt_backbone();
BackboneEntry phi_backbone();
BackboneEntry qwen2_backbone();
BackboneEntry qwen3_backbone();

/// An entry for a class with a static layout(config) and a constructor (config, parameters).
template <typename Stack>
BackboneEntry backbone_entry(Architecture architecture) {
    return {architecture, &Stack::layout,
            [](const ModelConfig& config, const Parameters& parameters) -> std::unique_ptr<Backbone> {
                return std::make_unique<Stack>(config, parameters);
            }};
}

} // namespace ponderscope
