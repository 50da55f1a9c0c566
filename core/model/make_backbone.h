// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/tensor_builder.h"

#include <memory>

namespace ponderscope {

// make_NAME constructs an architecture's stack over the tensors that it declares. For a layout, which needs
// no weights, the tensors are undefined. A new architecture needs a file with this function and a line of
// architectures.def (resources/adding-a-backbone.md).
#define PONDERSCOPE_ARCHITECTURE(name)                                                                       \
    std::unique_ptr<Backbone> name##_backbone(const ModelConfig& config, TensorBuilder& builder);
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE

} // namespace ponderscope
