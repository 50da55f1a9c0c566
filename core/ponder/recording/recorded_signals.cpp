// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/recorded_signals.h"

#include "core/model/depth_sources.h"
#include "core/trace/column_labels.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace ponderscope {

namespace {

/// Describes the state at the end of a step.
std::string name_of_states(const ModelConfig& config, const Method& method) {
    return method.layers_are_steps() ? "residual stream after the block"
           : config.recurs()         ? "state after the core's blocks"
                                     : "state after the final norm";
}

/// Number of Block AttnRes's snapshots at the end of the stack, including the embedding.
std::int64_t snapshots(const ModelConfig& config) {
    const std::int64_t layers_a_block = (config.depth.block_size + 1) / 2;
    return 1 + config.layers / layers_a_block;
}

/// Signals of depth mixing: the weights of its sources.
std::vector<RecordedSignal> depth_signals(const ModelConfig& config, std::int64_t steps) {
    const std::int64_t sublayers = 2 * config.layers;
    switch (config.depth.kind) {
    case DepthMixing::depth_attention: {
        const DepthColumns columns(config);
        return {
            {{signal::depth_weights,
              {"token", "step", "layer", "source", "head"},
              "weight",
              "Depth-attention weights",
              with_column_labels("Share of each source layer's value in the value that a layer's attention "
                                 "reads, by KV head (arXiv 2606.05014); 0 where a layer has no such source.",
                                 columns.labels()),
              DType::f16,
              SignalStorage::compressed},
             {steps, config.layers, columns.size(), config.kv_heads}}};
    }
    case DepthMixing::mhc: {
        const auto of_streams = [&](const char* name, const char* title, const std::string& what) {
            return RecordedSignal{{name,
                                   {"token", "step", "sublayer", "stream"},
                                   "weight",
                                   title,
                                   what + "; sublayers are attention and MLP in turn.",
                                   DType::f16},
                                  {steps, sublayers, config.depth.streams}};
        };
        return {of_streams(signal::mhc_read, "What sublayers read of each stream",
                           "Weight p of each residual stream in a sublayer's input"),
                of_streams(signal::mhc_write, "What sublayers write to each stream",
                           "Weight w of a sublayer's output in each residual stream")};
    }
    case DepthMixing::attnres: {
        std::vector<std::string> labels{"embedding"};
        for (std::int64_t snapshot = 1; snapshot < snapshots(config); ++snapshot) {
            labels.push_back("snapshot " + std::to_string(snapshot));
        }
        labels.emplace_back("running stream");
        return {{{signal::attnres_weights,
                  {"token", "step", "sublayer", "source"},
                  "weight",
                  "Weights over snapshots",
                  with_column_labels("Share of each snapshot of the stream in a sublayer's input; the last "
                                     "sublayer is the final mixture.",
                                     labels),
                  DType::f16,
                  SignalStorage::compressed},
                 {steps, sublayers + 1, snapshots(config) + 1}}};
    }
    case DepthMixing::none:
    case DepthMixing::denseformer: // its weights are parameters, equal for all tokens
        break;
    }
    return {};
}

/// Signals of the layers of a step, each read out at every step.
std::vector<RecordedSignal> lens_signals(const ModelConfig& config, std::int64_t steps) {
    std::vector<std::string> labels;
    for (std::int64_t layer = config.core_begin(); layer < config.core_end(); ++layer) {
        labels.push_back(std::to_string(layer));
    }
    const auto declared = [&](const char* name, const char* unit, const char* title, const char* what,
                              DType dtype = DType::f32, bool of_target = false) {
        SignalInfo info{name,
                        {"token", "step", "layer"},
                        unit,
                        title,
                        with_column_labels(std::string(what) + " when the layer's state goes through the "
                                                               "final norm and the head.",
                                           labels),
                        dtype};
        info.of_target = of_target;
        return RecordedSignal{std::move(info), {steps, config.core_end() - config.core_begin()}, true};
    };
    return {
        declared(signal::layer_nll, "nats", "NLL by step and layer",
                 "Negative log-likelihood of the next token", DType::f32, true),
        declared(signal::layer_entropy, "nats", "Entropy by step and layer", "Entropy of the distribution"),
        declared(signal::layer_max_probability, "probability", "Maximum probability by step and layer",
                 "Largest probability"),
        declared(signal::layer_rank, "", "Rank by step and layer",
                 "1 + the number of logits above the next token's", DType::i32, true),
        declared(signal::layer_argmax, "", "Most likely token by step and layer", "Id of the largest logit",
                 DType::i32)};
}

struct RouterSignal {
    const char* name;
    const char* axis; ///< axis after the layer; nullptr: none
    const char* unit;
    const char* title;
    const char* what;
};

constexpr RouterSignal router_table[] = {
    {signal::router_experts, "choice", "", "Chosen experts",
     "Experts that the router chooses, by falling probability."},
    {signal::router_weights, "choice", "weight", "Weights of the chosen experts",
     "Factor of the output of each chosen expert."},
    {signal::router_entropy, nullptr, "nats", "Router entropy",
     "Entropy of the router's probabilities over all experts."},
    {signal::router_mass, nullptr, "probability", "Chosen mass",
     "Sum of the router's probabilities of the chosen experts."},
    {signal::router_margin, nullptr, "probability", "Router margin",
     "Probability of the last chosen expert minus probability of the first expert not chosen."},
    {signal::router_probabilities, "expert", "probability", "Router probabilities",
     "Probability of every expert."}};

std::vector<RecordedSignal> router_signals(const ModelConfig& config, const Method& method,
                                           RecordedExperts what) {
    const ExpertsConfig& experts = config.experts;
    std::vector<std::string> layers;
    for (const std::int64_t layer : experts.layers) {
        layers.push_back(std::to_string(layer));
    }
    // Expert ids take one byte if the ids and did_not_run fit.
    const DType id = experts.count <= 128 ? DType::i8 : DType::i16;
    std::vector<RecordedSignal> signals;
    for (const RouterSignal& one : router_table) {
        const bool of_all = one.name == signal::router_probabilities;
        if (of_all && what != RecordedExperts::probabilities) {
            continue;
        }
        RecordedSignal& declared = signals.emplace_back();
        declared.info = {
            one.name,
            {"token"},
            one.unit,
            one.title,
            with_column_labels(one.what + (" Experts: " + std::to_string(experts.count) + "."), layers),
            one.name == signal::router_experts ? id : DType::f16};
        if (!method.layers_are_steps()) {
            declared.info.axes.emplace_back("step");
            declared.shape.push_back(method.max_steps() + 1);
        }
        declared.info.axes.emplace_back("layer");
        declared.shape.push_back(static_cast<std::int64_t>(experts.layers.size()));
        if (one.axis != nullptr) {
            declared.info.axes.emplace_back(one.axis);
            declared.shape.push_back(of_all ? experts.count : experts.chosen);
        }
        declared.on_request = declared.half = declared.sparse = true; // layers above an exit do not run
    }
    return signals;
}

RecordedSignal state_signal(const StateChoice& choice, const ModelConfig& config, const Method& method,
                            const std::string& states) {
    RecordedSignal declared{
        {signal::state, {"token", "step"}, "", "States", "The " + states + ".", DType::f16},
        {method.max_steps() + 1},
        true,
        true,
        true};
    if (!choice.layers.empty()) {
        std::vector<std::string> labels;
        for (const std::int64_t layer : choice.layers) {
            labels.push_back(std::to_string(layer));
        }
        declared.info.axes.emplace_back("layer");
        declared.info.description =
            with_column_labels("The residual stream after each chosen layer.", labels);
        declared.shape.push_back(static_cast<std::int64_t>(labels.size()));
    }
    declared.info.axes.emplace_back("dim");
    declared.shape.push_back(
        state_width(config, method, choice.layers.empty() ? StatePlace::end_of_step : choice.layers.front()));
    return declared;
}

/// Axes `layer` and `head` index the chosen layers and heads. `back` is the distance from query to key in
/// tokens. `key_step` exists if a query may see several slots of a token.
RecordedSignal attention_signal(const AttentionChoice& choice, const Method& method) {
    const std::int64_t steps = method.max_steps() + 1;
    RecordedSignal declared{{signal::attention,
                             {"token", "step", "layer", "head"},
                             "weight",
                             "Sequence attention",
                             "Attention weight of the key `back` tokens before the query, for " +
                                 choice.text() + " in this order; 0 where the query does not see the key.",
                             DType::f16,
                             SignalStorage::trimmed},
                            {steps, static_cast<std::int64_t>(choice.layers.size()),
                             static_cast<std::int64_t>(choice.heads.size())},
                            true,
                            true};
    if (method.visibility() != VisibilityRule::per_step && steps > 1) {
        declared.info.axes.emplace_back("key_step");
        declared.shape.push_back(steps);
    }
    declared.info.axes.emplace_back("back");
    declared.shape.push_back(1);
    return declared;
}

} // namespace

bool reads_steps_anyway(const Method& method, const RunPlan& plan) {
    return method.mixture() && !plan.selects(method) && !method.mixes_states() &&
           method.visibility() != VisibilityRule::interleaved;
}

std::int64_t state_width(const ModelConfig& config, const Method& method, std::int64_t layer) {
    // In OPT, blocks may be wider than a step's input and output.
    return layer == StatePlace::end_of_step && !method.layers_are_steps() ? config.embed_dim
                                                                          : config.hidden_size;
}

std::int64_t RecordedSignal::token_bytes() const {
    return std::accumulate(shape.begin(), shape.end(), static_cast<std::int64_t>(size_of(info.dtype)),
                           std::multiplies<>());
}

std::vector<RecordedSignal> recorded_signals(const ModelConfig& config, const Method& method,
                                             const RunPlan& plan, RecordLevel level) {
    std::vector<RecordedSignal> signals;
    if (level == RecordLevel::nll) {
        return signals;
    }
    const bool free_steps = method.max_steps() == 0 || reads_steps_anyway(method, plan);
    const std::string unit = method.layers_are_steps() ? "layer" : "step";
    const std::string where = " of the read-out at each " + unit;
    const std::int64_t steps = method.max_steps() + 1;
    const auto declare = [&](const char* name, const char* measure, const std::string& title,
                             const std::string& description, DType dtype = DType::f32) -> SignalInfo& {
        return signals
            .emplace_back(
                RecordedSignal{{name, {"token", "step"}, measure, title, description, dtype}, {steps}})
            .info;
    };
    const auto declare_by_token = [&](const char* name, const char* measure, const std::string& title,
                                      const std::string& description, DType dtype = DType::f32) {
        declare(name, measure, title, description, dtype).axes = {"token"};
        signals.back().shape.clear();
    };
    const auto append = [&](std::vector<RecordedSignal> more) {
        std::move(more.begin(), more.end(), std::back_inserter(signals));
    };
    if (free_steps || level == RecordLevel::steps) {
        declare(signal::nll, "nats", "NLL by " + unit,
                "Negative log-likelihood of the next token" + where + ".")
            .of_target = true;
        declare(signal::entropy, "nats", "Entropy by " + unit, "Entropy of the distribution" + where + ".");
        declare(signal::max_probability, "probability", "Maximum probability by " + unit,
                "Largest probability" + where + ".");
        declare(signal::margin, "probability", "Margin by " + unit,
                "Largest minus second largest probability" + where + ".");
        declare(signal::rank, "", "Rank by " + unit,
                "1 + the number of logits above the next token's" + where + ".", DType::i32)
            .of_target = true;
        declare(signal::argmax, "", "Most likely token by " + unit,
                "Id of the largest logit" + where + "; of equal logits the lowest id.", DType::i32);
        declare(signal::candidate_ids, "", "Candidates by " + unit,
                "Ids of the most likely tokens" + where + ".", DType::i32)
            .axes.emplace_back("candidate");
        signals.back().shape.push_back(std::min(recorded_candidates, config.vocab_size));
        declare(signal::candidate_probabilities, "probability", "Candidate probabilities by " + unit,
                "Probabilities of the most likely tokens" + where + ".", DType::f16)
            .axes.emplace_back("candidate");
        signals.back().shape.push_back(std::min(recorded_candidates, config.vocab_size));
    }
    const std::string states = name_of_states(config, method);
    if (level == RecordLevel::steps && method.max_steps() > 0) {
        // With a start state, step 0 has a previous state.
        const std::string first =
            config.has_state_before() ? "; h^{-1} is the state before step 0." : "; 0 at " + unit + " 0.";
        declare(signal::kl_previous_current, "nats", "D_KL(p_k−1 ‖ p_k)",
                "KL(P_{k-1} || P_k), P_k the distribution" + where + " k; 0 at " + unit + " 0.");
        declare(signal::kl_current_previous, "nats", "D_KL(p_k ‖ p_k−1)",
                "KL(P_k || P_{k-1}); 0 at " + unit + " 0.");
        declare(signal::cosine, "", "Cosine to the " + unit + " before",
                "Cosine of h^k and h^{k-1}, h^k the " + states + first);
        declare(signal::latent_difference, "", "Latent difference",
                "|h^k - h^{k-1}| / |h^k|, h^k the " + states + first);
        declare(signal::state_norm, "", "Norm by " + unit, "|h^k|, h^k the " + states + ".");
        declare(signal::update_cosine, "", "Cosine of successive updates",
                "Cosine of u^k = h^k - h^{k-1} and u^{k-1}: near 1 the state keeps its direction, below 0 it "
                "turns back; 0 before the second update.");
        if (method.max_steps() > 1) {
            declare(signal::acceleration, "", "Acceleration",
                    "|(h^k - h^{k-1}) - (h^{k-1} - h^{k-2})| / |h^k - h^{k-1}|, h^k the " + states +
                        "; 0 at " + unit + "s 0 and 1.");
        }
        declare_by_token(signal::prediction_depth, "", "Prediction depth",
                         "First " + unit + " from which the most likely token is the same as at the last " +
                             unit + ".",
                         DType::i32);
        declare_by_token(signal::answer_flips, "", "Answer flips",
                         "How often the most likely token changes from one " + unit + " to the next.",
                         DType::i32);
    }
    for (SignalInfo& own : method.signals()) {
        // A method with a single step has no gate to record, unless the last step has a value, too.
        const bool asked = own.name != signal::gate || method.max_steps() > 0 || method.values_last_step();
        if (asked && (own.name != signal::expected_nll || level == RecordLevel::steps)) {
            RecordedSignal& declared = signals.emplace_back(RecordedSignal{std::move(own), {}});
            if (declared.info.axes.size() > 1) { // a gate may have no value at the last step
                const bool fewer = declared.info.name == signal::gate && !method.values_last_step();
                declared.shape = {fewer ? method.max_steps() : steps};
            }
        }
    }
    if (method.mixes_states()) {
        declare(signal::halting_mass, "", "Halting mass", "Mass of each step's state in the output.");
    }
    const std::int64_t refreshes =
        plan.iterates(method) ? std::min<std::int64_t>(plan.refreshes.value_or(0), 64) : 0;
    if (refreshes > 0) {
        declare(signal::jacobi_difference, "", "Jacobi difference",
                "Largest movement of an input of the token's slots in each refresh of all slots; 0 "
                "once it is still.")
            .axes = {"token", "iteration"};
        signals.back().shape = {refreshes};
    }
    if (!method.layers_are_steps()) { // with layers as steps, a step has one layer
        append(depth_signals(config, steps));
    }
    if (plan.states) {
        signals.push_back(state_signal(*plan.states, config, method, states));
    }
    if (plan.lens) {
        append(lens_signals(config, steps));
    }
    if (plan.experts != RecordedExperts::none) {
        append(router_signals(config, method, plan.experts));
    }
    if (!plan.attention.none()) {
        signals.push_back(attention_signal(plan.attention, method));
    }
    return signals;
}

} // namespace ponderscope
