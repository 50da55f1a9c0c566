// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/depth_recorder.h"

#include "core/trace/column_labels.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace ponderscope {

namespace {

struct Shape {
    SignalInfo info;
    std::vector<std::int64_t> sizes; ///< behind token and step
};

/// Snapshots that Block AttnRes has taken when the stack ends, the embedding included.
std::int64_t snapshots(const ModelConfig& config) {
    const std::int64_t layers_a_block = (config.depth.block_size + 1) / 2;
    return 1 + config.layers / layers_a_block;
}

std::vector<Shape> shapes(const ModelConfig& config) {
    const std::int64_t sublayers = 2 * config.layers;
    switch (config.depth.kind) {
    case DepthMixing::depth_attention: {
        const DepthColumns columns(config);
        return {
            {{signal::depth_weights,
              {"token", "step", "layer", "source", "head"},
              "weight",
              "Depth-attention weights",
              with_column_labels("Share of each source layer's value in the value that a layer's attention "
                                 "reads, a KV head (arXiv 2606.05014); 0 where a layer has no such source.",
                                 columns.labels()),
              DType::f16, SignalStorage::compressed},
             {config.layers, columns.size(), config.kv_heads}}};
    }
    case DepthMixing::mhc:
        return {
            {{signal::mhc_read,
              {"token", "step", "sublayer", "stream"},
              "weight",
              "What sublayers read of each stream",
              "Weight p of each residual stream in a sublayer's input; sublayers are attention and MLP in "
              "turn.",
              DType::f16},
             {sublayers, config.depth.streams}},
            {{signal::mhc_write,
              {"token", "step", "sublayer", "stream"},
              "weight",
              "What sublayers write to each stream",
              "Weight w of a sublayer's output in each residual stream; sublayers are attention and MLP in "
              "turn.",
              DType::f16},
             {sublayers, config.depth.streams}}};
    case DepthMixing::attnres: {
        std::vector<std::string> labels{"embedding"};
        for (std::int64_t snapshot = 1; snapshot < snapshots(config); ++snapshot) {
            labels.push_back("snapshot " + std::to_string(snapshot));
        }
        labels.emplace_back("running stream");
        return {{{signal::attnres_weights,
                  {"token", "step", "sublayer", "source"},
                  "weight",
                  "Weights over snapshots",
                  with_column_labels("Share of each snapshot of the stream in a sublayer's input; the last "
                                     "sublayer is the final mixture.",
                                     labels),
                  DType::f16, SignalStorage::compressed},
                 {sublayers + 1, snapshots(config) + 1}}};
    }
    case DepthMixing::none:
    case DepthMixing::denseformer: // its weights are parameters: the same for every token
        break;
    }
    return {};
}

} // namespace

std::vector<SignalInfo> DepthRecorder::infos(const ModelConfig& config) {
    std::vector<SignalInfo> infos;
    for (Shape& shape : shapes(config)) {
        infos.push_back(std::move(shape.info));
    }
    return infos;
}

DepthRecorder::DepthRecorder(ModelConfig config, std::int64_t reported, std::int64_t steps,
                             const at::TensorOptions& options)
    : config_(std::move(config)), columns_(config_), options_(options) {
    for (const Shape& shape : shapes(config_)) {
        std::vector<std::int64_t> sizes{reported, steps};
        sizes.insert(sizes.end(), shape.sizes.begin(), shape.sizes.end());
        values_.emplace_back(shape.info.name, at::zeros(sizes, options));
    }
}

bool DepthRecorder::wants(std::string_view name) const {
    return std::any_of(values_.begin(), values_.end(), [&](const auto& one) { return one.first == name; });
}

void DepthRecorder::heard(std::string_view name, std::int64_t, std::int64_t layer, const at::Tensor& tensor) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
        if (values_[i].first == name) {
            std::erase_if(waiting_, [&](const Heard& one) { return one.signal == i && one.layer == layer; });
            waiting_.push_back({i, layer, tensor}); // made for listeners: nobody writes to it again
        }
    }
}

/// Weights of a layer's sources and its own value, [n, head, source], in the columns where they belong: [n,
/// column, head]. Neighbours travel together: anchors, recent layers and the own value each have theirs side
/// by side.
at::Tensor DepthRecorder::spread(std::int64_t step, std::int64_t layer, const at::Tensor& weights) const {
    std::vector<std::int64_t> places;
    for (const DepthSourceId& source : depth_sources(config_, step, layer)) {
        places.push_back(columns_.of(source, layer));
    }
    places.push_back(columns_.own());
    at::Tensor all = at::zeros({weights.size(0), columns_.size(), weights.size(1)}, options_);
    const at::Tensor by_source = weights.transpose(1, 2);
    for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
        for (end = begin + 1; end < places.size() && places[end] == places[end - 1] + 1; ++end) {
        }
        const auto count = static_cast<std::int64_t>(end - begin);
        all.narrow(1, places[begin], count)
            .copy_(by_source.narrow(1, static_cast<std::int64_t>(begin), count));
    }
    return all;
}

void DepthRecorder::place(std::int64_t slots, std::int64_t step, const at::Tensor& local,
                          const at::Tensor& place) {
    const auto put = [&](at::Tensor target, const at::Tensor& values) {
        place.defined() ? target.index_copy_(0, place, values) : target.copy_(values);
    };
    if (config_.depth.kind == DepthMixing::depth_attention && !values_.empty()) {
        // A layer without sources says nothing: its own value is all there is.
        for (std::int64_t l = 0; l < config_.layers; ++l) {
            if (depth_sources(config_, step, l).empty()) {
                const at::Tensor target =
                    values_.front().second.select(1, step).select(1, l).select(1, columns_.own());
                put(target,
                    at::ones({place.defined() ? place.size(0) : target.size(0), target.size(1)}, options_));
            }
        }
    }
    for (const Heard& one : waiting_) {
        if (one.tensor.size(0) != slots) {
            continue; // another pass's
        }
        const at::Tensor rows = local.defined() ? one.tensor.index_select(0, local) : one.tensor;
        const at::Tensor target = values_[one.signal].second.select(1, step).select(1, one.layer);
        if (config_.depth.kind == DepthMixing::depth_attention) {
            put(target, spread(step, one.layer, rows));
        } else if (config_.depth.kind == DepthMixing::attnres) {
            // The running stream is the last column, whatever the number of snapshots so far.
            const std::int64_t count = rows.size(1) - 1;
            put(target.narrow(1, 0, count), rows.narrow(1, 0, count));
            put(target.select(1, target.size(1) - 1), rows.select(1, count));
        } else {
            put(target, rows);
        }
    }
    waiting_.clear();
}

} // namespace ponderscope
