// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/ponder/tiny_models.h"

#include "core/base/splitmix.h"
#include "core/checkpoint/safetensors.h"
#include "core/ponder/engine/model.h"
#include "core/trace/reader.h"

#include <ATen/ATen.h>

#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>

namespace ponderscope::testing {

nlohmann::json tiny_config(const char* keys, std::int64_t vocabulary) {
    nlohmann::json config = nlohmann::json::parse(keys);
    config["vocab_size"] = vocabulary;
    return config;
}

nlohmann::json with_keys(nlohmann::json config, const char* keys) {
    config.update(nlohmann::json::parse(keys));
    return config;
}

nlohmann::json tiny_gpt_neox(std::int64_t vocabulary) {
    return tiny_config(R"({"model_type": "gpt_neox", "hidden_size": 32, "num_hidden_layers": 3,
        "num_attention_heads": 4, "intermediate_size": 40, "max_position_embeddings": 128,
        "rotary_pct": 0.5, "use_parallel_residual": true, "hidden_act": "gelu",
        "tie_word_embeddings": false, "torch_dtype": "float32", "bos_token_id": 0, "eos_token_id": 0,
        "layer_norm_eps": 1e-5})",
                       vocabulary);
}

nlohmann::json tiny_llama(std::int64_t vocabulary) {
    return tiny_config(R"({"model_type": "llama", "hidden_size": 24, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 40,
        "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "tie_word_embeddings": true, "torch_dtype": "float32", "bos_token_id": 0, "eos_token_id": 0})",
                       vocabulary);
}

nlohmann::json tiny_gpt2(std::int64_t vocabulary) {
    return tiny_config(R"({"model_type": "gpt2", "n_embd": 24, "n_layer": 3, "n_head": 4,
        "n_positions": 64, "n_inner": 40, "activation_function": "gelu_new", "bos_token_id": 0,
        "eos_token_id": 0, "torch_dtype": "float32"})",
                       vocabulary);
}

nlohmann::json tiny_mistral(std::int64_t vocabulary) {
    return with_keys(tiny_llama(vocabulary), R"({"model_type": "mistral", "sliding_window": 5})");
}

nlohmann::json tiny_qwen2(std::int64_t vocabulary) {
    nlohmann::json config = tiny_llama(vocabulary);
    config.erase("head_dim");
    return with_keys(config, R"({"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 6,
        "max_window_layers": 1})");
}

nlohmann::json tiny_qwen3(std::int64_t vocabulary) {
    return with_keys(tiny_llama(vocabulary), R"({"model_type": "qwen3", "use_sliding_window": true,
        "sliding_window": 7, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]})");
}

nlohmann::json tiny_qwen3_moe(std::int64_t vocabulary) {
    return with_keys(tiny_llama(vocabulary), R"({"model_type": "qwen3_moe", "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 10, "norm_topk_prob": true,
        "mlp_only_layers": [1]})");
}

nlohmann::json tiny_phi(std::int64_t vocabulary) {
    return tiny_config(R"({"model_type": "phi", "hidden_size": 32, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 40,
        "max_position_embeddings": 128, "partial_rotary_factor": 0.5, "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-5, "tie_word_embeddings": false, "torch_dtype": "float32", "bos_token_id": 0,
        "eos_token_id": 0})",
                       vocabulary);
}

nlohmann::json tiny_opt(std::int64_t vocabulary) {
    return tiny_config(R"({"model_type": "opt", "hidden_size": 24, "word_embed_proj_dim": 20,
        "num_hidden_layers": 3, "num_attention_heads": 4, "ffn_dim": 40, "max_position_embeddings": 64,
        "do_layer_norm_before": false, "activation_function": "relu", "torch_dtype": "float32",
        "bos_token_id": 0, "eos_token_id": 0})",
                       vocabulary);
}

nlohmann::json tiny_nanbeige(std::int64_t vocabulary) {
    return with_keys(tiny_llama(vocabulary),
                     R"({"model_type": "nanbeige", "qk_layernorm": true, "num_loops": 1})");
}

nlohmann::json with_depth_attention(nlohmann::json config, std::int64_t stride, std::int64_t window) {
    if (config.at("model_type") == "nanbeige") {
        config.update({{"enable_depth_attention", true}, {"depth_attention_stride", stride}});
        return config;
    }
    config.update({{"depth_attention_stride", stride}, {"depth_attention_recent_window", window}});
    return with_keys(config, R"({"use_depth_attention": true, "recurrent_model": true, "use_qk_norm": true,
        "num_hidden_layers": 5})");
}

nlohmann::json with_ponderlm(nlohmann::json config, std::int64_t steps) {
    config["pondering_steps"] = steps;
    return with_keys(config,
                     R"({"ponderinglm": true, "scale_embeds": true, "mutiply_pondering_steps": true})");
}

namespace {

void write_weights(const std::filesystem::path& folder, const Parameters& parameters) {
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : parameters.items()) {
        const std::span bytes(reinterpret_cast<const std::byte*>(tensor.const_data_ptr()),
                              static_cast<std::size_t>(tensor.nbytes()));
        views.push_back({name, DType::f32, tensor.sizes().vec(), bytes});
    }
    write_safetensors(folder / "model.safetensors", views);
}

} // namespace

void copy_with_weights(const Checkpoint& checkpoint, const std::filesystem::path& folder,
                       const std::function<void(const at::Tensor&)>& change) {
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(checkpoint.folder / "config.json", folder / "config.json");
    const Parameters parameters =
        Parameters::load(parameter_layout(checkpoint.config), checkpoint, {at::kCPU}, at::kFloat);
    for (const auto& [name, tensor] : parameters.items()) {
        change(tensor);
    }
    write_weights(folder, parameters);
}

void round_weights(const Checkpoint& checkpoint, Precision precision, const std::filesystem::path& folder) {
    copy_with_weights(checkpoint, folder, [&](const at::Tensor& tensor) {
        tensor.copy_(tensor.to(precision == Precision::bfloat16 ? at::kBFloat16 : at::kHalf));
    });
}

void nudge_weights(const Checkpoint& checkpoint, const std::filesystem::path& folder) {
    copy_with_weights(checkpoint, folder, [number = std::uint64_t{0}](const at::Tensor& tensor) mutable {
        float* values = tensor.data_ptr<float>();
        for (std::int64_t i = 0; i < tensor.numel(); ++i) {
            const bool up = bounded(splitmix64(1, number++), 2) == 1;
            const float limit = std::numeric_limits<float>::infinity();
            values[i] = std::nextafter(values[i], up ? limit : -limit);
        }
    });
}

Checkpoint make_checkpoint(const std::filesystem::path& folder, const nlohmann::json& config,
                           std::uint64_t seed, std::optional<MethodKind> method) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << config.dump(1);
    ParameterLayout layout = parameter_layout(read_model_config(folder / "config.json", method));
    for (TensorSpec& spec : layout.tensors) {
        const bool is_weight_of_norm = spec.init == TensorSpec::Init::constant && spec.value == 1.0;
        spec.init = TensorSpec::Init::normal;
        spec.value = spec.shape.size() == 2 ? 0.25 : (is_weight_of_norm ? 0.2 : 0.1);
    }
    Parameters parameters = Parameters::initialise(layout, seed, at::kCPU);
    for (const auto& [name, tensor] : parameters.items()) {
        if (name.find("norm") != std::string::npos && name.ends_with("weight")) {
            tensor.add_(1.0);
        }
    }
    write_weights(folder, parameters);
    return Checkpoint::open(folder, method);
}

Precision test_precision() {
    return precision_from_string(test_dtype()).value_or(Precision::float32);
}

Engine load_engine(const Checkpoint& checkpoint, std::optional<Precision> precision) {
    LoadOptions options{.device = test_device(), .precision = precision.value_or(test_precision())};
    return Engine::load(checkpoint, options);
}

std::vector<std::int32_t> random_ids(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < count; ++i) {
        ids.push_back(static_cast<std::int32_t>(bounded(splitmix64(seed, static_cast<std::uint64_t>(i)),
                                                        static_cast<std::uint64_t>(vocabulary))));
    }
    return ids;
}

Window whole(const std::vector<std::int32_t>& ids) {
    return {ids, 0, static_cast<std::int64_t>(ids.size())};
}

WindowResult scored_alone(const Engine& engine, const Window& window, RecordLevel level) {
    return engine.score(std::span(&window, 1), level).front();
}

const SignalChunk* find(const WindowResult& result, const std::string& name) {
    for (const auto& [signal_name, chunk] : result.signals) {
        if (signal_name == name) {
            return &chunk;
        }
    }
    return nullptr;
}

std::vector<float> floats_of(const WindowResult& result, const std::string& name) {
    const SignalChunk* chunk = find(result, name);
    if (chunk == nullptr) {
        throw std::out_of_range("no signal " + name);
    }
    return to_floats(*chunk);
}

} // namespace ponderscope::testing
