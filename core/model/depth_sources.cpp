// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/depth_sources.h"

#include "core/base/error.h"
#include "core/base/words.h"

#include <algorithm>

namespace ponderscope {

namespace {

bool is_ablated(const DepthMixingConfig& depth, std::int64_t source, std::int64_t layer) {
    return std::any_of(depth.ablations.begin(), depth.ablations.end(), [&](const DepthAblation& one) {
        return one.source == source && (one.layer < 0 || one.layer == layer);
    });
}

} // namespace

std::string ablate_source(ModelConfig& config, const std::string& spec) {
    if (config.depth.kind != DepthMixing::depth_attention) {
        throw InputError(ErrorId::usage_unsuited,
                         "--ablate-source: this model has no Depth-Attention (its depth mixing is " +
                             to_string(config.depth.kind) +
                             "), so it has no source; leave --ablate-source out.");
    }
    const std::size_t colon = spec.find(':');
    const bool all = colon == std::string::npos;
    const DepthAblation ablation{parse_count(std::string_view(spec).substr(0, colon)),
                                 all ? -1 : parse_count(std::string_view(spec).substr(colon + 1))};
    if (ablation.source < 0 || (!all && ablation.layer < 0)) {
        throw InputError(ErrorId::usage_value,
                         "--ablate-source: expected SOURCE or SOURCE:LAYER, each a layer counted from 0, "
                         "found '" +
                             spec + "'.");
    }
    const std::int64_t last_pass = sources_cross_passes(config) ? config.ponder.max_steps : 0;
    bool read = false;
    for (std::int64_t l = 0; l < config.layers; ++l) {
        const std::vector<DepthSourceId> sources = depth_sources(config, last_pass, l);
        read = read || ((all || l == ablation.layer) &&
                        std::any_of(sources.begin(), sources.end(), [&](const DepthSourceId& source) {
                            return source.layer == ablation.source;
                        }));
    }
    if (!read) {
        throw InputError(
            ErrorId::usage_value,
            "--ablate-source: " +
                (all ? std::string("no layer of this model reads")
                     : "layer " + std::to_string(ablation.layer) + " of this model does not read") +
                " source " + std::to_string(ablation.source) + "; choose a source that the model's " +
                std::to_string(config.layers) + " layers, stride of " + std::to_string(config.depth.stride) +
                " and recent window of " + std::to_string(config.depth.recent_window) + " allow.");
    }
    config.depth.ablations.push_back(ablation);
    const std::string source = std::to_string(ablation.source);
    const std::string layer = std::to_string(ablation.layer);
    config.notices.push_back(
        {NoticeId::run_ablated, "Changed for this run: the value of layer " + source +
                                    " is left out of the depth attention of " +
                                    (all ? std::string("all layers") : "layer " + layer) +
                                    "; the other weights add up to 1 without it."});
    return "without-source-" + source + (all ? std::string() : "-in-layer-" + layer);
}

bool sources_cross_passes(const ModelConfig& config) {
    return config.architecture == Architecture::nanbeige && config.ponder.method == MethodKind::looped;
}

std::vector<DepthSourceId> depth_sources(const ModelConfig& config, std::int64_t pass, std::int64_t layer) {
    const DepthMixingConfig& depth = config.depth;
    std::vector<DepthSourceId> sources;
    const auto add = [&](std::int64_t p, std::int64_t j) {
        if (!is_ablated(depth, j, layer)) {
            sources.push_back({p, j});
        }
    };
    if (sources_cross_passes(config)) {
        for (std::int64_t p = 0; p < pass; ++p) {
            for (std::int64_t j = 0; j < config.layers; j += depth.stride) {
                add(p, j);
            }
        }
    } else {
        pass = 0;
    }
    for (std::int64_t j = 0; j < layer; ++j) {
        if (j % depth.stride == 0 || j >= layer - depth.recent_window) {
            add(pass, j);
        }
    }
    return sources;
}

DepthColumns::DepthColumns(const ModelConfig& config) : stride_(config.depth.stride) {
    const bool crosses = sources_cross_passes(config);
    passes_ = crosses ? config.ponder.max_steps + 1 : 1;
    // No layer reads the last layer as a source, unless another pass follows.
    anchors_ =
        ((crosses ? config.layers : std::max<std::int64_t>(config.layers - 1, 1)) + stride_ - 1) / stride_;
    recent_ = stride_ == 1 ? 0 : std::min(config.depth.recent_window, config.layers - 1);
}

std::int64_t DepthColumns::of(const DepthSourceId& source, std::int64_t layer) const {
    if (source.layer % stride_ == 0) {
        return source.pass * anchors_ + source.layer / stride_;
    }
    return own() - (layer - source.layer);
}

std::vector<std::string> DepthColumns::labels() const {
    std::vector<std::string> labels;
    for (std::int64_t p = 0; p < passes_; ++p) {
        for (std::int64_t a = 0; a < anchors_; ++a) {
            labels.push_back((passes_ > 1 ? "pass " + std::to_string(p) + " layer " : "") +
                             std::to_string(a * stride_));
        }
    }
    for (std::int64_t distance = recent_; distance > 0; --distance) {
        labels.push_back(std::to_string(distance) + " before");
    }
    labels.emplace_back("own");
    return labels;
}

} // namespace ponderscope
