// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/residual.h"

namespace ponderscope {

std::vector<TensorSpec> residual_tensors(const ModelConfig& config) {
    switch (config.depth.kind) {
    case DepthMixing::mhc:
        return hyper_connection_tensors(config);
    case DepthMixing::attnres:
        return attention_residual_tensors(config);
    case DepthMixing::denseformer:
        return depth_average_tensors(config);
    case DepthMixing::none:
    case DepthMixing::depth_attention:
        break;
    }
    return {};
}

std::unique_ptr<ResidualStructure> make_residual_structure(const ModelConfig& config,
                                                           const Parameters& parameters) {
    switch (config.depth.kind) {
    case DepthMixing::mhc:
        return make_hyper_connections(config, parameters);
    case DepthMixing::attnres:
        return make_attention_residuals(config, parameters);
    case DepthMixing::denseformer:
        return make_depth_average(config, parameters);
    case DepthMixing::none:
    case DepthMixing::depth_attention:
        break;
    }
    return nullptr;
}

} // namespace ponderscope
