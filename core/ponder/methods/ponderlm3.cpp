// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

constexpr const char* router_weight = "pondering.router.weight";
constexpr const char* router_bias = "pondering.router.bias";
constexpr const char* probability = "router_probability";
constexpr const char* log_tail_mass = "router_log_tail_mass";

/// PonderLM-3 (arXiv 2603.02023, methods.md section 6): PonderLM-2's slots. A router reads h^0 and determines
/// all decisions of the token.
///   z = W h^0 + b;   s = softmax(z);   log w_k = logsumexp_{j>=k} z_j - logsumexp_j z_j
///   slot (t, k) runs iff w_k >= tau, and every query adds log w_k to the logit of its key
///   masses: s_k for k < K_t;  at K_t: w_{K_t} (`remainder` "last") or s_{K_t} ("drop")
class PonderLm3 final : public Method {
public:
    PonderLm3(const ModelConfig& config, const Parameters& parameters)
        : Method(config), router_(parameters.at(router_weight), parameters.at(router_bias)) {}

    static std::vector<TensorSpec> tensors(const ModelConfig& config) {
        const std::int64_t rows = config.ponder.max_steps + 1;
        return {{router_weight, {rows, config.embed_dim}, TensorSpec::Init::normal, 0.02, {}, -1},
                {router_bias, {rows}, TensorSpec::Init::constant, 0.0, {}, -1}};
    }

    [[nodiscard]] VisibilityRule visibility() const override { return VisibilityRule::interleaved; }
    [[nodiscard]] bool halts() const override { return config_.threshold > 0 && max_steps() > 0; }
    [[nodiscard]] bool mixes_states() const override { return max_steps() > 0; }

    [[nodiscard]] Decision decide(const Slots& slots) const override {
        Decision decision;
        // The carry is log s and log w of each token, [n, 2, K + 1].
        if (slots.step == 0) {
            const at::Tensor z = router_(slots.hidden);
            // Use log-sum-exp instead of 1 - cumsum, because it stays finite.
            const at::Tensor tail = at::logcumsumexp(z.flip(1), 1).flip(1);
            const at::Tensor all = tail.narrow(1, 0, 1);
            decision.carry = at::stack({z - all, tail - all}, 1);
            decision.notes = {{probability, decision.carry.select(1, 0).exp()},
                              {log_tail_mass, decision.carry.select(1, 1)}};
        } else {
            decision.carry = slots.carry;
        }
        const at::Tensor log_s = decision.carry.select(1, 0);
        const at::Tensor log_w = decision.carry.select(1, 1);
        decision.mass_on = log_s.select(1, slots.step).exp();
        decision.mass_stop =
            config_.remainder == Remainder::drop ? decision.mass_on : log_w.select(1, slots.step).exp();
        if (slots.last) {
            return decision;
        }
        decision.next_key_bias = log_w.select(1, slots.step + 1);
        decision.value = decision.next_key_bias.exp();
        if (halts()) {
            decision.go_on = decision.value >= config_.threshold;
        }
        return decision;
    }

    /// The expected number of steps: the mean over all tokens of the sum of w_k, k = 1..K.
    [[nodiscard]] at::Tensor penalty(const TrainingRun& run) const override {
        at::Tensor sum = at::zeros({}, router_.weight().options().requires_grad(false));
        for (const StepStates& states : run.states) {
            if (states.value.defined()) {
                sum = sum + states.value.sum(); // `value` is w_{k+1}
            }
        }
        return sum / static_cast<double>(run.tokens);
    }
    [[nodiscard]] bool halts_in_training() const override { return false; }

    [[nodiscard]] std::vector<SignalInfo> signals() const override {
        const std::vector<std::string> axes{"token", "step"};
        return {{signal::gate, axes, "", "Tail mass of the next step",
                 "w of PonderLM-3 after each step: the token continues while w is at least the threshold."},
                {probability, axes, "probability", "Router",
                 "s of PonderLM-3: the router's probability of each last step, from step 0's state.",
                 DType::f32, SignalStorage::plain, true},
                {log_tail_mass, axes, "nats", "Log tail mass",
                 "log w of PonderLM-3, which every query adds to the logit of this step's key.", DType::f32,
                 SignalStorage::plain, true}};
    }

    [[nodiscard]] std::int64_t decision_flops(std::int64_t step) const override {
        return step == 0 ? 2 * (max_steps() + 1) * hidden_size_ : 0;
    }

private:
    Fp32Linear router_;
};

} // namespace

MethodEntry ponderlm3_method() {
    return MethodEntry::of<PonderLm3>(MethodKind::ponderlm3);
}

} // namespace ponderscope
