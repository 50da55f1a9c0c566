// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/tiny_checkpoint.h"

#include "core/base/files.h"
#include "core/base/splitmix.h"
#include "core/base/utf8.h"
#include "core/checkpoint/safetensors.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <span>
#include <vector>

namespace ponderscope::testing {
namespace {

/// GPT-2's table of visible characters for bytes: printable ones stand for themselves, the others follow from
/// U+0100 on.
std::array<std::string, 256> byte_characters() {
    std::array<std::string, 256> characters;
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const bool printable =
            (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        append_utf8(characters[byte], printable ? static_cast<char32_t>(byte) : next++);
    }
    return characters;
}

nlohmann::json tokenizer_json() {
    nlohmann::json vocabulary = nlohmann::json::object();
    const std::array<std::string, 256> characters = byte_characters();
    for (std::size_t byte = 0; byte < characters.size(); ++byte) {
        vocabulary[characters[byte]] = byte;
    }
    const nlohmann::json byte_level{
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
    return {{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", nlohmann::json::array()},
            {"normalizer", nullptr},
            {"pre_tokenizer", byte_level},
            {"post_processor", byte_level},
            {"decoder", byte_level},
            {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}}};
}

/// Named fp32 tensors with values from a counter: the same everywhere.
class TensorMaker {
public:
    explicit TensorMaker(std::uint64_t seed) : seed_(seed) {}

    void random(const std::string& name, std::vector<std::int64_t> shape, float scale, float mean = 0) {
        std::size_t count = 1;
        for (const std::int64_t size : shape) {
            count *= static_cast<std::size_t>(size);
        }
        std::vector<float>& values = values_.emplace_back(count);
        for (float& value : values) {
            // The sum of four uniforms is near enough to a normal.
            double sum = 0;
            for (int i = 0; i < 4; ++i) {
                sum += static_cast<double>(splitmix64(seed_, counter_++) >> 11) * 0x1.0p-53 - 0.5;
            }
            value = mean + scale * static_cast<float>(sum * 1.7320508);
        }
        names_.push_back(name);
        shapes_.push_back(std::move(shape));
    }

    void write(const std::filesystem::path& path) const {
        std::vector<TensorView> tensors;
        std::size_t at = 0;
        for (const std::vector<float>& values : values_) {
            TensorView tensor;
            tensor.name = names_[at];
            tensor.shape = shapes_[at];
            tensor.bytes = std::as_bytes(std::span(values));
            tensors.push_back(std::move(tensor));
            ++at;
        }
        write_safetensors(path, tensors, {{"format", "pt"}});
    }

private:
    std::uint64_t seed_;
    std::uint64_t counter_ = 0;
    std::vector<std::string> names_;
    std::vector<std::vector<std::int64_t>> shapes_;
    std::vector<std::vector<float>> values_;
};

} // namespace

void TinyCheckpoint::write(const std::filesystem::path& folder, bool with_tokenizer) const {
    std::filesystem::create_directories(folder);
    const std::int64_t d = hidden_size;
    nlohmann::json config = nlohmann::json::parse(R"({"architectures": ["GPTNeoXForCausalLM"],
        "model_type": "gpt_neox", "hidden_act": "gelu", "layer_norm_eps": 1e-5, "rotary_pct": 0.25,
        "rotary_emb_base": 10000, "use_parallel_residual": true, "attention_bias": true,
        "tie_word_embeddings": false, "torch_dtype": "float32"})");
    config.update({{"hidden_size", d},
                   {"intermediate_size", 4 * d},
                   {"num_hidden_layers", layers},
                   {"num_attention_heads", heads},
                   {"vocab_size", vocab_size},
                   {"max_position_embeddings", max_positions}});
    if (pondering_steps > 0) {
        config["ponderinglm"] = true;
        config["pondering_steps"] = pondering_steps;
        config["mutiply_pondering_steps"] = false;
        config["scale_embeds"] = true;
    }
    write_file_atomically(folder / "config.json", config.dump(2) + "\n");

    TensorMaker make(seed);
    make.random("gpt_neox.embed_in.weight", {vocab_size, d}, 0.5F);
    for (std::int64_t l = 0; l < layers; ++l) {
        const std::string layer = "gpt_neox.layers." + std::to_string(l) + ".";
        for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
            make.random(layer + norm + ".weight", {d}, 0.1F, 1.0F);
            make.random(layer + norm + ".bias", {d}, 0.1F);
        }
        const float scale = 1.0F / std::sqrt(static_cast<float>(d));
        make.random(layer + "attention.query_key_value.weight", {3 * d, d}, 2 * scale);
        make.random(layer + "attention.query_key_value.bias", {3 * d}, 0.1F);
        make.random(layer + "attention.dense.weight", {d, d}, scale);
        make.random(layer + "attention.dense.bias", {d}, 0.1F);
        make.random(layer + "mlp.dense_h_to_4h.weight", {4 * d, d}, scale);
        make.random(layer + "mlp.dense_h_to_4h.bias", {4 * d}, 0.1F);
        make.random(layer + "mlp.dense_4h_to_h.weight", {d, 4 * d}, scale / 2);
        make.random(layer + "mlp.dense_4h_to_h.bias", {d}, 0.1F);
    }
    make.random("gpt_neox.final_layer_norm.weight", {d}, 0.1F, 1.0F);
    make.random("gpt_neox.final_layer_norm.bias", {d}, 0.1F);
    make.random("embed_out.weight", {vocab_size, d}, 0.5F);
    make.write(folder / "model.safetensors");
    if (with_tokenizer) {
        write_file_atomically(folder / "tokenizer.json", tokenizer_json().dump(1));
    }
}

} // namespace ponderscope::testing
