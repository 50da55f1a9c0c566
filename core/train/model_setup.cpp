// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/trainer_impl.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/checkpoint/method_info.h"
#include "core/ponder/engine/model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>

namespace ponderscope {

namespace {

/// Name endings of the matrices that add to the residual stream, for the trainable architectures.
constexpr std::array<std::string_view, 4> residual_outputs{
    "attention.dense.weight", "mlp.dense_4h_to_h.weight", "self_attn.o_proj.weight", "mlp.down_proj.weight"};

std::string class_of(const std::string& model_type) {
    return model_type == "llama" ? "LlamaForCausalLM" : "GPTNeoXForCausalLM";
}

/// Whether the config ties embedding and head, but the files have two different tables.
bool holds_two_tables(const Checkpoint& checkpoint) {
    ParameterLayout layout = parameter_layout(checkpoint.config);
    if (!layout.tied) {
        return false;
    }
    std::erase_if(layout.tensors, [&](const TensorSpec& tensor) {
        return tensor.name != layout.embedding && tensor.name != layout.head;
    });
    return !Parameters::load(layout, checkpoint, {at::kCPU}, at::kFloat).tied();
}

/// Names of the tensors that a model has without its method and its depth mixing.
std::set<std::string> plain_tensors(ModelConfig config) {
    const bool norms = config.qk_norm || (config.depth.use_qk_norm && config.depth.kind == DepthMixing::none);
    config.ponder = {};
    config.depth = {};
    config.depth.use_qk_norm = norms;
    std::set<std::string> names;
    for (const auto& tensor : parameter_layout(config).tensors) {
        names.insert(tensor.name);
    }
    return names;
}

} // namespace

nlohmann::json complete_config(const Recipe& recipe, const Tokenizer& tokenizer) {
    nlohmann::json config = recipe.model;
    const auto given = [&](const char* key) { return config.contains(key) && !config.at(key).is_null(); };
    if (!recipe.start.empty()) {
        if (holds_two_tables(Checkpoint::open(recipe.start))) {
            config["tie_word_embeddings"] = false;
        }
    } else {
        const nlohmann::json fresh{{"vocab_size", tokenizer.size()},
                                   {"max_position_embeddings", recipe.context},
                                   {"architectures", {class_of(config.at("model_type").get<std::string>())}}};
        for (const auto& [key, value] : fresh.items()) {
            if (!given(key.c_str())) {
                config[key] = value;
            }
        }
    }
    if (!recipe.document_end.empty()) {
        if (const auto end = tokenizer.id_of(recipe.document_end)) {
            // Like GPT-NeoX, use one token for the start and the end of texts. Its reader needs both keys.
            for (const char* key : {"bos_token_id", "eos_token_id"}) {
                if (!given(key)) {
                    config[key] = *end;
                }
            }
        }
    }
    config.erase("dtype"); // the newer name of torch_dtype
    config["torch_dtype"] = recipe.output_dtype == DType::bf16 ? "bfloat16" : "float32";
    return config;
}

void require_trainable(const Checkpoint& start) {
    const MethodInfo& info = method_info(start.config.ponder.method);
    if (info.untrained != nullptr) {
        throw InputError(ErrorId::usage_unsuited, start.folder / "config.json",
                         "a checkpoint of a method that is trained here (" +
                             method_names([](const MethodInfo& one) { return one.untrained == nullptr; }) +
                             ")",
                         "one of " + to_string(info.kind) + ", " + info.untrained,
                         "train it with its authors' code and record the result");
    }
    if (start.config.scales.logit_softcap) {
        throw InputError(ErrorId::usage_unsuited, start.folder / "config.json",
                         "logits without a softcap, because training does not compute its gradient",
                         "a softcap of " + rounded(*start.config.scales.logit_softcap),
                         "train it with its authors' code and record the result");
    }
}

ModelConfig model_config_of(const Recipe& recipe, const nlohmann::json& config, const Tokenizer& tokenizer) {
    const std::string source = recipe.source.string() + " (model)";
    ModelConfig result = parse_model_config(config, source);
    try {
        (void)parameter_layout(result);
    } catch (const InputError& error) {
        throw InputError(ErrorId::json_value, source + ": " + error.what());
    }
    if (result.vocab_size < tokenizer.size()) {
        throw InputError(ErrorId::training_recipe, recipe.source,
                         "a model.vocab_size of at least " + std::to_string(tokenizer.size()) +
                             ", the number of tokens in " + recipe.tokenizer.string(),
                         std::to_string(result.vocab_size), "correct it, or name the model's own tokenizer");
    }
    if (result.max_positions < recipe.context) {
        throw InputError(ErrorId::training_recipe, recipe.source,
                         "a training.context of at most the model's " + std::to_string(result.max_positions) +
                             " positions",
                         std::to_string(recipe.context), "correct one of them");
    }
    return result;
}

ParameterLayout starting_layout(const Recipe& recipe, const ModelConfig& config) {
    ParameterLayout layout = parameter_layout(config);
    for (auto& tensor : layout.tensors) {
        if (tensor.init != TensorSpec::Init::normal) {
            continue;
        }
        tensor.value = recipe.initial_deviation;
        const bool residual =
            std::any_of(residual_outputs.begin(), residual_outputs.end(),
                        [&](std::string_view ending) { return tensor.name.ends_with(ending); });
        if (residual) {
            tensor.value /= std::sqrt(2.0 * static_cast<double>(config.layers));
        }
    }
    return layout;
}

Parameters starting_parameters(const Recipe& recipe, const ModelConfig& config, at::Device device,
                               const std::function<void(const std::string&)>& notice,
                               const std::stop_token& stop) {
    ParameterLayout layout = starting_layout(recipe, config);
    if (recipe.start.empty()) {
        return Parameters::initialise(layout, recipe.seed, device);
    }
    const Checkpoint checkpoint = Checkpoint::open(recipe.start);
    const std::set<std::string> plain = plain_tensors(config);
    const PonderConfig& before = checkpoint.config.ponder;
    const bool same_method = before.method == config.ponder.method;
    ParameterLayout there = layout;
    there.tensors.clear();
    std::string begun;
    for (TensorSpec& tensor : layout.tensors) {
        const TensorView* view = checkpoint.weights.find(tensor.name);
        const bool meant = view != nullptr && (same_method || !tensor.name.starts_with("pondering."));
        if (!meant && !plain.contains(tensor.name)) {
            begun += (begun.empty() ? "" : ", ") + tensor.name;
            continue;
        }
        if (tensor.flexible_axis >= 0 && view->shape.size() == tensor.shape.size()) {
            const auto axis = static_cast<std::size_t>(tensor.flexible_axis);
            tensor.shape[axis] = view->shape[axis];
        }
        there.tensors.push_back(tensor);
    }
    const auto load = [&] {
        try {
            return Parameters::load(there, checkpoint, {at::kCPU}, at::kFloat, {}, stop);
        } catch (const InputError& error) {
            if (!same_method || before.max_steps == config.ponder.max_steps) {
                throw;
            }
            throw InputError(ErrorId::json_value,
                             error.what() + (" The recipe's max_steps is " +
                                             std::to_string(config.ponder.max_steps) + ", the checkpoint's " +
                                             std::to_string(before.max_steps) + "; set both to one number."));
        }
    };
    const Parameters taken = load();
    Parameters fresh = Parameters::initialise(layout, recipe.seed, device);
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : fresh.items()) {
        const at::Tensor from = taken.find(name);
        if (!from.defined()) {
            continue;
        }
        if (!at::isfinite(from).all().item<bool>()) {
            throw InputError(ErrorId::checkpoint_damaged, recipe.start, "finite weights",
                             "infinities or NaN in " + name, "get the checkpoint again");
        }
        tensor.copy_(from);
    }
    for (const Notice& one : taken.notices()) {
        notice(one.text);
    }
    notice(begun.empty() ? "Every weight comes from " + recipe.start.string() + "."
                         : "Not taken from " + recipe.start.string() + " but begun anew: " + begun + ".");
    return fresh;
}

} // namespace ponderscope
