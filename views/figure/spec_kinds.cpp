// SPDX-License-Identifier: GPL-3.0-or-later
// The kinds of figures.
#include "views/figure/spec.h"

#include <algorithm>
#include <array>

namespace ponderscope::figure {

std::span<const KindInfo> figure_kinds() {
    static constexpr std::array kinds{
        KindInfo{FigureKind::token_text, "token_text", "Text with colour",
                 "The text; every token on a background that tells a quantity.", false, true,
                 "quantity,annotation,step_ticks,attribution,sequence,tokens"},
        KindInfo{FigureKind::step_heatmap, "step_heatmap", "Step heatmap",
                 "A signal over tokens and steps; halted steps are grey.", false, false,
                 "signal,attribution,sequence,tokens"},
        KindInfo{FigureKind::nll_comparison, "nll_comparison", "NLL comparison",
                 "Mean NLL with 95 % intervals, and token against token.", false, true,
                 "scatter,block,replicates,sequence,tokens"},
        KindInfo{FigureKind::perplexity_table, "perplexity_table", "Perplexity table",
                 "Means with intervals, written as LaTeX and CSV too.", false, true,
                 "block,replicates,sequence,tokens"},
        KindInfo{FigureKind::winners, "winners", "Who wins where",
                 "Difference of NLL by token class, type, position, difficulty.", true, true, "by"},
        KindInfo{FigureKind::task_accuracy, "task_accuracy", "Accuracy on a task",
                 "Accuracy against mean steps or FLOPs of runs, with bands.", true, true,
                 "task,cost,replicates"},
        KindInfo{FigureKind::policy_front, "policy_front", "Pareto fronts (replay)",
                 "Perplexity against compute of halting policies.", true, true,
                 "policies,cost,bands,log,block,replicates"},
        KindInfo{FigureKind::policy_table, "policy_table", "Policy table",
                 "Halting policies, replay and rerun beside each other; as LaTeX and CSV too.", false, true,
                 "policies,block,replicates"},
        KindInfo{
            FigureKind::policy_comparison, "policy_comparison", "Against blind and random halting (replay)",
            "NLL of the best blind rule and of random halting minus a policy's, at equal cost, with bands.",
            true, false, "policies,block,replicates"},
        KindInfo{FigureKind::matched_rules, "matched_rules", "Rules at equal cost (replay)",
                 "NLL of every halting rule at equal mean steps or FLOPs, with bands.", true, false,
                 "policies,quantity,block,replicates"},
        KindInfo{FigureKind::parameter_sweep, "parameter_sweep", "Parameter sweep (replay)",
                 "NLL, steps or FLOPs against a policy's threshold.", true, false, "policies,quantity"},
        KindInfo{FigureKind::steps_histogram, "steps_histogram", "Histogram of steps",
                 "Share of tokens by the last step that they ran."},
        KindInfo{FigureKind::nll_by_halt_step, "nll_by_halt_step", "NLL by halt step",
                 "Mean and middle half, by the last step that ran."},
        KindInfo{FigureKind::gate_curves, "gate_curves", "Gate curves", "Gates or halting masses by step."},
        KindInfo{FigureKind::signal_by_step, "signal_by_step", "KL, cosine and others by step",
                 "Mean and middle half of a signal by step.", true, false, "signal"},
        KindInfo{FigureKind::layers_by_step, "layers_by_step", "Layers by step",
                 "Mean of what every layer's read-out says at every step.", true, false, "signal"},
        KindInfo{FigureKind::jacobi_convergence, "jacobi_convergence", "Jacobi convergence",
                 "How far the latent inputs moved in each refresh."},
        KindInfo{FigureKind::steps_entropy, "steps_entropy", "Steps against entropy",
                 "Tokens by halt step and entropy."},
        KindInfo{FigureKind::steps_probability, "steps_probability", "Steps against target probability",
                 "Tokens by halt step and probability of the true token."},
        KindInfo{FigureKind::steps_by_type, "steps_by_type", "Steps by token type",
                 "Mean steps of classes or frequent types, with intervals.", true, false, "by,attribution"},
        KindInfo{FigureKind::depth_weights, "depth_weights", "Depth weight map",
                 "Mean weight by layer and source."},
        KindInfo{FigureKind::experts, "experts", "Load of the experts",
                 "Share of the tokens that chose each expert, by layer."},
        KindInfo{FigureKind::depth_ablation, "depth_ablation", "Weights against ablation",
                 "Mean weight of a source and the change in NLL without it.", true, true, "block,replicates"},
        KindInfo{FigureKind::training_curves, "training_curves", "Training curves",
                 "Loss, steps or gates of trainings, as they learned.", true, true, "curve,axis,smoothing"},
        KindInfo{FigureKind::panels, "panels", "Panels", "Several figures on one page, with letters.", false,
                 true, "panels,columns,letters"}};
    return kinds;
}

const KindInfo& info_of(FigureKind kind) {
    const auto kinds = figure_kinds();
    return *std::find_if(kinds.begin(), kinds.end(), [&](const KindInfo& one) { return one.kind == kind; });
}

bool reads(FigureKind kind, std::string_view key) {
    const std::string keys = "," + std::string(info_of(kind).keys) + ",";
    return keys.find("," + std::string(key) + ",") != std::string::npos;
}

const std::string& shown_name(const FigureSpec& spec, const std::string& name) {
    for (const SeriesSpec& one : spec.series) {
        if (one.name == name && !one.as.empty()) {
            return one.as;
        }
    }
    return name;
}

std::string_view name_of(FigureKind kind) {
    return info_of(kind).name;
}

} // namespace ponderscope::figure
