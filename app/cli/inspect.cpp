// SPDX-License-Identifier: GPL-3.0-or-later
// Describes a checkpoint or a trace in words, or with --json for programs.
#include "app/cli/console.h"
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/hub_cache.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/checkpoint/method_info.h"
#include "core/ponder/engine/model.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <iostream>
#include <map>

namespace ponderscope::cli {
namespace {

std::int64_t count_elements(const TensorView& tensor) {
    std::int64_t product = 1;
    for (const std::int64_t size : tensor.shape) {
        product *= size;
    }
    return product;
}

/// Bytes that a run needs beside the program itself: weights in the run's precision, K/V rows of one batch
/// for every step, the residual stream and the widest activations of one batch, and a head tile. An estimate
/// without the allocator's overhead.
double run_bytes(const ModelConfig& config, double parameters, double element, std::int64_t context,
                 std::int64_t batch) {
    const double tokens = static_cast<double>(context * batch);
    const auto d = static_cast<double>(config.hidden_size);
    const double kv =
        tokens * static_cast<double>(config.layers * 2 * config.kv_heads * config.head_dim) * element;
    const double activations = tokens * (8 * d + 2 * static_cast<double>(config.intermediate_size)) * element;
    const double states = tokens * d * 4 * static_cast<double>(config.ponder.max_steps + 1) * 2;
    return parameters * element + kv + activations + states + 64e6;
}

nlohmann::json or_null(const auto& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
}

/// The settings of a rotary embedding; null: none.
nlohmann::json describe_rope(const RopeConfig& rope) {
    if (rope.kind == RopeConfig::Kind::none) {
        return nullptr;
    }
    nlohmann::json about = {{"kind", to_string(rope.kind)},
                            {"base", rope.theta},
                            {"rotated_dims", rope.rotary_dims},
                            {"neighbours_rotate", rope.pairs},
                            {"reversed", rope.reversed}};
    if (rope.kind != RopeConfig::Kind::standard) {
        about["factor"] = rope.factor;
        about["original_max_positions"] = rope.original_max_positions;
    }
    if (rope.kind == RopeConfig::Kind::llama3) {
        about["low_freq_factor"] = rope.low_freq_factor;
        about["high_freq_factor"] = rope.high_freq_factor;
    }
    if (rope.kind == RopeConfig::Kind::longrope) {
        about["short_factor"] = rope.short_factor;
        about["long_factor"] = rope.long_factor;
        about["attention_factor"] = or_null(rope.attention_factor);
    }
    if (rope.kind == RopeConfig::Kind::yarn) {
        about["beta_fast"] = rope.beta_fast;
        about["beta_slow"] = rope.beta_slow;
        about["attention_factor"] = or_null(rope.attention_factor);
        about["mscale"] = or_null(rope.mscale);
        about["mscale_all_dim"] = or_null(rope.mscale_all_dim);
        about["truncate"] = rope.truncate;
    }
    return about;
}

/// Adds the settings of config.json and generation_config.json other than sizes.
void describe_reading(const Checkpoint& checkpoint, nlohmann::json& about) {
    const ModelConfig& config = checkpoint.config;
    const ScaleConfig& scales = config.scales;
    const auto name_of_rope = [](LayerRope rope) {
        return rope == LayerRope::main ? "rope" : rope == LayerRope::local ? "local_rope" : "none";
    };
    about["rope"] = describe_rope(config.rope);
    about["local_rope"] = describe_rope(config.local_rope);
    about["layer_rope"] = nlohmann::json::array();
    for (const LayerRope rope : config.layer_rope) {
        about["layer_rope"].push_back(name_of_rope(rope));
    }
    about["sliding_windows"] = config.sliding_windows;
    about["norm"] = config.norm == NormKind::rms_norm ? "rms_norm"
                    : config.norm == NormKind::unit   ? "unit"
                                                      : "layer_norm";
    about["norm_weight"] = config.norm_weight == NormWeight::one_plus ? "one_plus"
                           : config.norm_weight == NormWeight::none   ? "none"
                                                                      : "as_stored";
    about["qk_norm_all_heads"] = config.qk_norm && config.qk_norm_all_heads;
    about["embedding_scale"] = scales.embedding;
    about["attention_scale"] = scales.attention.value_or(
        config.scale_attn_weights ? 1.0 / std::sqrt(static_cast<double>(config.head_dim)) : 1.0);
    about["attention_divided_by_layer"] = config.scale_attn_by_inverse_layer_idx;
    about["parallel_residual"] = config.parallel_residual;
    about["norms_before_sublayers"] = config.pre_norm;
    about["embedding_width"] = config.embed_dim;
    about["attention_softcap"] =
        scales.attention_softcap > 0 ? nlohmann::json(scales.attention_softcap) : nlohmann::json();
    about["residual_scale"] = scales.residual;
    about["logit_scale"] = scales.logits;
    about["qkv_limit"] = or_null(scales.qkv_limit);
    about["activation"] = to_string(config.activation);
    about["norm_eps"] = config.norm_eps;
    about["attention_bias"] = config.attention_bias;
    about["mlp_bias"] = config.mlp_bias;
    about["qk_norm"] = config.qk_norm || config.depth.use_qk_norm;
    about["logit_softcap"] = or_null(scales.logit_softcap);
    if (const ExpertsConfig& experts = config.experts; !experts.layers.empty()) {
        about["experts"] = {{"experts", experts.count},
                            {"chosen", experts.chosen},
                            {"expert_size", experts.intermediate_size},
                            {"weights_renormed", experts.renormed},
                            {"expert_layers", experts.layers}};
        if (experts.clamped) {
            about["experts"].update({{"alpha", experts.alpha}, {"limit", experts.limit}});
        }
    }
    const PonderConfig& ponder = config.ponder;
    about["method_settings"] = {{"threshold", number_or_null(ponder.threshold)},
                                {"top_k", ponder.top_k},
                                {"temperature", ponder.temperature},
                                {"multiply_start", ponder.multiply_start},
                                {"own", ponder.own}};
    const DepthMixingConfig& depth = config.depth;
    about["depth_settings"] = {{"stride", depth.stride},         {"recent_window", depth.recent_window},
                               {"streams", depth.streams},       {"sinkhorn_iters", depth.sinkhorn_iters},
                               {"block_size", depth.block_size}, {"dilation", depth.dilation},
                               {"period", depth.period}};
    about["start_token"] = or_null(config.bos_token_id);
    about["end_tokens"] = config.eos_token_ids;
    about["removed_name_parts"] = checkpoint.weights.removed_name_parts();
}

nlohmann::json describe_checkpoint(const Checkpoint& checkpoint) {
    const ModelConfig& config = checkpoint.config;
    std::int64_t parameters = 0;
    std::map<std::string, std::int64_t> dtypes;
    for (const std::string& name : checkpoint.weights.names()) {
        const TensorView& tensor = *checkpoint.weights.find(name);
        parameters += count_elements(tensor);
        dtypes[std::string(name_of(tensor.dtype))] += count_elements(tensor);
    }
    const WindowShape shape = resolve_windows(config, 0, 0);
    nlohmann::json methods = nlohmann::json::array();
    for (const MethodKind candidate : config.candidate_methods) {
        methods.push_back(to_string(candidate));
    }
    nlohmann::json tokenizer = nullptr;
    Notices about_tokens;
    if (checkpoint.vocabulary) {
        try {
            const std::optional<Tokenizer> opened = open_tokenizer(checkpoint);
            tokenizer = {{"tokens", opened->size()}, {"adds_start_token", opened->adds_start_token()}};
            about_tokens = tokenizer_notices(*opened, config.vocab_size);
        } catch (const Error& error) {
            tokenizer = {{"error", error.what()}}; // without a tokenizer, the checkpoint still runs on ids
        }
    }
    Notices notices = config.notices;
    notices.insert(notices.end(), about_tokens.begin(), about_tokens.end());
    nlohmann::json not_supported = nullptr;
    try {
        const ParameterLayout layout = parameter_layout(config);
        if (config.candidate_methods.size() < 2) { // the tensors of several candidates differ
            const ParameterSources sources = ParameterSources::find(layout, checkpoint);
            notices.insert(notices.end(), sources.notices.begin(), sources.notices.end());
        }
    } catch (const Error& error) {
        not_supported = error.what();
    }
    nlohmann::json about = {
        {"kind", "checkpoint"},
        {"path", checkpoint.folder.string()},
        {"architecture", to_string(config.architecture)},
        {"method", to_string(config.ponder.method)},
        {"candidate_methods", methods},
        {"max_steps", config.ponder.max_steps},
        {"start_state", config.has_start_state()}, // record --initial-state
        {"depth_mixing", to_string(config.depth.kind)},
        {"layers", config.layers},
        {"prelude_layers", config.sandwich.prelude},
        {"coda_layers", config.sandwich.coda},
        {"hidden_size", config.hidden_size},
        {"intermediate_size", config.intermediate_size},
        {"query_heads", config.query_heads},
        {"kv_heads", config.kv_heads},
        {"head_dim", config.head_dim},
        {"vocab_size", config.vocab_size},
        {"max_positions", config.max_positions},
        {"tied_embeddings", config.tied_embeddings},
        {"parameters", parameters},
        {"weight_bytes", checkpoint.weights.total_bytes()},
        {"dtypes", dtypes},
        {"files", checkpoint.weights.files().size()},
        {"tokenizer", tokenizer},
        {"memory_float32_bytes", run_bytes(config, static_cast<double>(parameters), 4, shape.context, 8)},
        {"memory_bfloat16_bytes", run_bytes(config, static_cast<double>(parameters), 2, shape.context, 8)},
        {"default_context", shape.context},
        {"default_stride", shape.stride},
        {"not_supported", not_supported}};
    write_notices(about, notices);
    describe_reading(checkpoint, about);
    return about;
}

/// The usual values of settings. The text prints only settings with other values.
const nlohmann::json& usual_settings() {
    static const nlohmann::json usual{{"norm_weight", "as_stored"},
                                      {"norms_before_sublayers", true},
                                      {"qk_norm", false},
                                      {"embedding_scale", 1.0},
                                      {"residual_scale", 1.0},
                                      {"logit_scale", 1.0},
                                      {"attention_softcap", nullptr},
                                      {"logit_softcap", nullptr},
                                      {"qkv_limit", nullptr},
                                      {"attention_divided_by_layer", false}};
    return usual;
}

void print_checkpoint(const nlohmann::json& about) {
    const auto number = [&about](const char* key) {
        return with_separators(about.at(key).get<std::int64_t>());
    };
    const auto text = [&about](const char* key) { return about.at(key).get<std::string>(); };
    std::cout << text("path") << ": a " << text("architecture") << " checkpoint";
    if (about.at("candidate_methods").size() > 1) {
        std::cout << " whose keys fit several methods:";
        for (const auto& method : about.at("candidate_methods")) {
            std::cout << ' ' << method.get<std::string>();
        }
        std::cout << " (choose with --method)";
    } else if (text("method") == "vanilla") {
        std::cout << " without pondering";
    } else {
        std::cout << " with " << text("method") << ", " << number("max_steps") << " further steps a token";
    }
    if (text("depth_mixing") != "none") {
        std::cout << ", depth mixing " << text("depth_mixing");
    }
    std::cout << "\n  " << number("parameters") << " parameters in " << number("files") << " file(s), "
              << human_bytes(about.at("weight_bytes").get<double>()) << " (";
    bool first = true;
    for (const auto& [dtype, elements] : about.at("dtypes").items()) {
        std::cout << (first ? "" : ", ") << dtype;
        first = false;
    }
    std::cout << ")\n  " << number("layers") << " layers, width " << number("hidden_size") << ", MLP "
              << number("intermediate_size") << ", " << number("query_heads") << " query heads, "
              << number("kv_heads") << " K/V heads of " << number("head_dim") << "\n  vocabulary "
              << number("vocab_size")
              << (about.at("tied_embeddings").get<bool>() ? ", tied head" : ", head of its own") << ", up to "
              << number("max_positions") << " tokens\n";
    for (const auto& [key, which] : {std::pair{"rope", ""}, {"local_rope", " in sliding layers"}}) {
        const nlohmann::json& rope = about.at(key);
        if (rope.is_null()) {
            continue;
        }
        std::cout << "  rotary positions of base " << rounded(rope.at("base").get<double>());
        if (rope.contains("factor")) {
            std::cout << ", scaled by " << rope.at("kind").get<std::string>() << ", factor "
                      << rounded(rope.at("factor").get<double>());
        }
        std::cout << which << '\n';
    }
    if (const nlohmann::json& ends = about.at("end_tokens"); !ends.empty()) {
        std::cout << "  generation ends with token "
                  << joined(ends, [](const nlohmann::json& id) { return id.dump(); }) << '\n';
    }
    const nlohmann::json& tokenizer = about.at("tokenizer");
    if (tokenizer.is_null()) {
        std::cout << "  no tokenizer: runs on token ids\n";
    } else if (tokenizer.contains("error")) {
        std::cout << "  tokenizer not usable: " << visible(tokenizer.at("error").get<std::string>()) << '\n';
    } else {
        std::cout << "  tokenizer of " << with_separators(tokenizer.at("tokens").get<std::int64_t>())
                  << " tokens" << (tokenizer.at("adds_start_token").get<bool>() ? ", adds a start token" : "")
                  << '\n';
    }
    std::cout << "  a run in windows of " << number("default_context") << " tokens, 8 at a time, needs about "
              << human_bytes(about.at("memory_float32_bytes").get<double>()) << " in float32, "
              << human_bytes(about.at("memory_bfloat16_bytes").get<double>()) << " in bfloat16\n";
    std::map<std::int64_t, std::int64_t> windows;
    for (const auto& window : about.at("sliding_windows")) {
        ++windows[window.get<std::int64_t>()];
    }
    windows.erase(0);
    for (const auto& [window, layers] : windows) {
        std::cout << "  " << layers << " of " << number("layers") << " layers see the last " << window
                  << " tokens only\n";
    }
    for (const auto& [key, usual] : usual_settings().items()) {
        if (about.at(key) != usual) {
            std::cout << "  unusual: " << key << ' ' << about.at(key).dump() << '\n';
        }
    }
    if (!about.at("not_supported").is_null()) {
        std::cout << "  cannot be run: " << visible(about.at("not_supported").get<std::string>()) << '\n';
    }
    for (const auto& notice : about.at("notices")) {
        std::cout << "  note: " << visible(notice.get<std::string>()) << '\n';
    }
}

struct InspectVerb {
    std::filesystem::path path;
    std::string method;
    bool json = false;

    void run() const {
        if (is_trace(path)) {
            inspect_trace(path, json);
            return;
        }
        std::error_code error;
        if (!std::filesystem::exists(path, error) && !error &&
            (path.extension() == ".ponder" || !is_hub_name(path.native()))) {
            throw InputError(ErrorId::file_missing, path, "a checkpoint folder or a trace",
                             "no such file or folder", "check the path");
        }
        nlohmann::json about;
        if (!method.empty()) {
            ModelOptions options;
            options.checkpoint = path;
            options.method = method;
            about = describe_checkpoint(options.open());
        } else {
            about = describe_checkpoint(Checkpoint::open(path));
        }
        if (json) {
            print_json(about);
        } else {
            print_checkpoint(about);
        }
    }
};

} // namespace

void add_inspect(CLI::App& program) {
    auto [app, verb] = add_verb<InspectVerb>(program, "inspect");
    app.add_option("path", verb.path, "Checkpoint folder or trace")->required();
    app.add_option("--method", verb.method, "Method, if config.json does not name one");
    app.add_flag("--json", verb.json, "Print the result as JSON");
    std::string methods = "Methods:\n";
    for (const MethodInfo& info : method_infos()) {
        methods += "  " + to_string(info.kind) + ": " + info.summary + "\n";
    }
    app.footer(methods + "Example:\n  ponderscope inspect sample_models/ponderlm-neox-1m");
}

} // namespace ponderscope::cli
