// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/recorded_signals.h"

#include "core/ponder/recording/attention_recorder.h"
#include "core/ponder/recording/depth_recorder.h"
#include "core/ponder/recording/lens_recorder.h"
#include "core/ponder/recording/router_recorder.h"
#include "core/ponder/recording/state_recorder.h"

#include <algorithm>
#include <string>
#include <utility>

namespace ponderscope {

namespace {

/// What the end of a step leaves.
std::string name_of_states(const ModelConfig& config, const Method& method) {
    return method.layers_are_steps() ? "residual stream after the block"
           : config.recurs()         ? "state after the core's blocks"
                                     : "state after the final norm";
}

} // namespace

bool reads_steps_anyway(const Method& method, const RunPlan& plan) {
    return method.mixture() && !plan.selects(method) && !method.mixes_states() &&
           method.visibility() != VisibilityRule::interleaved;
}

std::int64_t recorded_refreshes(const Method& method, const RunPlan& plan) {
    return plan.iterates(method) ? std::min<std::int64_t>(plan.refreshes.value_or(0), 64) : 0;
}

ModelConfig mixing_heard(ModelConfig config, const Method& method) {
    if (method.layers_are_steps()) {
        config.depth.kind = DepthMixing::none;
    }
    return config;
}

std::vector<SignalInfo> recorded_signals(const ModelConfig& config, const Method& method, const RunPlan& plan,
                                         RecordLevel level) {
    std::vector<SignalInfo> signals;
    if (level == RecordLevel::nll) {
        return signals;
    }
    const bool free_steps = method.max_steps() == 0 || reads_steps_anyway(method, plan);
    const std::string unit = method.layers_are_steps() ? "layer" : "step";
    const std::string where = " of the read-out at each " + unit;
    const auto declare = [&](const char* name, const char* measure, const std::string& title,
                             const std::string& description, DType dtype = DType::f32) -> SignalInfo& {
        return signals.emplace_back(
            SignalInfo{name, {"token", "step"}, measure, title, description, dtype});
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
                "Id of the largest logit" + where + "; of equals the lowest.", DType::i32);
        declare(signal::candidate_ids, "", "Candidates by " + unit,
                "Ids of the most likely tokens" + where + ".", DType::i32)
            .axes.emplace_back("candidate");
        declare(signal::candidate_probabilities, "probability", "Candidate probabilities by " + unit,
                "Probabilities of the most likely tokens" + where + ".", DType::f16)
            .axes.emplace_back("candidate");
    }
    const std::string states = name_of_states(config, method);
    if (level == RecordLevel::steps && method.max_steps() > 0) {
        // A stack with a start state has something before its first step.
        const std::string first =
            config.has_state_before() ? "; at step 0 to the state before it." : "; 0 at " + unit + " 0.";
        declare(signal::kl_previous_current, "nats", "D_KL(p_k−1 ‖ p_k)",
                "KL(P_{k-1} || P_k): what the " + unit + " before would lose under this " + unit +
                    "'s distribution; 0 at " + unit + " 0.");
        declare(signal::kl_current_previous, "nats", "D_KL(p_k ‖ p_k−1)",
                "KL(P_k || P_{k-1}); 0 at " + unit + " 0.");
        declare(signal::cosine, "", "Cosine to the " + unit + " before",
                "Cosine of the " + states + " and that of the " + unit + " before" + first);
        declare(signal::latent_difference, "", "Latent difference",
                "|h^k - h^{k-1}| / |h^k|, h^k the " + states + first);
        declare(signal::state_norm, "", "Norm by " + unit, "|h^k|, h^k the " + states + ".");
        declare(signal::update_cosine, "", "Cosine of successive updates",
                "Cosine of u^k = h^k - h^{k-1} and u^{k-1}: near 1 the state goes straight on, below 0 it "
                "turns back; 0 where there are no two updates.");
        if (method.max_steps() > 1) {
            declare(signal::acceleration, "", "Acceleration",
                    "|(h^k - h^{k-1}) - (h^{k-1} - h^{k-2})| / |h^k - h^{k-1}|, h^k the " + states +
                        "; 0 at " + unit + "s 0 and 1.");
        }
        signals.push_back({signal::prediction_depth,
                           {"token"},
                           "",
                           "Prediction depth",
                           "First " + unit +
                               " from which on the most likely token stays what it is at the "
                               "last one.",
                           DType::i32});
        signals.push_back({signal::answer_flips,
                           {"token"},
                           "",
                           "Answer flips",
                           "How often the most likely token changes from one " + unit + " to the next.",
                           DType::i32});
    }
    for (SignalInfo& own : method.signals()) {
        // Of one step alone nobody asks whether there is another.
        const bool asked = own.name != signal::gate || method.max_steps() > 0 || method.values_last_step();
        if (asked && (own.name != signal::expected_nll || level == RecordLevel::steps)) {
            signals.push_back(std::move(own));
        }
    }
    if (method.mixes_states()) {
        signals.push_back({signal::halting_mass,
                           {"token", "step"},
                           "",
                           "Halting mass",
                           "Mass of each step's state in the output."});
    }
    if (recorded_refreshes(method, plan) > 0) {
        signals.push_back(
            {signal::jacobi_difference,
             {"token", "iteration"},
             "",
             "Jacobi difference",
             "Largest movement of an input of the token's slots in each refresh of all slots; 0 "
             "once it is still."});
    }
    if (plan.iterates(method)) {
        signals.push_back({signal::scoring_flops,
                           {"token"},
                           "FLOPs",
                           "FLOPs of the passes",
                           "What all passes cost for this token, slots that were computed again counted "
                           "again; `flops` is what decoding costs."});
    }
    for (SignalInfo& depth : DepthRecorder::infos(mixing_heard(config, method))) {
        signals.push_back(std::move(depth));
    }
    if (plan.states) {
        signals.push_back(StateForm(*plan.states, config, method).info(*plan.states, states));
    }
    if (plan.lens) {
        for (SignalInfo& info : LensRecorder::infos(config)) {
            signals.push_back(std::move(info));
        }
    }
    if (plan.experts != RecordedExperts::none) {
        for (SignalInfo& info : RouterRecorder::infos(config, method, plan.experts)) {
            signals.push_back(std::move(info));
        }
    }
    if (!plan.attention.none()) {
        signals.push_back(
            AttentionForm(plan.attention, method.visibility(), method.max_steps()).info(plan.attention));
    }
    return signals;
}

} // namespace ponderscope
