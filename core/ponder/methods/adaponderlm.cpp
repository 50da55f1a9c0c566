// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include "core/base/error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace ponderscope {

namespace {

/// AdaPonderLM (arXiv 2603.01914, methods.md section 5): PonderLM's recurrence with a gate after each slot.
///   s^i = sigmoid(fc_out_i · gelu(fc_in_i · h^i));   slot (t, i+1) runs iff s^i >= tau;   E^{i+1} = E^i +
///   s^i · c·expected embedding
class AdaPonderLm final : public Method {
public:
    AdaPonderLm(const ModelConfig& config, const Parameters& parameters);
    static std::vector<TensorSpec> tensors(const ModelConfig& config);

    [[nodiscard]] at::Tensor first_input(const at::Tensor& embedded, const at::Tensor&) const override {
        return config_.multiply_start ? embedded * static_cast<double>(max_steps()) : embedded;
    }
    [[nodiscard]] std::optional<MixtureWish> mixture() const override {
        return MixtureWish{1.0, config_.top_k};
    }
    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision& decision,
                                        const at::Tensor& expected) const override {
        return slots.input + decision.value.unsqueeze(1).to(expected.scalar_type()) * expected;
    }
    [[nodiscard]] bool halts() const override { return config_.threshold > 0 && max_steps() > 0; }
    [[nodiscard]] Decision decide(const Slots& slots) const override;
    [[nodiscard]] at::Tensor penalty(const TrainingRun& run) const override;
    [[nodiscard]] std::vector<SignalInfo> signals() const override {
        return {{signal::gate,
                 {"token", "step"},
                 "",
                 "Gate",
                 "s of AdaPonderLM after each step: the token continues while s is at least the threshold."}};
    }
    [[nodiscard]] std::int64_t input_flops() const override { return mixture_flops(config_.top_k); }
    [[nodiscard]] std::int64_t decision_flops(std::int64_t step) const override {
        const Gate& one = gates_[static_cast<std::size_t>(step)];
        return 2 * (one.fc_in.weight().numel() + one.fc_out.weight().numel());
    }

private:
    struct Gate {
        Fp32Linear fc_in, fc_out;
    };
    std::vector<Gate> gates_;
};

std::string gate(std::int64_t step) {
    return "pondering.gates." + std::to_string(step) + ".";
}

std::vector<TensorSpec> AdaPonderLm::tensors(const ModelConfig& config) {
    const std::int64_t d = config.embed_dim;
    const std::int64_t width = 4 * d; // width of a new gate; a file may have another
    std::vector<TensorSpec> specs;
    for (std::int64_t i = 0; i < config.ponder.max_steps; ++i) {
        specs.push_back({gate(i) + "fc_in.weight", {width, d}, TensorSpec::Init::normal, 0.02, {}, 0});
        specs.push_back({gate(i) + "fc_in.bias", {width}, TensorSpec::Init::constant, 0.0, {}, 0});
        specs.push_back({gate(i) + "fc_out.weight", {1, width}, TensorSpec::Init::normal, 0.02, {}, 1});
        // The gates begin open: every token continues.
        specs.push_back({gate(i) + "fc_out.bias", {1}, TensorSpec::Init::constant, 2.0, {}, -1});
    }
    return specs;
}

AdaPonderLm::AdaPonderLm(const ModelConfig& config, const Parameters& parameters) : Method(config) {
    for (std::int64_t i = 0; i < max_steps(); ++i) {
        const auto linear = [&](const char* name) {
            return Fp32Linear(parameters.at(gate(i) + name + ".weight"),
                              parameters.at(gate(i) + name + ".bias"));
        };
        Gate one{linear("fc_in"), linear("fc_out")};
        const std::int64_t width = one.fc_in.weight().size(0);
        if (one.fc_in.bias().size(0) != width || one.fc_out.weight().size(1) != width) {
            throw InputError(
                ErrorId::checkpoint_tensor,
                "The tensors of gate " + std::to_string(i) + " do not fit each other: " + gate(i) +
                    "fc_in.weight has " + std::to_string(width) + " rows, fc_in.bias " +
                    std::to_string(one.fc_in.bias().size(0)) + " elements and fc_out.weight " +
                    std::to_string(one.fc_out.weight().size(1)) + " columns; get the checkpoint again.");
        }
        gates_.push_back(std::move(one));
    }
}

Decision AdaPonderLm::decide(const Slots& slots) const {
    if (slots.last) {
        return {};
    }
    const Gate& one = gates_[static_cast<std::size_t>(slots.step)];
    Decision decision;
    decision.value = at::sigmoid(one.fc_out(at::gelu(one.fc_in(slots.hidden))).squeeze(1));
    if (halts()) {
        decision.go_on = decision.value >= config_.threshold;
    }
    return decision;
}

/// Mean of the n smallest gate values of the batch (tokens x K values), n = floor(k_s tokens K + 0.5). After
/// a token halted, its remaining gates count as the constant 0.
at::Tensor AdaPonderLm::penalty(const TrainingRun& run) const {
    std::vector<at::Tensor> asked;
    for (const StepStates& states : run.states) {
        if (states.value.defined()) {
            asked.push_back(states.value);
        }
    }
    const at::Tensor none = at::zeros({}, run.head.head.options().dtype(at::kFloat).requires_grad(false));
    if (asked.empty()) {
        return none;
    }
    const at::Tensor values = at::cat(asked);
    const std::int64_t pool = run.tokens * max_steps();
    const auto smallest =
        static_cast<std::int64_t>(std::floor(run.settings.gate_share * static_cast<double>(pool) + 0.5));
    const std::int64_t wanted = std::min(smallest - (pool - values.numel()), values.numel());
    if (wanted <= 0) {
        return none; // the n smallest values are constants
    }
    const at::Tensor all = values.detach();
    const double cutoff = std::get<0>(at::kthvalue(all, wanted)).item<double>();
    const auto below = (all < cutoff).sum().item<std::int64_t>();
    // Values equal to the cutoff count partly, so that the weights sum to n.
    const double tie_share = static_cast<double>(wanted - below) / (all == cutoff).sum().item<double>();
    const at::Tensor chosen = values * (values < cutoff) + values * (values == cutoff) * tie_share;
    return chosen.sum() / static_cast<double>(smallest);
}

} // namespace

MethodEntry adaponderlm_method() {
    return MethodEntry::of<AdaPonderLm>(MethodKind::adaponderlm);
}

} // namespace ponderscope
