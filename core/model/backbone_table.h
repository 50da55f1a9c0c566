// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"

#include <memory>

namespace ponderscope {

/// What an architecture's file gives to the rest: which tensors it has, and the stack over them. A new
/// architecture is one file that defines such an entry, and a line of architectures.def
/// (resources/adding-a-backbone.md).
struct BackboneEntry {
    Architecture architecture;
    ParameterLayout (*layout)(const ModelConfig& config);
    std::unique_ptr<Backbone> (*make)(const ModelConfig& config, const Parameters& parameters);
};

#define PONDERSCOPE_ARCHITECTURE(name) BackboneEntry name##_backbone();
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE

/// An entry for a class with a static layout(config) and a constructor (config, parameters).
template <typename Stack>
BackboneEntry backbone_entry(Architecture architecture) {
    return {architecture, &Stack::layout,
            [](const ModelConfig& config, const Parameters& parameters) -> std::unique_ptr<Backbone> {
                return std::make_unique<Stack>(config, parameters);
            }};
}

} // namespace ponderscope
