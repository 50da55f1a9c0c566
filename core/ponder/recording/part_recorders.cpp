// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/part_recorders.h"

#include "core/model/depth_sources.h"
#include "core/ponder/schedule/visibility.h"
#include "core/trace/records.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace ponderscope {

at::Tensor PartRecorder::recorded(const at::Tensor& rows) const {
    return select_rows(rows, rows_.local);
}

void PartRecorder::put(at::Tensor column, const at::Tensor& values) const {
    rows_.place.defined() ? column.index_copy_(0, rows_.place, values.to(column.scalar_type()))
                          : column.copy_(values);
}

namespace {

/// Reads out every layer at every step through the final norm and the head (the logit lens). It does so as
/// soon as the layer ran, so that states do not accumulate.
class LensRecorder final : public PartRecorder {
public:
    LensRecorder(const Backbone& backbone, const SignalTensors& signals, at::Tensor targets)
        : backbone_(backbone), signals_(signals), targets_(std::move(targets)) {}

    [[nodiscard]] bool wants(std::string_view name) const override { return name == "layer_output"; }
    [[nodiscard]] bool wants_layer(std::string_view name, std::int64_t layer) const override {
        const ModelConfig& config = backbone_.config();
        return wants(name) && layer >= config.core_begin() && layer < config.core_end();
    }
    void on_tensor(std::string_view name, std::int64_t step, std::int64_t layer,
                   const at::Tensor& tensor) override {
        if (rows_.empty || !wants_layer(name, layer)) {
            return;
        }
        const HeadWeights head = backbone_.head();
        HeadRequest request;
        request.distribution = true;
        request.targets = select_rows(targets_, rows_.place);
        const at::Tensor states = backbone_.final_norm(recorded(tensor));
        const HeadResult read = read_out(states.to(head.head.scalar_type()), head, request);
        const auto keep = [&](const char* of, const at::Tensor& values) {
            if (values.defined()) {
                const std::int64_t column = layer - backbone_.config().core_begin();
                put(signals_.at(of).select(1, step).select(1, column), values);
            }
        };
        keep(signal::layer_nll, read.nll);
        keep(signal::layer_entropy, read.entropy);
        keep(signal::layer_max_probability, read.max_probability);
        keep(signal::layer_rank, read.rank);
        keep(signal::layer_argmax, read.argmax);
    }

private:
    const Backbone& backbone_;
    SignalTensors signals_;
    at::Tensor targets_;
};

/// Records what the routers of mixtures of experts choose.
class RouterRecorder final : public PartRecorder {
public:
    RouterRecorder(ExpertsConfig config, bool by_step, const SignalTensors& signals)
        : config_(std::move(config)), by_step_(by_step), signals_(signals) {}

    [[nodiscard]] bool wants(std::string_view name) const override {
        return name == signal::router_experts || name == signal::router_weights ||
               name == signal::router_probabilities;
    }
    void on_tensor(std::string_view name, std::int64_t step, std::int64_t layer,
                   const at::Tensor& tensor) override {
        const auto found = std::find(config_.layers.begin(), config_.layers.end(), layer);
        if (rows_.empty || !wants(name) || found == config_.layers.end()) {
            return;
        }
        const at::Tensor rows = recorded(tensor);
        const auto keep = [&](std::string_view of, const at::Tensor& values) {
            if (const auto all = signals_.find(std::string(of)); all != signals_.end()) {
                const at::Tensor of_step = by_step_ ? all->second.select(1, step) : all->second;
                put(of_step.select(1, found - config_.layers.begin()), values);
            }
        };
        keep(name, rows);
        if (name != signal::router_probabilities) {
            return;
        }
        const std::int64_t k = config_.chosen;
        const at::Tensor largest = std::get<0>(at::topk(rows, std::min(k + 1, config_.count), 1));
        const at::Tensor chosen = largest.narrow(1, 0, k);
        const at::Tensor last = chosen.select(1, k - 1);
        keep(signal::router_entropy, -at::xlogy(rows, rows).sum(1));
        keep(signal::router_mass, chosen.sum(1));
        keep(signal::router_margin, k < config_.count ? last - largest.select(1, k) : last);
    }

private:
    ExpertsConfig config_;
    bool by_step_;
    SignalTensors signals_;
};

class StateRecorder final : public PartRecorder {
public:
    StateRecorder(StateChoice choice, at::Tensor values)
        : choice_(std::move(choice)), values_(std::move(values)) {}

    [[nodiscard]] bool wants(std::string_view name) const override {
        return name == "layer_output" && !choice_.layers.empty();
    }
    [[nodiscard]] bool wants_layer(std::string_view name, std::int64_t layer) const override {
        return wants(name) && std::binary_search(choice_.layers.begin(), choice_.layers.end(), layer);
    }
    void on_tensor(std::string_view name, std::int64_t step, std::int64_t layer,
                   const at::Tensor& tensor) override {
        if (!rows_.empty && wants_layer(name, layer)) {
            const auto column = std::lower_bound(choice_.layers.begin(), choice_.layers.end(), layer);
            put(values_.select(1, step).select(1, column - choice_.layers.begin()), recorded(tensor));
        }
    }
    void step_ran(const Slots& slots) override {
        if (!rows_.empty && choice_.layers.empty()) {
            put(values_.select(1, slots.step), recorded(slots.hidden));
        }
    }

private:
    StateChoice choice_;
    at::Tensor values_;
};

/// Records the weights of depth mixing, which the run computes anyway.
class DepthRecorder final : public PartRecorder {
public:
    DepthRecorder(const ModelConfig& config, const SignalTensors& signals)
        : config_(config), columns_(config_), signals_(signals) {}

    [[nodiscard]] bool wants(std::string_view name) const override {
        return signals_.contains(std::string(name));
    }

    void on_tensor(std::string_view name, std::int64_t, std::int64_t layer,
                   const at::Tensor& tensor) override {
        // Keep the tensor without a copy: it is made for listeners and not overwritten.
        waiting_[{std::string(name), layer}] = tensor;
    }

    /// Writes the tensors that came since the last call, as values of this step.
    void step_ran(const Slots& slots) override {
        if (!rows_.empty) {
            place(slots.hidden.size(0), slots.step);
        }
        waiting_.clear();
    }

private:
    void place(std::int64_t slots, std::int64_t step) {
        if (config_.depth.kind == DepthMixing::depth_attention) {
            // A layer without sources sends no tensor. Its own value has the weight 1.
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
                continue; // a tensor of another pass
            }
            const auto& [name, layer] = heard;
            const at::Tensor rows = recorded(tensor);
            const at::Tensor target = signals_.at(name).select(1, step).select(1, layer);
            if (config_.depth.kind == DepthMixing::depth_attention) {
                put(target, spread(step, layer, rows));
            } else if (config_.depth.kind == DepthMixing::attnres) {
                // The running stream is always the last column, even if there are fewer snapshots so far.
                const std::int64_t count = rows.size(1) - 1;
                put(target.narrow(1, 0, count), rows.narrow(1, 0, count));
                put(target.select(1, target.size(1) - 1), rows.select(1, count));
            } else {
                put(target, rows);
            }
        }
    }

    /// Moves the weights of a layer's sources and its own value, [n, head, source], to the signal's columns,
    /// [n, column, head]. Copies sources with consecutive columns together.
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

std::vector<std::unique_ptr<PartRecorder>> part_recorders(const Backbone& backbone, const Method& method,
                                                          const RunPlan& plan, const ReportedTokens& reported,
                                                          const SignalTensors& signals) {
    const ModelConfig& config = backbone.config();
    std::vector<std::unique_ptr<PartRecorder>> parts;
    SignalTensors of_depth;
    for (const char* name :
         {signal::depth_weights, signal::mhc_read, signal::mhc_write, signal::attnres_weights}) {
        if (const auto found = signals.find(name); found != signals.end()) {
            of_depth.insert(*found);
        }
    }
    if (!of_depth.empty()) {
        parts.push_back(std::make_unique<DepthRecorder>(config, of_depth));
    }
    if (!plan.attention.none() && reported.count > 0) {
        parts.push_back(attention_recorder(plan.attention, signals.at(signal::attention), reported.place));
    }
    if (plan.states) {
        parts.push_back(std::make_unique<StateRecorder>(*plan.states, signals.at(signal::state)));
    }
    if (plan.lens) {
        parts.push_back(std::make_unique<LensRecorder>(backbone, signals, reported.targets));
    }
    if (plan.experts != RecordedExperts::none) {
        parts.push_back(
            std::make_unique<RouterRecorder>(config.experts, !method.layers_are_steps(), signals));
    }
    return parts;
}

} // namespace ponderscope
