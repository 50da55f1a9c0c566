// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/method_info.h"

#include "core/base/words.h"

#include <algorithm>
#include <map>

namespace ponderscope {
namespace {

void describe_positions(const ModelConfig& config, std::vector<std::string>& said) {
    const RopeConfig& rope = config.rope;
    if (rope.kind != RopeConfig::Kind::none && rope.kind != RopeConfig::Kind::standard) {
        said.push_back("rotary positions scaled by " + to_string(rope.kind) + ", factor " +
                       rounded(rope.factor) + " from " +
                       std::to_string(rope.original_max_positions > 0 ? rope.original_max_positions
                                                                      : config.max_positions) +
                       " tokens");
    }
    if (rope.kind != RopeConfig::Kind::none && rope.rotary_dims < config.head_dim) {
        said.push_back("rotates " + std::to_string(rope.rotary_dims) + " of the " +
                       std::to_string(config.head_dim) + " elements of a head");
    }
    const auto turned = [&](LayerRope how) {
        return std::count(config.layer_rope.begin(), config.layer_rope.end(), how);
    };
    if (turned(LayerRope::none) > 0) {
        said.push_back(std::to_string(turned(LayerRope::none)) + " of " + std::to_string(config.layers) +
                       " layers without rotation");
    }
    if (turned(LayerRope::local) > 0) {
        said.push_back(std::to_string(turned(LayerRope::local)) + " of " + std::to_string(config.layers) +
                       " layers rotate by a base of their own, " + rounded(config.local_rope.theta));
    }
    std::map<std::int64_t, std::int64_t> windows;
    for (const std::int64_t window : config.sliding_windows) {
        ++windows[window];
    }
    for (const auto& [window, layers] : windows) {
        if (window > 0) {
            said.push_back((layers == config.layers ? std::string("all layers see")
                                                    : std::to_string(layers) + " of " +
                                                          std::to_string(config.layers) + " layers see") +
                           " the last " + std::to_string(window) + " tokens only");
        }
    }
}

void describe_attention(const ModelConfig& config, std::vector<std::string>& said) {
    if (config.head_dim * config.query_heads != config.hidden_size) {
        said.push_back("heads of " + std::to_string(config.head_dim) + " elements, " +
                       std::to_string(config.head_dim * config.query_heads) + " together, in a stream of " +
                       std::to_string(config.hidden_size));
    }
    if (config.depth.use_qk_norm || config.qk_norm) {
        said.push_back(config.qk_norm_all_heads
                           ? std::string("norms over all query heads together and over all key heads")
                           : std::string("norms over each query and key head, the key's ") +
                                 (config.depth.key_norm_after_rope ? "after" : "before") + " the rotation");
    }
    const ScaleConfig& scales = config.scales;
    if (scales.attention) {
        said.push_back("attention scores scaled by " + rounded(*scales.attention));
    }
    if (scales.attention_softcap > 0) {
        said.push_back("attention scores capped at " + rounded(scales.attention_softcap));
    }
    for (const auto& [scale, what] : {std::pair{scales.embedding, "embeddings"},
                                      {scales.residual, "what attention and MLP add"},
                                      {scales.logits, "logits"}}) {
        if (scale != 1.0) {
            said.push_back(std::string(what) + " multiplied by " + rounded(scale));
        }
    }
    if (!config.scale_attn_weights) {
        said.emplace_back("attention scores that are not scaled");
    }
    if (config.scale_attn_by_inverse_layer_idx) {
        said.emplace_back("attention scores divided by the number of the layer");
    }
}

/// Released recurrent-depth models: how they run, and where their authors' own numbers may differ.
void describe_recurrence(const ModelConfig& config, std::vector<std::string>& said) {
    const SandwichConfig& sandwich = config.sandwich;
    if (config.recurs()) {
        said.push_back("blocks: " + std::to_string(sandwich.prelude) + " of prelude, " +
                       std::to_string(config.core_end() - config.core_begin()) + " of core in every step, " +
                       std::to_string(sandwich.coda) + " of coda at a read-out");
        if (config.has_start_state()) {
            said.push_back(sandwich.state_deviation == 0.0
                               ? "a start state of zeros"
                               : "a random start state of deviation " +
                                     rounded(sandwich.state_deviation * sandwich.state_scale) +
                                     ": results depend on --initial-state");
        }
    }
    if (const auto peculiarity = method_info(config.ponder.method).peculiarity) {
        said.push_back(peculiarity(config));
    }
    if (config.scales.logit_softcap) {
        said.push_back("logits capped at " + rounded(*config.scales.logit_softcap));
    }
}

} // namespace

std::vector<std::string> peculiarities(const ModelConfig& config) {
    std::vector<std::string> said;
    describe_recurrence(config, said);
    describe_positions(config, said);
    describe_attention(config, said);
    if (config.architecture == Architecture::gpt_neox && !config.parallel_residual) {
        said.emplace_back("attention and MLP one after the other, where GPT-NeoX has them side by side");
    }
    if (!config.pre_norm) {
        said.emplace_back("norms after the residual sums, and no final norm");
    } else if (config.remove_final_norm) {
        said.emplace_back("no final norm");
    }
    if (config.norm_weight == NormWeight::none) {
        said.emplace_back("norms without weights");
    } else if (config.norm_weight == NormWeight::one_plus) {
        said.emplace_back("norms multiply by 1 + their weights");
    }
    if (config.norm_eps > 1e-3) {
        said.push_back("a large epsilon in the norms, " + rounded(config.norm_eps));
    }
    if (config.embed_dim != config.hidden_size) {
        said.push_back("embeddings of " + std::to_string(config.embed_dim) + " elements, projected to " +
                       std::to_string(config.hidden_size));
    }
    const DepthMixingConfig& depth = config.depth;
    if (depth.kind == DepthMixing::depth_attention) {
        said.push_back("values mixed with those of " +
                       (depth.stride <= 1 ? std::string("every earlier layer")
                                          : "earlier layers 0, " + std::to_string(depth.stride) + ", " +
                                                std::to_string(2 * depth.stride) + ", ...") +
                       (depth.recent_window > 0 && depth.stride > 1
                            ? " and of the " + std::to_string(depth.recent_window) + " before"
                            : ""));
    } else if (depth.kind == DepthMixing::mhc) {
        said.push_back(std::to_string(depth.streams) + " residual streams");
    } else if (depth.kind == DepthMixing::attnres) {
        said.push_back("sublayers read snapshots of the stream, one every " +
                       std::to_string(depth.block_size) + " sublayers");
    } else if (depth.kind == DepthMixing::denseformer) {
        said.emplace_back("layers read averages of earlier layers");
    }
    return said;
}

} // namespace ponderscope
