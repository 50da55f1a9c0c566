// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include <ATen/ATen.h>

#include <cmath>

namespace ponderscope {

namespace {

/// Ouro / LoopLM (arXiv 2510.25741, methods-released.md section 2). The normed state enters the next pass.
///   z^k = w·h^k + b;   lambda_k = sigmoid(z^k);   p_k = lambda_k Π_{j<k} (1 - lambda_j), and p_K =
///   Π_{j<K} (1 - lambda_j);   cdf_k = p_0 + ... + p_k, in fp32;   a token is read out at the first k with
///   cdf_k >= tau, else at K;   `early_exit_step` instead reads out every token at this step
class Ouro final : public Method {
public:
    Ouro(const ModelConfig& config, const Parameters& parameters)
        : Method(config),
          gate_(parameters.at("model.early_exit_gate.weight"), parameters.at("model.early_exit_gate.bias")) {
        if (const auto step = config_.own.find("exit_step"); step != config_.own.end()) {
            exit_step_ = static_cast<std::int64_t>(step->second);
        }
    }

    static std::vector<TensorSpec> tensors(const ModelConfig& config) {
        const char* const remedy =
            "the file is no Ouro checkpoint, or one without its gate: --method looped runs every step";
        std::vector<TensorSpec> specs{
            {"model.early_exit_gate.weight", {1, config.embed_dim}, TensorSpec::Init::normal, 0.02},
            {"model.early_exit_gate.bias", {1}, TensorSpec::Init::constant, 0.0}};
        for (TensorSpec& spec : specs) {
            spec.remedy = remedy;
        }
        return specs;
    }

    [[nodiscard]] bool halts() const override {
        return max_steps() > 0 && (exit_step_ || !std::isinf(config_.threshold));
    }
    [[nodiscard]] bool values_last_step() const override { return true; }

    [[nodiscard]] Decision decide(const Slots& slots) const override {
        Decision decision;
        const at::Tensor lambda = at::sigmoid(gate_(slots.hidden).squeeze(1));
        const at::Tensor left = slots.carry.defined() ? slots.carry.select(1, 0) : at::ones_like(lambda);
        const at::Tensor before = slots.carry.defined() ? slots.carry.select(1, 1) : at::zeros_like(lambda);
        const at::Tensor p = slots.last ? left : lambda * left;
        const at::Tensor cdf = before + p;
        decision.value = lambda;
        decision.compared = cdf;
        decision.carry = at::stack({left * (1 - lambda), cdf}, 1);
        decision.expected_mass = p;
        decision.notes = {{probability, p}, {cumulative, cdf}};
        if (exit_step_) {
            decision.go_on = at::full_like(lambda, slots.step < *exit_step_, at::kBool);
        } else if (halts()) {
            decision.go_on = cdf < config_.threshold;
        }
        return decision;
    }

    [[nodiscard]] std::vector<SignalInfo> signals() const override {
        const std::vector<std::string> axes{"token", "step"};
        return {
            {signal::gate, axes, "", "Exit gate",
             "lambda of Ouro after each pass: the probability of exiting, given no earlier exit."},
            {probability, axes, "probability", "Exit probability",
             "p of Ouro: the probability of exiting at each step; the last step has the rest."},
            {cumulative, axes, "probability", "Cumulative exit probability",
             "The running sum of Ouro's p, which is compared with the threshold."},
            {signal::expected_nll,
             {"token"},
             "nats",
             "NLL of the expected logits",
             "NLL of the next token by the logits of all steps, weighted with p: what Ouro is trained on, "
             "and an option of its generation. NaN where not every step ran.",
             DType::f32,
             SignalStorage::plain,
             false,
             true}};
    }

    [[nodiscard]] std::int64_t decision_flops(std::int64_t) const override { return 2 * hidden_size_; }

private:
    static constexpr const char* probability = "exit_probability";
    static constexpr const char* cumulative = "exit_cdf";
    std::optional<std::int64_t> exit_step_; ///< every token is read out at this step
    Fp32Linear gate_;                       ///< fp32, because in bf16 a sigmoid is 1 from logit 6 on
};

} // namespace

MethodEntry ouro_method() {
    return MethodEntry::of<Ouro>(MethodKind::ouro);
}

} // namespace ponderscope
