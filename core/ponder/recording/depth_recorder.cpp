// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/depth_sources.h"
#include "core/ponder/recording/part_recorders.h"
#include "core/trace/records.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

namespace ponderscope {

namespace {

class DepthRecorder final : public PartRecorder {
public:
    DepthRecorder(const ModelConfig& config, const SignalTensors& signals)
        : config_(config), columns_(config_), signals_(signals) {}

    [[nodiscard]] bool wants(std::string_view name) const override {
        return signals_.contains(std::string(name));
    }

    void on_tensor(std::string_view name, std::int64_t, std::int64_t layer,
                   const at::Tensor& tensor) override {
        // Made for listeners: nobody writes to it again.
        waiting_[{std::string(name), layer}] = tensor;
    }

    /// Puts what was heard since the last step to this one and its tokens.
    void step_ran(const Slots& slots) override {
        if (!rows_.empty) {
            place(slots.hidden.size(0), slots.step);
        }
        waiting_.clear();
    }

private:
    void place(std::int64_t slots, std::int64_t step) {
        if (config_.depth.kind == DepthMixing::depth_attention) {
            // A layer without sources says nothing: its own value is all there is.
            for (std::int64_t l = 0; l < config_.layers; ++l) {
                if (depth_sources(config_, step, l).empty()) {
                    const at::Tensor target = signals_.at(signal::depth_weights)
                                                  .select(1, step)
                                                  .select(1, l)
                                                  .select(1, columns_.own());
                    const std::int64_t count = rows_.place.defined() ? rows_.place.size(0) : target.size(0);
                    put(target, at::ones({count, target.size(1)}, target.options()));
                }
            }
        }
        for (const auto& [heard, tensor] : waiting_) {
            if (tensor.size(0) != slots) {
                continue; // another pass's
            }
            const auto& [name, layer] = heard;
            const at::Tensor rows = recorded(tensor);
            const at::Tensor target = signals_.at(name).select(1, step).select(1, layer);
            if (config_.depth.kind == DepthMixing::depth_attention) {
                put(target, spread(step, layer, rows));
            } else if (config_.depth.kind == DepthMixing::attnres) {
                // The running stream is the last column, whatever the number of snapshots so far.
                const std::int64_t count = rows.size(1) - 1;
                put(target.narrow(1, 0, count), rows.narrow(1, 0, count));
                put(target.select(1, target.size(1) - 1), rows.select(1, count));
            } else {
                put(target, rows);
            }
        }
    }

    /// Weights of a layer's sources and its own value, [n, head, source], in the columns where they belong:
    /// [n, column, head]. Neighbours travel together: anchors, recent layers and the own value each have
    /// theirs side by side.
    [[nodiscard]] at::Tensor spread(std::int64_t step, std::int64_t layer, const at::Tensor& weights) const {
        std::vector<std::int64_t> places;
        for (const DepthSourceId& source : depth_sources(config_, step, layer)) {
            places.push_back(columns_.of(source, layer));
        }
        places.push_back(columns_.own());
        at::Tensor all = at::zeros({weights.size(0), columns_.size(), weights.size(1)},
                                   weights.options().dtype(at::kFloat));
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

    ModelConfig config_;
    DepthColumns columns_;
    SignalTensors signals_;
    std::map<std::pair<std::string, std::int64_t>, at::Tensor> waiting_; ///< by signal and layer
};

} // namespace

std::unique_ptr<PartRecorder> depth_recorder(const ModelConfig& config, const SignalTensors& signals) {
    return std::make_unique<DepthRecorder>(config, signals);
}

} // namespace ponderscope
