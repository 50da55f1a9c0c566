// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/adaptive_latent_cot.h"

#include "core/base/error.h"

#include <ATen/ATen.h>

#include <string>

namespace ponderscope {

std::vector<TensorSpec> AdaptiveLatentCot::tensors(const ModelConfig& config) {
    if (config.ponder.max_steps == 0) {
        return {};
    }
    return {{"pondering.router.weight", {1, config.hidden_size}, TensorSpec::Init::normal, 0.02, {}, 0},
            {"pondering.router.bias", {1}, TensorSpec::Init::constant, 0.0, {}, 0}};
}

AdaptiveLatentCot::AdaptiveLatentCot(const ModelConfig& config, const Parameters& parameters)
    : Method(config),
      weight_(parameters.find("pondering.router.weight")),
      bias_(parameters.find("pondering.router.bias")) {
    if (max_steps() == 0) {
        return;
    }
    const std::int64_t rows = weight_.size(0);
    if ((rows != 1 && rows != max_steps()) || bias_.size(0) != rows) {
        throw InputError("pondering.router.weight must have 1 row or one for each of the " +
                         std::to_string(max_steps()) +
                         " steps, and pondering.router.bias as many elements; found " + std::to_string(rows) +
                         " and " + std::to_string(bias_.size(0)) + ".");
    }
}

bool AdaptiveLatentCot::halts() const {
    return config_.threshold > 0 && max_steps() > 0;
}

Decision AdaptiveLatentCot::decide(const Slots& slots) const {
    Decision decision;
    const at::Tensor reach = slots.carry; // r_k; 1 at step 0
    if (slots.last) {
        decision.mass_stop = reach;
        return decision;
    }
    const std::int64_t row = weight_.size(0) == 1 ? 0 : slots.step;
    const at::Tensor logit =
        at::linear(slots.hidden, weight_.narrow(0, row, 1), bias_.narrow(0, row, 1)).squeeze(1);
    const at::Tensor go = at::sigmoid(logit.to(at::kFloat));
    decision.value = go;
    decision.carry = reach.defined() ? reach * go : go;
    decision.mass_on = reach.defined() ? reach * (1 - go) : 1 - go;
    if (config_.remainder == Remainder::drop) {
        decision.mass_stop = decision.mass_on;
    } else {
        decision.mass_stop = reach; // undefined at step 0: 1
    }
    if (halts()) {
        decision.go_on = decision.carry >= config_.threshold;
    }
    return decision;
}

std::vector<SignalInfo> AdaptiveLatentCot::signals() const {
    return {{signal::gate,
             {"token", "step"},
             "",
             "Router",
             "g of adaptive latent CoT after each step: how much of what reached it goes on."}};
}

std::int64_t AdaptiveLatentCot::decision_flops(std::int64_t) const {
    return 2 * hidden_size_;
}

} // namespace ponderscope
