// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/router_recorder.h"

#include "core/ponder/schedule/visibility.h"
#include "core/trace/column_labels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace ponderscope {

namespace {

struct RouterSignal {
    const char* name;
    const char* axis; ///< behind the layer; nullptr: none
    const char* unit;
    const char* title;
    const char* what;
};

constexpr RouterSignal router_signals[] = {
    {signal::router_experts, "choice", "", "Chosen experts",
     "Experts that the router chooses, by falling probability."},
    {signal::router_weights, "choice", "weight", "Weights of the chosen experts",
     "What the output of each chosen expert is multiplied by."},
    {signal::router_entropy, nullptr, "nats", "Router entropy",
     "Entropy of the router's probabilities over all experts."},
    {signal::router_mass, nullptr, "probability", "Chosen mass",
     "Sum of the router's probabilities of the chosen experts."},
    {signal::router_margin, nullptr, "probability", "Router margin",
     "Probability of the last chosen expert minus that of the first expert that is not chosen."},
    {signal::router_probabilities, "expert", "probability", "Router probabilities",
     "Probability of every expert."}};

std::vector<RouterSignal> kept(RecordedExperts what) {
    std::vector<RouterSignal> signals(std::begin(router_signals), std::end(router_signals));
    if (what != RecordedExperts::probabilities) {
        signals.pop_back();
    }
    return signals;
}

/// Of one token.
std::vector<std::int64_t> shape_of(const RouterSignal& signal, const ExpertsConfig& config,
                                   const Method& method) {
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(config.layers.size())};
    if (!method.layers_are_steps()) {
        shape.insert(shape.begin(), method.max_steps() + 1);
    }
    if (signal.axis != nullptr) {
        shape.push_back(signal.name == signal::router_probabilities ? config.count : config.chosen);
    }
    return shape;
}

/// Expert ids as bytes, if they and did_not_run fit into one.
DType stored_as(const RouterSignal& signal, const ExpertsConfig& config) {
    return signal.name != signal::router_experts ? DType::f16 : config.count <= 128 ? DType::i8 : DType::i16;
}

} // namespace

std::vector<SignalInfo> RouterRecorder::infos(const ModelConfig& config, const Method& method,
                                              RecordedExperts what) {
    std::vector<std::string> layers;
    for (const std::int64_t layer : config.experts.layers) {
        layers.push_back(std::to_string(layer));
    }
    std::vector<SignalInfo> infos;
    for (const RouterSignal& signal : kept(what)) {
        std::vector<std::string> axes{"token", "step", "layer"};
        if (method.layers_are_steps()) {
            axes.erase(axes.begin() + 1);
        }
        if (signal.axis != nullptr) {
            axes.emplace_back(signal.axis);
        }
        const std::string experts = " Experts: " + std::to_string(config.experts.count) + ".";
        infos.push_back({signal.name, std::move(axes), signal.unit, signal.title,
                         with_column_labels(signal.what + experts, layers),
                         stored_as(signal, config.experts)});
    }
    return infos;
}

std::int64_t RouterRecorder::token_bytes(const ModelConfig& config, const Method& method,
                                         RecordedExperts what) {
    std::int64_t bytes = 0;
    for (const RouterSignal& signal : kept(what)) {
        const std::vector<std::int64_t> shape = shape_of(signal, config.experts, method);
        bytes += std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()) *
                 static_cast<std::int64_t>(size_of(stored_as(signal, config.experts)));
    }
    return bytes;
}

RouterRecorder::RouterRecorder(const ModelConfig& config, const Method& method, RecordedExperts what,
                               std::int64_t count, at::Device device)
    : config_(config.experts), by_step_(!method.layers_are_steps()) {
    for (const RouterSignal& signal : kept(what)) {
        std::vector<std::int64_t> shape = shape_of(signal, config_, method);
        shape.insert(shape.begin(), count);
        const bool whole = !is_real(stored_as(signal, config_));
        // What no step fills did not run: layers behind an exit.
        const double empty = whole ? did_not_run : std::numeric_limits<double>::quiet_NaN();
        values_.emplace_back(
            signal.name,
            at::full(shape, empty, at::TensorOptions(whole ? at::kLong : at::kHalf).device(device)));
    }
}

bool RouterRecorder::wants(std::string_view name) const {
    return name == signal::router_experts || name == signal::router_weights ||
           name == signal::router_probabilities;
}

void RouterRecorder::put(const char* name, std::int64_t step, std::int64_t layer, const at::Tensor& rows) {
    for (auto& [signal, all] : values_) {
        if (signal == name) {
            const at::Tensor of_step = by_step_ ? all.select(1, step) : all;
            at::Tensor column = of_step.select(1, layer);
            const at::Tensor values = rows.to(column.scalar_type());
            rows_.place.defined() ? column.index_copy_(0, rows_.place, values) : column.copy_(values);
        }
    }
}

void RouterRecorder::heard(std::string_view name, std::int64_t step, std::int64_t layer,
                           const at::Tensor& tensor) {
    const auto found = std::find(config_.layers.begin(), config_.layers.end(), layer);
    if (rows_.empty || !wants(name) || found == config_.layers.end()) {
        return;
    }
    const std::int64_t place = found - config_.layers.begin();
    const at::Tensor rows = select_rows(tensor, rows_.local);
    if (name == signal::router_experts) {
        put(signal::router_experts, step, place, rows);
    } else if (name == signal::router_weights) {
        put(signal::router_weights, step, place, rows);
    } else {
        const std::int64_t k = config_.chosen;
        const at::Tensor largest = std::get<0>(at::topk(rows, std::min(k + 1, config_.count), 1));
        const at::Tensor chosen = largest.narrow(1, 0, k);
        const at::Tensor last = chosen.select(1, k - 1);
        put(signal::router_probabilities, step, place, rows);
        put(signal::router_entropy, step, place, -at::xlogy(rows, rows).sum(1));
        put(signal::router_mass, step, place, chosen.sum(1));
        put(signal::router_margin, step, place, k < config_.count ? last - largest.select(1, k) : last);
    }
}

} // namespace ponderscope
