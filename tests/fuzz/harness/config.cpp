// SPDX-License-Identifier: GPL-3.0-or-later
// config.json, as its own method says and as a method that somebody names.
#include "core/checkpoint/method_info.h"
#include "core/checkpoint/model_config.h"
#include "tests/fuzz/harness/harness.h"

#include <cmath>

namespace {

/// The bounds that model_config.h promises.
void require_usable(const ponderscope::ModelConfig& c) {
    using ponderscope::MethodKind;
    using ponderscope::fuzz::require;
    for (const std::int64_t size : {c.vocab_size, c.hidden_size, c.layers, c.query_heads, c.kv_heads,
                                    c.head_dim, c.intermediate_size, c.max_positions, c.embed_dim}) {
        require(size >= 1 && size <= std::int64_t{1} << 31, "a size out of bounds");
    }
    require(c.query_heads % c.kv_heads == 0, "heads");
    require(c.sliding_windows.size() == static_cast<std::size_t>(c.layers), "windows");
    require(std::isfinite(static_cast<float>(c.norm_eps)) && c.norm_eps >= 0, "norm_eps");
    require(std::isfinite(static_cast<float>(c.rope.theta)) && c.rope.theta > 0, "theta");
    require(c.rope.rotary_dims >= 0 && c.rope.rotary_dims <= c.head_dim, "rotary_dims");
    require(c.ponder.max_steps >= 0 && c.ponder.max_steps <= 4096, "max_steps");
    require(c.rope.factor > 0, "factor");
    require(c.ponder.temperature > 0, "temperature");
    // Ouro's authors compare whatever number there is, also infinity; a number it has to be.
    require(c.ponder.method == MethodKind::ouro ? !std::isnan(c.ponder.threshold) : c.ponder.threshold >= 0,
            "threshold");
    for (const double number : {c.sandwich.state_deviation, c.sandwich.state_scale, c.scales.embedding,
                                c.scales.logit_softcap.value_or(1)}) {
        require(std::isfinite(static_cast<float>(number)) && number >= 0, "a scale");
    }
    require(c.sandwich.prelude >= 0 && c.sandwich.coda >= 0 && c.depth.recent_window >= 0, "counts");
    require(c.core_begin() <= c.core_end() && c.core_end() <= c.layers, "sandwich");
    require(c.depth.stride >= 1 && c.depth.streams >= 1 && c.depth.period >= 1, "depth");
    require(!c.candidate_methods.empty(), "no method");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ponderscope;
    const auto path = fuzz::put("config.json", fuzz::text_of(data, size));
    fuzz::ask([&] { require_usable(read_model_config(path)); }, path);
    const auto& infos = method_infos();
    fuzz::ask([&] { require_usable(read_model_config(path, infos[size % infos.size()].kind)); }, path);
    return 0;
}
