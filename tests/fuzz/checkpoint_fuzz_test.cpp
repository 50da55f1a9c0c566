// SPDX-License-Identifier: GPL-3.0-or-later
// Damaged checkpoints: a file is either opened and keeps every promise of the reader, or refused with one
// sentence that names it.
#include "core/base/error.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/method_info.h"
#include "core/checkpoint/safetensors.h"
#include "tests/fuzz/mutate.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using testing::Mutator;
using testing::TemporaryFolder;

constexpr std::uint64_t seed = 20261122;

/// A new file each time: truncating one makes some file systems write the old content out first.
void put(const fs::path& path, std::string_view content) {
    fs::remove(path);
    std::ofstream file(path, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
}

std::string get(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// One line, the path in front (of the folder where it is of a model that does not run here), a full stop at
/// the end.
void expect_a_sentence(const Error& error, const fs::path& path) {
    const std::string said = error.what();
    EXPECT_TRUE(said.starts_with(path.string()) || said.starts_with(path.parent_path().string() + ": "))
        << said;
    EXPECT_EQ(said.back(), '.') << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    EXPECT_LT(said.size(), 2000U) << said;
}

std::string valid_safetensors(const fs::path& folder) {
    std::array<float, 96> floats{};
    floats.fill(1.5F);
    const std::array<std::uint16_t, 4> halves{1, 2, 3, 4};
    const std::array<std::int64_t, 1> ids{7};
    const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
    write_safetensors(folder / "valid",
                      {{"model.embed_tokens.weight", DType::f32, {32, 3}, bytes(floats)},
                       {"model.norm.weight", DType::bf16, {4}, bytes(halves)},
                       {"ids", DType::i64, {1}, bytes(ids)},
                       {"empty", DType::f16, {0, 5}, {}}},
                      {{"format", "pt"}});
    return get(folder / "valid");
}

TEST(CheckpointFuzz, DamagedSafetensors) {
    const TemporaryFolder folder;
    const std::string valid = valid_safetensors(folder.path());
    const fs::path path = folder / "damaged.safetensors";
    int opened = 0;
    int refused = 0;
    for (std::uint64_t round = 0; round < 20'000; ++round) {
        Mutator mutate(splitmix64(seed, round));
        const std::string content = mutate(valid);
        put(path, content);
        SCOPED_TRACE(round);
        try {
            const SafetensorsFile file = SafetensorsFile::open(path);
            // What was opened is whole: the tensors tile the data, and each is as large as it says.
            std::uint64_t data_bytes = 0;
            for (const TensorView& view : file.tensors()) {
                std::uint64_t expected = size_of(view.dtype);
                for (const std::int64_t size : view.shape) {
                    ASSERT_GE(size, 0);
                    expected *= static_cast<std::uint64_t>(size);
                }
                ASSERT_EQ(view.bytes.size(), expected);
                ASSERT_EQ(file.find(view.name), &view);
                data_bytes += expected;
                unsigned sum = 0;
                for (const std::byte byte : view.bytes) {
                    sum += static_cast<unsigned>(byte); // touches every byte that the view claims
                }
                ASSERT_LE(sum, 255U * expected);
            }
            std::uint64_t header = 0;
            for (std::size_t i = 0; i < 8; ++i) {
                header |= static_cast<std::uint64_t>(static_cast<unsigned char>(content[i])) << (8 * i);
            }
            if (file.unreadable().empty()) {
                ASSERT_EQ(8 + header + data_bytes, content.size());
            } else { // tensors of dtypes that are not read here
                ASSERT_LE(8 + header + data_bytes, content.size());
            }
            ++opened;
        } catch (const InputError& error) {
            expect_a_sentence(error, path);
            ++refused;
        }
    }
    // Flips in the data are no damage that a header can show; most other things are.
    EXPECT_GT(opened, 1000);
    EXPECT_GT(refused, 10'000);
}

TEST(CheckpointFuzz, EveryTruncationIsRefused) {
    const TemporaryFolder folder;
    const std::string valid = valid_safetensors(folder.path());
    const fs::path path = folder / "cut.safetensors";
    for (std::size_t size = 0; size < valid.size(); ++size) {
        put(path, std::string_view(valid).substr(0, size));
        EXPECT_THROW(SafetensorsFile::open(path), InputError) << size;
    }
    put(path, valid + '\0');
    EXPECT_THROW(SafetensorsFile::open(path), InputError);
}

TEST(CheckpointFuzz, DamagedIndex) {
    const TemporaryFolder folder;
    const std::string one = valid_safetensors(folder.path());
    fs::rename(folder / "valid", folder / "model-00001-of-00001.safetensors");
    const std::string index = R"({"metadata": {"total_size": 40}, "weight_map": {
        "model.embed_tokens.weight": "model-00001-of-00001.safetensors",
        "model.norm.weight": "model-00001-of-00001.safetensors"}})";
    for (std::uint64_t round = 0; round < 5'000; ++round) {
        Mutator mutate(splitmix64(seed + 1, round));
        put(folder / "model.safetensors.index.json", mutate(index));
        SCOPED_TRACE(round);
        try {
            const Weights weights = Weights::open(folder.path());
            for (const fs::path& file : weights.files()) {
                EXPECT_EQ(fs::weakly_canonical(file).parent_path(), fs::weakly_canonical(folder.path()))
                    << file;
            }
        } catch (const InputError& error) {
            expect_a_sentence(error, folder.path());
        }
    }
}

/// The bounds that model_config.h promises.
void expect_usable(const ModelConfig& c) {
    for (const std::int64_t size : {c.vocab_size, c.hidden_size, c.layers, c.query_heads, c.kv_heads,
                                    c.head_dim, c.intermediate_size, c.max_positions, c.embed_dim}) {
        EXPECT_GE(size, 1);
        EXPECT_LE(size, std::int64_t{1} << 31);
    }
    EXPECT_EQ(c.query_heads % c.kv_heads, 0);
    EXPECT_EQ(c.sliding_windows.size(), static_cast<std::size_t>(c.layers));
    EXPECT_TRUE(std::isfinite(static_cast<float>(c.norm_eps)) && c.norm_eps >= 0);
    EXPECT_TRUE(std::isfinite(static_cast<float>(c.rope.theta)) && c.rope.theta > 0);
    EXPECT_GE(c.rope.rotary_dims, 0);
    EXPECT_LE(c.rope.rotary_dims, c.head_dim);
    EXPECT_GT(c.rope.factor, 0);
    EXPECT_GE(c.ponder.max_steps, 0);
    EXPECT_LE(c.ponder.max_steps, 4096);
    EXPECT_GT(c.ponder.temperature, 0);
    // Ouro's authors compare whatever number there is, also infinity; a number it has to be.
    EXPECT_TRUE(c.ponder.method == MethodKind::ouro ? !std::isnan(c.ponder.threshold)
                                                    : c.ponder.threshold >= 0);
    EXPECT_LE(c.ponder.own.size(), 1U);
    EXPECT_GE(c.sandwich.prelude, 0);
    EXPECT_GE(c.sandwich.coda, 0);
    EXPECT_LE(c.core_begin(), c.core_end());
    EXPECT_LE(c.core_end(), c.layers);
    for (const double number : {c.sandwich.state_deviation, c.sandwich.state_scale, c.scales.embedding,
                                c.scales.logit_softcap.value_or(1)}) {
        EXPECT_TRUE(std::isfinite(static_cast<float>(number)) && number >= 0) << number;
    }
    EXPECT_GE(c.depth.stride, 1);
    EXPECT_GE(c.depth.recent_window, 0);
    EXPECT_GE(c.depth.streams, 1);
    EXPECT_GE(c.depth.period, 1);
    EXPECT_GE(c.candidate_methods.size(), 1U);
}

TEST(CheckpointFuzz, DamagedConfigs) {
    const std::array<std::string, 11> valid{
        R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
            "vocab_size": 512, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": [2],
            "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32}, "ponderinglm": true, "pondering_steps": 3, "softmax_temperature": 0.7})",
        R"({"model_type": "gpt_neox", "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "rotary_pct": 0.5,
            "rotary_emb_base": 10000, "vocab_size": 512, "tie_word_embeddings": false, "use_parallel_residual": true,
            "pondering": {"method": "adaponderlm", "max_steps": 3, "threshold": 0.0001, "embed_scale": "sqrt_d", "top_k": 5}})",
        R"({"model_type": "llama", "use_depth_attention": true, "recurrent_model": true, "depth_attention_stride": 2,
            "depth_attention_recent_window": 1, "use_qk_norm": true, "num_latent_thoughts": 2, "scale_embeds": true,
            "rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1000.0}})",
        R"({"model_type": "qwen2", "num_hidden_layers": 3, "use_sliding_window": true, "sliding_window": 6, "max_window_layers": 2,
            "layer_types": ["full_attention", "sliding_attention", "full_attention"]})",
        R"({"model_type": "nanbeige", "num_loops": 2, "enable_depth_attention": true, "loop_loss_weights": [], "qk_layernorm": true,
            "insert_ngram_layer_idx": [], "loop_middle_layers": null, "num_hidden_layers": 5})",
        R"({"model_type": "ouro", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": null,
            "total_ut_steps": 4, "early_exit_threshold": 0.9, "early_exit_step": 2, "vocab_size": 49152, "eos_token_id": 0,
            "use_sliding_window": false, "max_window_layers": 28, "intermediate_size": 128, "rope_theta": 1000000.0})",
        R"({"model_type": "huginn_raven", "n_embd": 48, "n_heads": 4, "n_layers_in_prelude": 1, "n_layers_in_recurrent_block": 2,
            "n_layers_in_coda": 1, "mean_recurrence": 32, "intermediate_size": 96, "padded_vocab_size": 512, "vocab_size": 512,
            "block_size": 64, "qk_bias": true, "tie_embeddings": true, "init_values": {"std": 0.0087, "embed_scale": 72.66},
            "init_scale": 1.0, "injection_type": "linear", "state_init": "like-init", "test_time_noise": 0})",
        R"({"_class_name": "ParcaeConfig", "n_embd": 64, "num_attention_heads": 4, "n_layers_in_prelude": 2, "n_layers_in_coda": 2,
            "n_layers_in_recurrent_block": 2, "mean_recurrence": 8, "vocab_size": 500, "padded_vocab_size": 512, "intermediate_size": null,
            "logit_softcap": 15.0, "injection_type": "diagonal", "qk_norm": true, "prelude_norm": true, "block_size": 64,
            "rope_settings": {"use_rope": true, "rope_condense_ratio": 1, "rope_base": 50000}, "nonlin_name": "ReLU2"})",
        R"({"model_type": "gpt2", "n_embd": 48, "n_head": 4, "n_layer": 2, "recurrent_model": true, "pondering_steps": 2,
            "mutiply_pondering_steps": true, "scale_embeds": true, "activation_function": "gelu_new", "vocab_size": 512})",
        R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 60000, "recurrent_model": true,
            "num_latent_thoughts": 2, "interpolation": true, "interpolation_topk": 9, "num_jacobi_iterations": 2, "pause_token_id": 7,
            "residual_interpolated_embeds": true})",
        R"({"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 4, "head_dim": 16, "vocab_size": 512,
            "pondering": {"method": "adaptive_latent_cot", "max_steps": 3, "threshold": 0.01, "remainder": "drop"}})",
    };
    const TemporaryFolder folder;
    const fs::path path = folder / "config.json";
    int read = 0;
    int refused = 0;
    for (std::uint64_t round = 0; round < 20'000; ++round) {
        Mutator mutate(splitmix64(seed + 2, round));
        put(path, mutate(valid[round % valid.size()]));
        SCOPED_TRACE(round);
        std::optional<MethodKind> method;
        if (mutate.draw(4) == 0) {
            method = method_infos()[mutate.draw(method_infos().size())].kind;
        }
        try {
            expect_usable(read_model_config(path, method));
            ++read;
        } catch (const InputError& error) {
            expect_a_sentence(error, path);
            ++refused;
        }
        if (::testing::Test::HasFailure()) {
            FAIL() << get(path);
        }
    }
    EXPECT_GT(read, 1000);
    EXPECT_GT(refused, 5000);
}

/// The files beside config.json by which Think-at-Hard says what it is.
TEST(CheckpointFuzz, DamagedCompanions) {
    const fs::path whole = testing::source_tree() / "tests" / "golden" / "tah_qwen3_2iter_tied";
    const TemporaryFolder folder;
    fs::copy(whole, folder.path(), fs::copy_options::recursive);
    const std::array<std::string, 2> names{"tah_config.json", "lora/adapter_config.json"};
    int read = 0;
    int refused = 0;
    for (std::uint64_t round = 0; round < 4'000; ++round) {
        Mutator mutate(splitmix64(seed + 3, round));
        const std::string& name = names[round % names.size()];
        const std::string valid = get(whole / name);
        put(folder / name, mutate(valid));
        SCOPED_TRACE(round);
        try {
            const ModelConfig config = read_model_config(folder / "config.json");
            EXPECT_EQ(config.ponder.method, MethodKind::tah);
            EXPECT_TRUE(std::isfinite(config.ponder.threshold));
            EXPECT_GE(config.ponder.top_k, 1);
            EXPECT_LE(config.ponder.top_k, config.vocab_size);
            EXPECT_LE(config.ponder.max_steps, 4096);
            EXPECT_TRUE(std::isfinite(config.tah.lora_alpha));
            EXPECT_GE(config.tah.lora_rank, 1);
            for (const std::int64_t layer : config.tah.gate_layers) {
                EXPECT_TRUE(layer >= 0 && layer <= config.layers) << layer;
            }
            EXPECT_FALSE(config.tah.gate_widths.empty());
            ++read;
        } catch (const InputError& error) {
            expect_a_sentence(error, folder.path());
            ++refused;
        }
        if (::testing::Test::HasFailure()) {
            FAIL() << get(folder / name);
        }
        put(folder / name, valid);
    }
    EXPECT_GT(read, 200);
    EXPECT_GT(refused, 1000);
}

} // namespace
} // namespace ponderscope
