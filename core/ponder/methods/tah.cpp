// SPDX-License-Identifier: GPL-3.0-or-later

#include "core/ponder/method.h"

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace ponderscope {

namespace {

std::string gate_name(const std::string& name) {
    return "iter_decider." + name;
}

/// Think-at-Hard (arXiv 2511.08577, methods-released.md section 6).
///   S^k = L^0 + ... + L^k, the sum of the logits so far;   slot (t, k + 1) runs iff sigmoid(gate) > tau
///   it reads Σ_v softmax(the n largest of S^k)_v · W_emb[v] and uses the adapted weights
///   output: S^{K_t} = head(h^0 + ... + h^{K_t}), because the head is linear
class ThinkAtHard final : public Method {
public:
    ThinkAtHard(const ModelConfig& config, const Parameters& parameters, const Backbone& backbone);
    static std::vector<TensorSpec> tensors(const ModelConfig& config);

    [[nodiscard]] VisibilityRule visibility() const override { return VisibilityRule::two_dimensional; }
    [[nodiscard]] bool adapts(std::int64_t step) const override { return step > 0; }
    [[nodiscard]] const std::vector<std::int64_t>& wanted_blocks() const override { return blocks_wanted_; }
    [[nodiscard]] std::optional<MixtureWish> mixture() const override {
        return MixtureWish{1.0, config_.top_k};
    }
    [[nodiscard]] at::Tensor mixture_state(const Slots& slots, const Decision& decision) const override {
        return decision.carry.to(slots.hidden.scalar_type());
    }
    [[nodiscard]] at::Tensor next_input(const Slots&, const Decision&,
                                        const at::Tensor& expected) const override {
        return expected;
    }
    [[nodiscard]] bool halts() const override { return max_steps() > 0; }
    [[nodiscard]] bool mixes_states() const override { return max_steps() > 0; }
    [[nodiscard]] Decision decide(const Slots& slots) const override;
    [[nodiscard]] std::vector<SignalInfo> signals() const override {
        return {{signal::gate,
                 {"token", "step"},
                 "",
                 "Iteration gate",
                 "Sigmoid of Think-at-Hard's gate: a token runs again where it exceeds the threshold."}};
    }
    /// The head and the mixture.
    [[nodiscard]] std::int64_t input_flops() const override {
        return 2 * vocab_size_ * hidden_size_ + 2 * config_.top_k * hidden_size_;
    }
    [[nodiscard]] std::int64_t decision_flops(std::int64_t) const override { return 2 * gate_elements_; }

private:
    struct Norm {
        at::Tensor weight, bias;
        [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const {
            return at::layer_norm(x, {x.size(1)}, weight, bias, 1e-5);
        }
    };
    struct Linear {
        at::Tensor weight, bias;
        [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const { return at::linear(x, weight, bias); }
    };
    struct Block {
        Norm norm;
        Linear widen, narrow, change; ///< `change` undefined: equal widths
    };
    [[nodiscard]] at::Tensor largest_logits(const at::Tensor& sum) const;
    [[nodiscard]] at::Tensor gate(const at::Tensor& states, const at::Tensor& logits) const;

    ThinkAtHardConfig tah_;
    double threshold_;
    std::vector<std::int64_t> blocks_wanted_; ///< the blocks in gate_layers, without input and final norm
    std::int64_t layers_;
    HeadWeights head_;
    Norm input_norm_, output_norm_;
    Linear logits_projection_, combined_projection_, input_projection_, output_;
    std::vector<Block> blocks_;
    std::int64_t gate_elements_ = 0;
};

std::vector<TensorSpec> ThinkAtHard::tensors(const ModelConfig& config) {
    const ThinkAtHardConfig& tah = config.tah;
    const std::int64_t d = config.embed_dim;
    const auto layers = static_cast<std::int64_t>(tah.gate_layers.size());
    std::vector<TensorSpec> specs;
    const auto vector = [&](const std::string& name, std::int64_t size) {
        specs.push_back({gate_name(name), {size}, TensorSpec::Init::constant, 0.0});
    };
    const auto norm = [&](const std::string& name, std::int64_t size) {
        vector(name + ".weight", size);
        vector(name + ".bias", size);
    };
    const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
        specs.push_back({gate_name(name + ".weight"), {out, in}});
        vector(name + ".bias", out);
    };
    if (tah.normalise_input) {
        norm("layer_norm_hidden_states", layers * d);
    }
    linear("logits_projection", d, tah.gate_logits);
    const std::vector<std::int64_t>& widths = tah.gate_widths;
    linear("combined_projection", widths.front(), (layers + 1) * d);
    linear("backbone.input_projection", widths.front(), widths.front());
    for (std::size_t i = 0; i < widths.size(); ++i) {
        const std::int64_t in = widths[i];
        const std::int64_t out = i + 1 < widths.size() ? widths[i + 1] : in;
        const std::string name = "backbone.blocks." + std::to_string(i) + ".";
        norm(name + "layer_norm", in);
        linear(name + "mlp.0", in * tah.gate_expansion, in);
        linear(name + "mlp.3", out, in * tah.gate_expansion);
        if (in != out) {
            linear(name + "dim_change", out, in);
        }
    }
    norm("backbone.output_layer.0", widths.back());
    linear("backbone.output_layer.1", 1, widths.back());
    if (tah.threshold_in_file) {
        specs.push_back({gate_name("threshold"), {}, TensorSpec::Init::constant, 0.5});
    }
    for (TensorSpec& spec : specs) {
        spec.remedy = "the gate and tah_config.json do not belong together";
    }
    return specs;
}

ThinkAtHard::ThinkAtHard(const ModelConfig& config, const Parameters& parameters, const Backbone& backbone)
    : Method(config),
      tah_(config.tah),
      threshold_(config.ponder.threshold),
      layers_(config.layers),
      head_(backbone.head()) {
    const auto tensor = [&](const std::string& name) {
        return parameters.at(gate_name(name)).to(at::kFloat); // decisions are made in fp32
    };
    const auto linear = [&](const std::string& name) -> Linear {
        Linear one{tensor(name + ".weight"), tensor(name + ".bias")};
        gate_elements_ += one.weight.numel();
        return one;
    };
    const auto norm = [&](const std::string& name) -> Norm {
        return {tensor(name + ".weight"), tensor(name + ".bias")};
    };
    if (tah_.normalise_input) {
        input_norm_ = norm("layer_norm_hidden_states");
    }
    if (tah_.threshold_in_file) {
        threshold_ = tensor("threshold").item<double>();
    }
    logits_projection_ = linear("logits_projection");
    combined_projection_ = linear("combined_projection");
    input_projection_ = linear("backbone.input_projection");
    for (std::size_t i = 0; i < tah_.gate_widths.size(); ++i) {
        const std::string name = "backbone.blocks." + std::to_string(i) + ".";
        Block block{norm(name + "layer_norm"), linear(name + "mlp.0"), linear(name + "mlp.3"), {}};
        if (parameters.contains(gate_name(name + "dim_change.weight"))) {
            block.change = linear(name + "dim_change");
        }
        blocks_.push_back(std::move(block));
    }
    output_norm_ = norm("backbone.output_layer.0");
    output_ = linear("backbone.output_layer.1");
    for (const std::int64_t layer : tah_.gate_layers) {
        if (layer > 0 && layer < layers_) {
            blocks_wanted_.push_back(layer - 1);
        }
    }
}

/// The largest logits of each row, in descending order: fp32 [n, topk]. Rows are computed in chunks, so that
/// their logits fit into memory.
at::Tensor ThinkAtHard::largest_logits(const at::Tensor& sum) const {
    const std::int64_t rows = std::max<std::int64_t>(1, (std::int64_t{64} << 20) / (4 * head_.head.size(0)));
    std::vector<at::Tensor> parts;
    for (std::int64_t begin = 0; begin < sum.size(0); begin += rows) {
        const at::Tensor part = sum.narrow(0, begin, std::min(rows, sum.size(0) - begin));
        parts.push_back(std::get<0>(at::topk(full_logits(part, head_), tah_.gate_logits, 1)));
    }
    return at::cat(parts);
}

at::Tensor ThinkAtHard::gate(const at::Tensor& states, const at::Tensor& logits) const {
    const at::Tensor shown = tah_.normalise_input ? input_norm_(states) : states;
    const at::Tensor values = tah_.normalise_input ? at::softmax(logits, 1) : logits;
    at::Tensor y = input_projection_(combined_projection_(at::cat({shown, logits_projection_(values)}, 1)));
    for (const Block& block : blocks_) {
        const at::Tensor inside = block.narrow(at::gelu(block.widen(block.norm(y))));
        y = (block.change.weight.defined() ? block.change(y) : y) + inside;
    }
    return at::sigmoid(output_(output_norm_(y)).squeeze(1));
}

Decision ThinkAtHard::decide(const Slots& slots) const {
    Decision decision;
    const at::Tensor state = slots.hidden.to(at::kFloat);
    decision.carry = slots.carry.defined() ? slots.carry + state : state;
    decision.mass_on = at::ones({state.size(0)}, state.options());
    decision.mass_stop = decision.mass_on;
    if (slots.last) {
        return decision;
    }
    std::vector<at::Tensor> states;
    std::size_t next = 0;
    for (const std::int64_t layer : tah_.gate_layers) {
        states.push_back((layer == 0         ? slots.input
                          : layer == layers_ ? slots.hidden
                                             : slots.blocks[next])
                             .to(at::kFloat));
        next += layer > 0 && layer < layers_ ? 1 : 0;
    }
    decision.value = gate(at::cat(states, 1), largest_logits(decision.carry));
    decision.go_on = decision.value > threshold_;
    return decision;
}

} // namespace

MethodEntry tah_method() {
    return MethodEntry::of<ThinkAtHard>(MethodKind::tah);
}

} // namespace ponderscope
