// SPDX-License-Identifier: GPL-3.0-or-later
// OLMo 2 and 3: keys and defaults of transformers' Olmo2Config and Olmo3Config.
#include "core/checkpoint/config_reader.h"

namespace ponderscope {
namespace {

void read_olmo_sizes(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config, {.vocab_size = 50304, .bos = std::nullopt, .eos = 50279, .norm_eps = 1e-5});
    config.attention_bias = reader.flag("attention_bias", false);
    config.qk_norm = true;
    config.qk_norm_all_heads = true;
    reader.refuse_unless("clip_qkv", nullptr, cannot_run); // a key of other OLMo generations
}

} // namespace

void read_olmo2(const ConfigReader& reader, ModelConfig& config) {
    read_olmo_sizes(reader, config);
    read_rope(reader, config, {});
}

void read_olmo3(const ConfigReader& reader, ModelConfig& config) {
    read_olmo_sizes(reader, config);
    read_windows(reader, config, 4096, [](std::int64_t layer) { return (layer + 1) % 4 != 0; });
    read_rope_by_kind(reader, config, {"rope_theta", 500000.0}, {"rope_theta", 500000.0},
                      /*flat_is_full=*/true);
}

} // namespace ponderscope
