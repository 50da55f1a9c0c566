// SPDX-License-Identifier: GPL-3.0-or-later
// The kinds of figures.
#include "views/figure/spec.h"

#include <QtGlobal>

#include <algorithm>
#include <array>

namespace ponderscope::figure {

std::span<const KindInfo> figure_kinds() {
    static constexpr std::array kinds{
        KindInfo{FigureKind::token_text, "token_text", QT_TRANSLATE_NOOP("Figure", "Text with colour"),
                 QT_TRANSLATE_NOOP("Figure", "The text; every token on a background that tells a quantity."),
                 false, true, "quantity,annotation,step_ticks,attribution,sequence,tokens"},
        KindInfo{FigureKind::step_heatmap, "step_heatmap", QT_TRANSLATE_NOOP("Figure", "Step heatmap"),
                 QT_TRANSLATE_NOOP("Figure", "A signal over tokens and steps; halted steps are grey."), false,
                 false, "signal,attribution,sequence,tokens"},
        KindInfo{FigureKind::nll_comparison, "nll_comparison", QT_TRANSLATE_NOOP("Figure", "NLL comparison"),
                 QT_TRANSLATE_NOOP("Figure", "Mean NLL with 95 % intervals, and token against token."), false,
                 true, "scatter,block,replicates,sequence,tokens"},
        KindInfo{FigureKind::perplexity_table, "perplexity_table",
                 QT_TRANSLATE_NOOP("Figure", "Perplexity table"),
                 QT_TRANSLATE_NOOP("Figure", "Means with intervals, written as LaTeX and CSV too."), false,
                 true, "block,replicates,sequence,tokens"},
        KindInfo{FigureKind::winners, "winners", QT_TRANSLATE_NOOP("Figure", "Who wins where"),
                 QT_TRANSLATE_NOOP("Figure", "Difference of NLL by token class, type, position, difficulty."),
                 true, true, "by"},
        KindInfo{FigureKind::task_accuracy, "task_accuracy", QT_TRANSLATE_NOOP("Figure", "Accuracy on a task"),
                 QT_TRANSLATE_NOOP("Figure", "Accuracy against mean steps or FLOPs of runs, with bands."), true,
                 true, "task,cost,replicates"},
        KindInfo{FigureKind::policy_front, "policy_front",
                 QT_TRANSLATE_NOOP("Figure", "Pareto fronts (replay)"),
                 QT_TRANSLATE_NOOP("Figure", "Perplexity against compute of halting policies."), true, true,
                 "policies,cost,bands,log,block,replicates"},
        KindInfo{FigureKind::policy_table, "policy_table", QT_TRANSLATE_NOOP("Figure", "Policy table"),
                 QT_TRANSLATE_NOOP("Figure", "Halting policies, replay and rerun beside each other; as LaTeX "
                                             "and CSV too."),
                 false, true, "policies,block,replicates"},
        KindInfo{FigureKind::policy_comparison, "policy_comparison",
                 QT_TRANSLATE_NOOP("Figure", "Against blind and random halting (replay)"),
                 QT_TRANSLATE_NOOP("Figure",
                                   "NLL of the best blind rule and of random halting minus a policy's, at "
                                   "equal cost, with bands."),
                 true, false, "policies,block,replicates"},
        KindInfo{FigureKind::matched_rules, "matched_rules",
                 QT_TRANSLATE_NOOP("Figure", "Rules at equal cost (replay)"),
                 QT_TRANSLATE_NOOP("Figure",
                                   "NLL of every halting rule at equal mean steps or FLOPs, with bands."),
                 true, false, "policies,quantity,block,replicates"},
        KindInfo{FigureKind::parameter_sweep, "parameter_sweep",
                 QT_TRANSLATE_NOOP("Figure", "Parameter sweep (replay)"),
                 QT_TRANSLATE_NOOP("Figure", "NLL, steps or FLOPs against a policy's threshold."), true,
                 false, "policies,quantity"},
        KindInfo{FigureKind::steps_histogram, "steps_histogram",
                 QT_TRANSLATE_NOOP("Figure", "Histogram of steps"),
                 QT_TRANSLATE_NOOP("Figure", "Share of tokens by the last step that they ran.")},
        KindInfo{FigureKind::nll_by_halt_step, "nll_by_halt_step",
                 QT_TRANSLATE_NOOP("Figure", "NLL by halt step"),
                 QT_TRANSLATE_NOOP("Figure", "Mean and middle half, by the last step that ran.")},
        KindInfo{FigureKind::gate_curves, "gate_curves", QT_TRANSLATE_NOOP("Figure", "Gate curves"),
                 QT_TRANSLATE_NOOP("Figure", "Gates or halting masses by step.")},
        KindInfo{FigureKind::signal_by_step, "signal_by_step",
                 QT_TRANSLATE_NOOP("Figure", "KL, cosine and others by step"),
                 QT_TRANSLATE_NOOP("Figure", "Mean and middle half of a signal by step."), true, false,
                 "signal"},
        KindInfo{FigureKind::layers_by_step, "layers_by_step", QT_TRANSLATE_NOOP("Figure", "Layers by step"),
                 QT_TRANSLATE_NOOP("Figure", "Mean of what every layer's read-out says at every step."), true,
                 false, "signal"},
        KindInfo{FigureKind::jacobi_convergence, "jacobi_convergence",
                 QT_TRANSLATE_NOOP("Figure", "Jacobi convergence"),
                 QT_TRANSLATE_NOOP("Figure", "How far the latent inputs moved in each refresh.")},
        KindInfo{FigureKind::steps_entropy, "steps_entropy",
                 QT_TRANSLATE_NOOP("Figure", "Steps against entropy"),
                 QT_TRANSLATE_NOOP("Figure", "Tokens by halt step and entropy.")},
        KindInfo{FigureKind::steps_probability, "steps_probability",
                 QT_TRANSLATE_NOOP("Figure", "Steps against target probability"),
                 QT_TRANSLATE_NOOP("Figure", "Tokens by halt step and probability of the true token.")},
        KindInfo{FigureKind::steps_by_type, "steps_by_type",
                 QT_TRANSLATE_NOOP("Figure", "Steps by token type"),
                 QT_TRANSLATE_NOOP("Figure", "Mean steps of classes or frequent types, with intervals."),
                 true, false, "by,attribution"},
        KindInfo{FigureKind::depth_weights, "depth_weights", QT_TRANSLATE_NOOP("Figure", "Depth weight map"),
                 QT_TRANSLATE_NOOP("Figure", "Mean weight by layer and source.")},
        KindInfo{FigureKind::experts, "experts", QT_TRANSLATE_NOOP("Figure", "Load of the experts"),
                 QT_TRANSLATE_NOOP("Figure", "Share of the tokens that chose each expert, by layer.")},
        KindInfo{FigureKind::depth_ablation, "depth_ablation",
                 QT_TRANSLATE_NOOP("Figure", "Weights against ablation"),
                 QT_TRANSLATE_NOOP("Figure", "Mean weight of a source and the change in NLL without it."),
                 true, true, "block,replicates"},
        KindInfo{FigureKind::training_curves, "training_curves",
                 QT_TRANSLATE_NOOP("Figure", "Training curves"),
                 QT_TRANSLATE_NOOP("Figure", "Loss, steps or gates of trainings, as they learned."), true,
                 true, "curve,axis,smoothing"},
        KindInfo{FigureKind::panels, "panels", QT_TRANSLATE_NOOP("Figure", "Panels"),
                 QT_TRANSLATE_NOOP("Figure", "Several figures on one page, with letters."), false, true,
                 "panels,columns,letters"}};
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
