// SPDX-License-Identifier: GPL-3.0-or-later
// HRM-Text (Sapient): the keys and defaults of transformers' HrmTextConfig.
#include "core/checkpoint/config_reader.h"

#include <algorithm>

namespace ponderscope {

void read_hrm_text(const ConfigReader& reader, ModelConfig& config) {
    const JsonObject& json = reader.json();
    read_sizes(reader, config,
               {.vocab_size = 151808,
                .hidden_size = 1536,
                .intermediate_size = 4096,
                .layers = 16,
                .heads = 12,
                .head_dim = 128,
                .max_positions = 2048,
                .bos = std::nullopt,
                .eos = std::nullopt});
    if (config.kv_heads != config.query_heads) {
        json.fail("num_key_value_heads", "the number of query heads", cannot_run);
    }
    for (const char* const key : {"attention_bias", "mlp_bias"}) {
        reader.refuse_unless(key, false, cannot_run);
    }
    config.norm_weight = NormWeight::none;
    // num_hidden_layers counts every pass of every layer. num_layers_per_stack counts stored layers.
    const std::int64_t stack =
        reader.size_or_null("num_layers_per_stack", config.layers, config_limits::layers);
    config.released.low_passes = reader.size("L_cycles", 3, config_limits::steps);
    if (stack * (config.released.low_passes + 1) > config_limits::layers) {
        json.fail("L_cycles", "fewer passes, because num_layers_per_stack x (L_cycles + 1) is too large,");
    }
    (void)json.has("L_bp_cycles");
    config.layers = stack * (config.released.low_passes + 1); // layer passes in a cycle
    config.sliding_windows.assign(static_cast<std::size_t>(config.layers), 0);
    config.scales.embedding = reader.positive_if_given("embedding_scale")
                                  .value_or(1.0 / reader.positive("initializer_range", 0.02));
    config.released.prefix_lm = reader.flag("prefix_lm", true);
    const std::vector<std::string> names = reader.tensors();
    config.released.split_projections = std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return name.find(".self_attn.q_proj.") != std::string::npos;
    });
    read_rope(reader, config, {});
}

} // namespace ponderscope
