// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef PONDERSCOPE_METHODS_COMPUTE
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/words.h"
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/file_kind.h"
#include "core/checkpoint/method_info.h"
#include "core/checkpoint/peculiarities.h"
#include "core/checkpoint/safetensors.h"

#include <algorithm>

namespace ponderscope {

namespace {

namespace fs = std::filesystem;

const char* const cannot_run = "this build cannot run the checkpoint";
const char* const adapter_config = "lora/adapter_config.json";
const char* const adapter_weights = "lora/adapter_model.safetensors";
const char* const gate_weights = "iter_decider.safetensors";

/// The gate is shipped as a pickle, which is never opened here.
void require_gate(const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder / gate_weights, error)) {
        return;
    }
    if (fs::exists(folder / "iter_decider.bin", error)) {
        throw InputError(
            folder / "iter_decider.bin", std::string("the gate as ") + gate_weights,
            "a PyTorch pickle, which can run any code when it is opened and is never opened here",
            "if you trust where it comes from, convert it, tensors only: python3 "
            "resources/convert_pickle.py " +
                (folder / "iter_decider.bin").string());
    }
    throw InputError(
        folder, std::string("a gate, ") + gate_weights, "none",
        "convert the checkpoint's iter_decider.bin with resources/convert_pickle.py, or open the "
        "model without it by --method vanilla");
}

std::vector<std::int64_t> whole_numbers(const JsonObject& json, std::string_view key, std::int64_t min,
                                        std::int64_t max) {
    std::vector<std::int64_t> values;
    for (const nlohmann::json& value : json.required_array(key)) {
        if (!value.is_number_integer() ||
            (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(max)) ||
            value.get<std::int64_t>() < min || value.get<std::int64_t>() > max) {
            json.fail(key, "whole numbers from " + std::to_string(min) + " to " + std::to_string(max));
        }
        values.push_back(value.get<std::int64_t>());
    }
    if (values.empty()) {
        json.fail(key, "at least one number");
    }
    return values;
}

bool is_nothing(const nlohmann::json& value) {
    return value.is_null() || value == false || (value.is_structured() && value.empty());
}

void read_adapters(const fs::path& folder, ModelConfig& config) {
    const fs::path path = folder / adapter_config;
    const nlohmann::json document = read_json_file(path);
    const JsonObject json(document, path);
    for (const char* const key :
         {"use_dora", "use_rslora", "rank_pattern", "alpha_pattern", "modules_to_save", "fan_in_fan_out"}) {
        const nlohmann::json* value = json.find(key);
        if (value != nullptr && !is_nothing(*value)) {
            json.fail(key, "nothing, since plain LoRA is all that is merged here,", cannot_run);
        }
    }
    if (json.text("bias").value_or("none") != "none") {
        json.fail("bias", "none", cannot_run);
    }
    config.tah.lora_rank = json.required_integer("r", 1, config_limits::width);
    config.tah.lora_alpha = json.required_number("lora_alpha");
    const SafetensorsFile file = SafetensorsFile::open(folder / adapter_weights);
    const std::string prefix = "base_model.model.";
    const std::string ending = ".lora_A.weight";
    for (const TensorView& view : file.tensors()) {
        const std::string& name = view.name;
        const bool block = name.starts_with(prefix + "model.layers.");
        if (!block || (!name.ends_with(ending) && !name.ends_with(".lora_B.weight"))) {
            throw InputError(folder / adapter_weights, "adapters of the layers' matrices only",
                             "tensor " + name, cannot_run);
        }
        if (name.ends_with(ending)) {
            config.tah.adapted.push_back(
                name.substr(prefix.size(), name.size() - prefix.size() - ending.size()));
        }
    }
    std::sort(config.tah.adapted.begin(), config.tah.adapted.end());
}

void read(const ConfigReader& reader, ModelConfig& config) {
    const fs::path folder = reader.json().source().parent_path();
    if (config.architecture != Architecture::llama && config.architecture != Architecture::mistral &&
        config.architecture != Architecture::qwen2 && config.architecture != Architecture::qwen3) {
        throw InputError(reader.json().source(), "a model of the Llama kind under tah_config.json",
                         to_string(config.architecture), cannot_run);
    }
    const nlohmann::json document = read_json_file(folder / "tah_config.json");
    const JsonObject json(document, folder / "tah_config.json");
    if (json.text("embedding_key").value_or("model.embed_tokens") != "model.embed_tokens") {
        json.fail("embedding_key", "model.embed_tokens", cannot_run);
    }
    if (const std::optional<std::string> decider = json.text("iter_decider"); decider != "MLPIterDecider") {
        json.fail(
            "iter_decider", "MLPIterDecider",
            "a checkpoint of the first training step has no gate to run: open it with --method vanilla");
    }
    if (json.text("eval_iter_decider").value_or("iter_decider") != "iter_decider") {
        json.fail("eval_iter_decider", "iter_decider", cannot_run);
    }
    PonderConfig& ponder = config.ponder;
    ponder.max_steps = json.required_integer("max_iter", 1, config_limits::steps) - 1;
    const nlohmann::json nothing = nlohmann::json::object();
    const JsonObject updater = json.object("input_updater_kwargs")
                                   .value_or(JsonObject(nothing, json.source(), "input_updater_kwargs"));
    ponder.top_k =
        std::min(updater.integer("topk", 1, config_limits::vocabulary).value_or(100), config.vocab_size);
    const JsonObject gate = json.required_object("iter_decider_kwargs");
    std::vector<std::string> unused;
    const ConfigReader numbers(gate, unused);
    ThinkAtHardConfig& tah = config.tah;
    tah.gate_logits = std::min(numbers.size("topk", 100, config_limits::vocabulary), config.vocab_size);
    tah.gate_layers = whole_numbers(gate, "hidden_states_layer_nums", 0, config.layers);
    tah.gate_widths = whole_numbers(gate, "hidden_dims", 1, config_limits::width);
    tah.gate_expansion = numbers.size("expansion_factor", 4, 1024);
    tah.normalise_input = numbers.flag("normalize_input", false);
    if (gate.integer("hidden_states_size").value_or(config.hidden_size) != config.hidden_size) {
        gate.fail("hidden_states_size",
                  "the hidden size of config.json, " + std::to_string(config.hidden_size) + ",");
    }
    // Where the key is absent, the tensor of that name in the gate's file counts.
    require_gate(folder);
    if (const std::optional<double> threshold = gate.number("threshold")) {
        ponder.threshold = *threshold;
    } else {
        ponder.threshold = 0.5;
        tah.threshold_in_file = true;
    }
    read_adapters(folder, config);
    config.companions = {{"tah_config.json", ""},
                         {adapter_config, ""},
                         {adapter_weights, "lora."},
                         {gate_weights, "iter_decider."}};
}

std::string peculiarity(const ModelConfig& config) {
    return "runs again where its gate exceeds " + rounded(config.ponder.threshold) + ", at most " +
           std::to_string(config.ponder.max_steps) + " times, with adapters on";
}

} // namespace

MethodInfo tah_info() {
    return {.kind = MethodKind::tah,
            .summary = "Hard tokens run again with adapters on, from a mixture of their likeliest words, and "
                       "the logits of the iterations add up (Think-at-Hard, arXiv 2511.08577)",
            .own_rule = {"gate", OwnRule::Form::value_at_k, OwnRule::Stops::at_most},
            .has_section = false,
            .any_steps = true,
            .sees_by_own_rule = true,
            .companion = "tah_config.json",
            .instead = {MethodKind::vanilla},
            .read = &read,
            .peculiarity = &peculiarity,
            .untrained = "whose gate learns from labels and whose weights lie in several files"};
}

} // namespace ponderscope

#else

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
///   slot (t, k + 1) reads Σ_v softmax(S^k over its n largest)_v · W_emb[v], S^k = L^0 + ... + L^k the
///   running sum of the logits, and runs through the adapted weights;   it runs iff sigmoid(gate) > tau;
///   S^{K_t} is the output, and since the head is linear that is head(h^0 + ... + h^{K_t})
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
    /// The mixture; the logits that it reads are those of the read-out that decides.
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
        Linear widen, narrow, change; ///< change undefined: the width stays
    };
    [[nodiscard]] at::Tensor largest_logits(const at::Tensor& sum) const;
    [[nodiscard]] at::Tensor gate(const at::Tensor& states, const at::Tensor& logits) const;

    ThinkAtHardConfig tah_;
    double threshold_;
    std::vector<std::int64_t> blocks_wanted_; ///< of gate_layers: those between input and final norm
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
        return parameters.at(gate_name(name)).to(at::kFloat); // decisions are fp32 in every dtype
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

/// Of each row, descending, fp32 [n, topk]; rows some at a time, so that logits fit into memory.
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
#endif
