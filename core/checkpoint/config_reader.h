// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/base/notice.h"
#include "core/checkpoint/model_config.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ponderscope {

struct MethodInfo;

/// The last words of error messages about values that this build does not support.
inline constexpr const char* cannot_run = "this build cannot run the checkpoint";

/// Bounds for the numbers of a configuration. The size of a weight matrix in bytes then fits into 64 bits.
namespace config_limits {
constexpr std::int64_t vocabulary = std::numeric_limits<std::int32_t>::max(); // ids are 32-bit
constexpr std::int64_t width = std::int64_t{1} << 24;
constexpr std::int64_t heads = std::int64_t{1} << 16;
constexpr std::int64_t layers = std::int64_t{1} << 16;
constexpr std::int64_t positions = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t steps = 4096;
constexpr std::int64_t experts = 4096;
} // namespace config_limits

/// Typed access to a config.json. \p otherwise is the default in transformers' configuration class.
/// InputError names the key.
class ConfigReader {
public:
    ConfigReader(JsonObject object, Notices& notices, TensorNames tensors = {})
        : object_(std::move(object)), notices_(&notices), tensors_(std::move(tensors)) {}

    [[nodiscard]] const JsonObject& json() const { return object_; }
    /// Names of the checkpoint's tensors; empty if the caller has only a config.
    [[nodiscard]] std::vector<std::string> tensors() const {
        return tensors_ ? tensors_() : std::vector<std::string>();
    }

    /// A size of at least 1; null is an InputError.
    [[nodiscard]] std::int64_t size(std::string_view key, std::int64_t otherwise, std::int64_t max) const;
    /// Like size(), but null means the default, as in transformers.
    [[nodiscard]] std::int64_t size_or_null(std::string_view key, std::int64_t otherwise,
                                            std::int64_t max) const;
    /// A count of at least 0.
    [[nodiscard]] std::int64_t count(std::string_view key, std::int64_t otherwise, std::int64_t max) const;
    [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;
    /// A number in the range of fp32: above 0, or at least 0 with \p or_zero.
    [[nodiscard]] std::optional<double> positive_if_given(std::string_view key, bool or_zero = false) const;
    [[nodiscard]] double positive(std::string_view key, double otherwise, bool or_zero = false) const;
    [[nodiscard]] Activation activation(std::string_view key, Activation otherwise) const;
    /// Whether the key is present with the value null. Some classes distinguish null from an absent key.
    [[nodiscard]] bool is_null(std::string_view key) const;
    /// The key to read if a value has two names: \p alias if the file has only \p alias, else \p name.
    /// InputError: both names exist, with different values.
    [[nodiscard]] std::string_view either(std::string_view name, std::string_view alias) const;

    /// InputError that names \p key, unless the key is absent, null or \p inert (a value without effect).
    void refuse_unless(std::string_view key, const nlohmann::json& inert, const std::string& why) const;

    void notice(NoticeId id, std::string text) const { notices_->push_back({id, std::move(text)}); }

private:
    JsonObject object_;
    Notices* notices_;
    TensorNames tensors_;
};

/// hidden_size / query_heads. InputError if query_heads does not divide hidden_size.
std::int64_t even_head_dim(const ConfigReader& reader, const ModelConfig& config,
                           std::string_view hidden_key);
void read_token_ids(const ConfigReader& reader, ModelConfig& config, std::optional<std::int64_t> default_bos,
                    std::optional<std::int64_t> default_eos);

/// Reads which layers have a sliding window: from `layer_types`, or from \p slides if the key is absent. \p
/// default_window is the default of `sliding_window`. \p switched names a key that must be true in a config
/// with sliding layers. Needs config.layers.
void read_windows(const ConfigReader& reader, ModelConfig& config, std::optional<std::int64_t> default_window,
                  const std::function<bool(std::int64_t layer)>& slides, const char* switched = nullptr);
/// Whether `sliding_window` is not null; \p otherwise if the key is absent.
bool has_window(const ConfigReader& reader, bool otherwise = true);

// read_NAME reads the keys of one architecture. There is one function for each line of architectures.def.
#define PONDERSCOPE_ARCHITECTURE(name) void read_##name(const ConfigReader& reader, ModelConfig& config);
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE

/// The defaults of a configuration class, and the names of its keys (by default the names in Llama's class).
struct SizeDefaults {
    std::int64_t vocab_size = 32000;
    std::int64_t hidden_size = 4096;
    std::int64_t intermediate_size = 11008;
    std::int64_t layers = 32;
    std::int64_t heads = 32;
    std::optional<std::int64_t> kv_heads = std::nullopt; ///< absent: as many as query heads
    std::optional<std::int64_t> head_dim = std::nullopt; ///< absent: hidden_size / query heads
    std::int64_t max_positions = 2048;
    std::optional<std::int64_t> bos = 1;
    std::optional<std::int64_t> eos = 2;
    double norm_eps = 1e-6;
    bool tied = false;
    Activation activation = Activation::silu;
    NormKind norm = NormKind::rms_norm;
    bool null_head_dim_divides = false; ///< null means hidden_size / heads; false: `head_dim` above

    std::string_view hidden_key = "hidden_size";
    std::string_view layers_key = "num_hidden_layers";
    std::string_view heads_key = "num_attention_heads";
    std::string_view positions_key = "max_position_embeddings";
    std::string_view activation_key = "hidden_act";
    // Empty: the class has no such key.
    std::string_view intermediate_key = "intermediate_size";
    std::string_view kv_heads_key = "num_key_value_heads";
    std::string_view head_dim_key = "head_dim";
    std::string_view norm_key = "rms_norm_eps";
};
/// Reads sizes, norms, activation, tied embeddings and token ids. Other functions read biases, windows and
/// the rotary embedding.
void read_sizes(const ConfigReader& reader, ModelConfig& config, const SizeDefaults& defaults);
/// attention_bias and mlp_bias; the default is false.
void read_biases(const ConfigReader& reader, ModelConfig& config);
/// InputError: the number of KV heads does not divide the number of query heads.
void check_key_heads(const ConfigReader& reader, const ModelConfig& config);

/// The keys of the rotary embedding, besides rope_scaling and rope_parameters, and their defaults.
struct RopeKeys {
    std::string_view theta = "rope_theta";
    double default_theta = 10000.0;
    std::string_view partial = {}; ///< empty: the architecture rotates whole heads
    double default_partial = 1.0;
};
/// Needs config.head_dim and config.max_positions.
void read_rope(const ConfigReader& reader, ModelConfig& config, const RopeKeys& keys);
/// Reads the two rotary tables of an architecture: one for full layers, one for sliding layers. Needs
/// config.sliding_windows. The older rope_scaling sets the table of full layers. rope_parameters has a
/// section for each kind of layer. InputError: rope_parameters has keys, but neither section. With \p
/// flat_is_full such keys set the table of full layers, and their rope_theta sets both tables.
void read_rope_by_kind(const ConfigReader& reader, ModelConfig& config, const RopeKeys& full_keys,
                       const RopeKeys& sliding_keys, bool flat_is_full = false);

/// Call this after the architecture's own keys and the depth mixing are read: scale_embeds depends on them.
void read_pondering(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> method);
void read_depth_mixing(const ConfigReader& reader, ModelConfig& config);
/// Reads the config of a checkpoint in the format of the method \p own, by MethodInfo::read.
void read_own_method(const ConfigReader& reader, ModelConfig& config, const MethodInfo& own,
                     std::optional<MethodKind> method);
/// Nanbeige's keys for loops (if the config has no "pondering" section) and for depth attention.
void read_nanbeige_loops(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> method);
void read_nanbeige_depth(const ConfigReader& reader, ModelConfig& config);

} // namespace ponderscope
