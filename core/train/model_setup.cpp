// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/model_setup.h"

#include "core/base/error.h"
#include "core/base/files.h"
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

#include <stdlib.h>

namespace ponderscope {

namespace {

/// Endings of the matrices that write into the residual stream, in the layouts that can be trained.
constexpr std::array<std::string_view, 4> residual_outputs{
    "attention.dense.weight", "mlp.dense_4h_to_h.weight", "self_attn.o_proj.weight", "mlp.down_proj.weight"};

std::string class_of(const std::string& model_type) {
    return model_type == "llama" ? "LlamaForCausalLM" : "GPTNeoXForCausalLM";
}

/// A folder for one config.json, gone when the object is.
class PassingFolder {
public:
    PassingFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "ponderscope-recipe-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw EnvironmentError("No temporary folder could be made in " +
                                   std::filesystem::temp_directory_path().string() +
                                   "; set TMPDIR to a folder that can be written.");
        }
        path_ = name;
    }
    ~PassingFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    PassingFolder(const PassingFolder&) = delete;
    PassingFolder& operator=(const PassingFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

} // namespace

nlohmann::json complete_config(const Recipe& recipe, const Tokenizer& tokenizer) {
    nlohmann::json config = recipe.model;
    const auto given = [&](const char* key) { return config.contains(key) && !config.at(key).is_null(); };
    if (!given("vocab_size")) {
        config["vocab_size"] = tokenizer.size();
    }
    const auto& rows = config.at("vocab_size");
    if (rows.is_number_integer() && rows.get<std::int64_t>() < tokenizer.size()) {
        throw InputError(recipe.source,
                         "a model.vocab_size of at least " + std::to_string(tokenizer.size()) +
                             ", the tokens of " + recipe.tokenizer.string(),
                         rows.dump(), "correct it, or leave it out");
    }
    if (!given("max_position_embeddings")) {
        config["max_position_embeddings"] = recipe.context;
    }
    const auto& positions = config.at("max_position_embeddings");
    if (positions.is_number_integer() && positions.get<std::int64_t>() < recipe.context) {
        throw InputError(recipe.source,
                         "a training.context of at most model.max_position_embeddings, " + positions.dump(),
                         std::to_string(recipe.context), "correct one of them");
    }
    if (!recipe.document_end.empty()) {
        if (const auto end = tokenizer.id_of(recipe.document_end)) {
            // GPT-NeoX begins and ends texts with one token; its reader expects both keys.
            for (const char* key : {"bos_token_id", "eos_token_id"}) {
                if (!given(key)) {
                    config[key] = *end;
                }
            }
        }
    }
    if (!given("architectures")) {
        config["architectures"] = {class_of(config.at("model_type").get<std::string>())};
    }
    config.erase("dtype"); // the newer name of the same
    config["torch_dtype"] = recipe.output_dtype == DType::bf16 ? "bfloat16" : "float32";
    return config;
}

void require_trainable(const Checkpoint& start) {
    const MethodInfo& info = method_info(start.config.ponder.method);
    if (info.untrained != nullptr) {
        throw InputError(start.folder / "config.json",
                         "a checkpoint of a method that is trained here (" +
                             method_names([](const MethodInfo& one) { return one.untrained == nullptr; }) +
                             ")",
                         "one of " + to_string(info.kind) + ", " + info.untrained,
                         "train it with its authors' code; what that leaves can be recorded");
    }
}

ModelConfig model_config_of(const Recipe& recipe, const nlohmann::json& config) {
    const PassingFolder folder;
    const auto path = folder.path() / "config.json";
    write_file_atomically(path, config.dump(2) + "\n");
    try {
        ModelConfig result = read_model_config(path);
        require_runnable(result);
        return result;
    } catch (const InputError& error) {
        // The file that the reader names is a passing one; the user's is the recipe.
        std::string message = error.what();
        if (const auto at = message.find(path.string()); at != std::string::npos) {
            message.replace(at, path.string().size(), recipe.source.string() + " (model)");
        } else {
            message = recipe.source.string() + " (model): " + message;
        }
        throw InputError(message);
    }
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
        if (residual && recipe.scale_residual_outputs) {
            tensor.value /= std::sqrt(2.0 * static_cast<double>(config.layers));
        }
    }
    return layout;
}

Parameters starting_parameters(const Recipe& recipe, const ModelConfig& config, at::Device device,
                               const std::function<void(const std::string&)>& notice,
                               const std::stop_token& stop) {
    ParameterLayout layout = starting_layout(recipe, config);
    Parameters fresh = Parameters::initialise(layout, recipe.seed, device);
    if (recipe.start.empty()) {
        return fresh;
    }
    // Whatever method the checkpoint has: names and shapes decide what is taken.
    const Checkpoint checkpoint = Checkpoint::open(recipe.start);
    std::set<std::string> plain;
    ModelConfig without = config;
    without.ponder = {};
    without.depth = {};
    without.depth.use_qk_norm =
        config.qk_norm || (config.depth.use_qk_norm && config.depth.kind == DepthMixing::none);
    for (const auto& tensor : parameter_layout(without).tensors) {
        plain.insert(tensor.name);
    }
    std::string begun;
    std::erase_if(layout.tensors, [&](const TensorSpec& tensor) {
        const bool absent = !plain.contains(tensor.name) && checkpoint.weights.find(tensor.name) == nullptr;
        if (absent) {
            begun += (begun.empty() ? "" : ", ") + tensor.name;
        }
        return absent;
    });
    const Parameters taken = Parameters::load(layout, checkpoint, {at::kCPU}, at::kFloat, {}, stop);
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : taken.items()) {
        if (!at::isfinite(tensor).all().item<bool>()) {
            throw InputError(recipe.start, "finite weights", "infinities or NaN in " + name,
                             "get the checkpoint again");
        }
        if (fresh.at(name).sizes() != tensor.sizes()) {
            throw InputError(recipe.start, "a tensor of this model's shape for " + name, "another shape",
                             "correct the recipe's model");
        }
        fresh.at(name).copy_(tensor);
    }
    for (const auto& sentence : taken.notices()) {
        notice(sentence);
    }
    notice(begun.empty() ? "Every weight comes from " + recipe.start.string() + "."
                         : "Not in " + recipe.start.string() + " and begun anew: " + begun + ".");
    return fresh;
}

} // namespace ponderscope
