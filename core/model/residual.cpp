// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/residual.h"

namespace ponderscope {

std::unique_ptr<ResidualStructure> make_residual_structure(const ModelConfig& config,
                                                           TensorBuilder& builder) {
    switch (config.depth.kind) {
    case DepthMixing::mhc:
        return make_hyper_connections(config, builder);
    case DepthMixing::attnres:
        return make_attention_residuals(config, builder);
    case DepthMixing::denseformer:
        return make_depth_average(config, builder);
    case DepthMixing::none:
    case DepthMixing::depth_attention:
        break;
    }
    return nullptr;
}

} // namespace ponderscope
