// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include "core/base/error.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <string>

namespace ponderscope {

namespace {

/// Adaptive latent chain of thought (arXiv 2602.08220, methods.md section 7): two-dimensional visibility. A
/// slot reads the state of the previous slot. A router decides after each slot.
///   g_k = sigmoid(w·h^k + b);   r_0 = 1, r_{k+1} = r_k g_k;   slot (t, k+1) runs iff r_{k+1} >= tau
///   masses: r_k (1 - g_k) for k < K_t, and r_{K_t} at K_t (`remainder` "drop": also r (1 - g), if K_t < K)
class AdaptiveLatentCot final : public Method {
public:
    AdaptiveLatentCot(const ModelConfig& config, const Parameters& parameters);
    static std::vector<TensorSpec> tensors(const ModelConfig& config);

    [[nodiscard]] VisibilityRule visibility() const override { return VisibilityRule::two_dimensional; }
    [[nodiscard]] bool halts() const override { return config_.threshold > 0 && max_steps() > 0; }
    [[nodiscard]] bool mixes_states() const override { return max_steps() > 0; }
    [[nodiscard]] Decision decide(const Slots& slots) const override;
    [[nodiscard]] at::Tensor penalty(const TrainingRun& run) const override;
    [[nodiscard]] std::vector<SignalInfo> signals() const override {
        const std::vector<std::string> axes{"token", "step"};
        return {{signal::gate, axes, "", "Router",
                 "g of adaptive latent CoT after each step: the share of the arriving mass that continues."},
                {signal::reach, axes, "", "Reach",
                 "r of adaptive latent CoT: the product of the router's values so far."}};
    }
    [[nodiscard]] std::int64_t decision_flops(std::int64_t) const override { return 2 * hidden_size_; }

private:
    Fp32Linear router_; ///< one row for all steps, or K rows: row k decides after step k
};

std::vector<TensorSpec> AdaptiveLatentCot::tensors(const ModelConfig& config) {
    if (config.ponder.max_steps == 0) {
        return {};
    }
    return {{"pondering.router.weight", {1, config.embed_dim}, TensorSpec::Init::normal, 0.02, {}, 0},
            {"pondering.router.bias", {1}, TensorSpec::Init::constant, 0.0, {}, 0}};
}

AdaptiveLatentCot::AdaptiveLatentCot(const ModelConfig& config, const Parameters& parameters)
    : Method(config) {
    if (max_steps() == 0) {
        return;
    }
    const at::Tensor& weight = parameters.at("pondering.router.weight");
    const at::Tensor& bias = parameters.at("pondering.router.bias");
    const std::int64_t rows = weight.size(0);
    if ((rows != 1 && rows != max_steps()) || bias.size(0) != rows) {
        throw InputError(
            ErrorId::checkpoint_tensor,
            "pondering.router.weight must have 1 row or one for each of the " + std::to_string(max_steps()) +
                " steps, and pondering.router.bias as many elements, found " + std::to_string(rows) +
                " rows and " + std::to_string(bias.size(0)) + " elements; get the checkpoint again.");
    }
    router_ = Fp32Linear(weight, bias);
}

Decision AdaptiveLatentCot::decide(const Slots& slots) const {
    Decision decision;
    const at::Tensor reach = slots.carry; // r_k; 1 at step 0
    decision.notes = {{signal::reach, reach.defined() ? reach
                                                      : at::ones({slots.hidden.size(0)},
                                                                 slots.hidden.options().dtype(at::kFloat))}};
    if (slots.last) {
        decision.mass_stop = reach;
        return decision;
    }
    const std::int64_t row = router_.weight().size(0) == 1 ? 0 : slots.step;
    const at::Tensor go = at::sigmoid(router_(slots.hidden, row, 1).squeeze(1));
    decision.value = go;
    decision.carry = reach.defined() ? reach * go : go;
    decision.compared = decision.carry;
    decision.mass_on = reach.defined() ? reach * (1 - go) : 1 - go;
    if (config_.remainder == Remainder::drop) {
        decision.mass_stop = decision.mass_on;
    } else {
        decision.mass_stop = reach; // undefined at step 0, which means 1
    }
    if (halts()) {
        decision.go_on = decision.carry >= config_.threshold;
    }
    return decision;
}

/// Mean, over tokens with a target, of the sum of pi_k^beta r_k g_k over the token's decisions, including the
/// decision to stop. pi_k: the target's probability in the read-out of h^k, without gradient.
at::Tensor AdaptiveLatentCot::penalty(const TrainingRun& run) const {
    at::Tensor reach = at::ones({run.tokens}, run.head.head.options().dtype(at::kFloat).requires_grad(false));
    at::Tensor sum = at::zeros_like(reach);
    for (const StepStates& states : run.states) {
        if (!states.value.defined()) {
            break;
        }
        const at::Tensor tokens =
            states.tokens.defined() ? states.tokens : at::arange(run.tokens, run.targets.options());
        const at::Tensor targets = run.targets.index_select(0, tokens);
        const at::Tensor on = reach.index_select(0, tokens) * states.value; // r_{k+1}
        at::Tensor weight = at::ones_like(on).detach();
        if (run.settings.beta != 0) {
            const at::NoGradGuard no_gradient;
            HeadRequest request;
            request.targets = targets;
            const at::Tensor nll =
                read_out(states.hidden.detach().to(run.head.head.scalar_type()), run.head, request).nll;
            weight = at::where(targets >= 0, at::exp(nll * -run.settings.beta), at::zeros_like(nll));
        }
        const at::Tensor counted = at::where(targets >= 0, weight * on, at::zeros_like(on));
        sum = at::index_add(sum, 0, tokens, counted);
        reach = at::index_copy(reach, 0, tokens, on);
    }
    return sum.sum() / run.targets.ge(0).sum().clamp_min(1);
}

} // namespace

MethodEntry adaptive_latent_cot_method() {
    return MethodEntry::of<AdaptiveLatentCot>(MethodKind::adaptive_latent_cot);
}

} // namespace ponderscope
