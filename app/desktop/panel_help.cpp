// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/panel_help.h"

#include "views/common/theme.h"
#include "views/common/translated.h"

#include <QFrame>
#include <QGuiApplication>
#include <QLabel>
#include <QScreen>
#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>

#include <algorithm>

namespace ponderscope {

namespace {

#define HELP(text) QT_TRANSLATE_NOOP("Help", text)

constexpr PanelHelp helps[] = {
    {"text", HELP("Text"),
     HELP("The colour of a token is one number of the prediction that was made of it: NLL is −ln p(token | "
          "what stands before it) in nats, entropy is that of the whole distribution, rank is 1 + the number "
          "of tokens with larger logits, FLOPs count matrix products only. The ticks below are K_t, the last "
          "pondering step that ran, of the K that could run."),
     HELP("The read-out is head(Σ_k mass(t,k) · h(t,k)), h after the final norm. All of the mass lies on the "
          "last step that ran, except in PonderLM-3 (arXiv 2603.02023: the router's softmax) and adaptive "
          "latent CoT (2602.08220: r_k (1 − g_k))."),
     HELP("A colour is this model's surprise, not the difficulty of the word for a reader. More steps mean "
          "that more was computed, not that more was understood. A trace keeps a prediction with the token "
          "that made it; the window shows it at the token that was predicted, unless View → Show Values says "
          "otherwise."),
     HELP("surprise of the model, not difficulty of the word"),
     HELP("Hover shows a token, a click pins it, arrows move. Ctrl+wheel zooms from one token per line to a "
          "map of all sequences. Dragging, or Shift with a click or an arrow, chooses a span: its means "
          "stand below the text with the interval that its blocks allow, it can be copied, labelled and made "
          "a figure. A click on the colour scale holds its ends for every run and sequence, in the maps of "
          "that signal too. Numbers with a sign (A − B, gains) are white at 0, orange above and teal below, "
          "in text, map, heatmaps and figures. Gain at a step… in the list of colours or of bars makes a "
          "column of a signal at a step, of what the steps between gained, or of A minus B. A character that "
          "several tokens share is drawn once, its place divided among them. The context menu asks what if. "
          "Columns of your own (ponderscope annotate, ponderscope.annotate) colour the text, stand in the "
          "table and are found by name: tag = VERB. While a condition is looked for, the rest of the text "
          "steps back; below stands how many of which class were found and what they cost, with intervals "
          "from blocks of the whole sequence, and Send to makes Halting or Compare speak of them alone. The "
          "find bar completes names. Ctrl+B bookmarks a token and Ctrl+M writes a note on it or on the span, "
          "which is a label of the annotation \"note\" of run A. The scale of A − B never ends below what "
          "the mean of A is known to: smaller differences stay pale.")},
    {"library", HELP("Library"),
     HELP("Open traces, their runs and the sequences of run A. Behind a run stands the mean NLL of its "
          "scored tokens, below it the policy where it is not the checkpoint's own; the bar of a sequence is "
          "its NLL from beginning to end."),
     HELP("The mean NLL is over all scored tokens of the run, each of the same weight. Compare shows it with "
          "its 95 % interval."),
     HELP("Two means do not say whether two runs differ: Compare pairs the runs token by token. Means over "
          "different texts or tokenizers cannot be compared."),
     HELP("Compare shows whether runs differ."),
     HELP("Click makes a run A; Ctrl+click or the context menu makes it B. What-if runs, reruns and "
          "generated runs are temporary until Keep in a trace… copies them. F2 renames a run; its menu hides "
          "or removes it. A trace on another machine (File › Connect…) is only read: Fetch into a trace "
          "here… brings a run of it home. Check every byte, in the menu of a trace, compares it with what "
          "was written. Ctrl+PageUp and Ctrl+PageDown change the sequence.")},
    {"inspector", HELP("Inspector"),
     HELP("One token from inside: its numbers in runs A and B, the ten most probable next tokens of the "
          "read-out after every step, and how NLL, entropy and the halting value went from step to step."),
     HELP("The read-out at step n is the output that the token would have had if it had stopped at n. Gates: "
          "AdaPonderLM (arXiv 2603.01914) s_i = σ(fc_out · gelu(fc_in · h)); reach of PonderLM-3 "
          "(2603.02023) w_k; of adaptive latent CoT (2602.08220) r_k."),
     HELP("Candidates of early steps are read through a head that was trained on the last one: they are what "
          "the model would have answered there, not a thought that it had. The candidates of one token are "
          "no evidence about the method."),
     HELP("read-outs of early steps are answers, not thoughts"),
     HELP("A click on a step selects it in all views; “more” shows ten candidates instead of three.")},
    {"heatmap", HELP("Steps"),
     HELP("One number by token (left to right) and pondering step (top to bottom). A step that did not run "
          "is grey, which is no colour of the scale."),
     HELP("NLL, entropy, p1 − p2 and rank of the read-out at each step; KL(P_{k−1} ‖ P_k) and its reverse; "
          "cosine and relative difference of h_k and h_{k−1}; gate, router or halting mass as the method's "
          "paper defines it. The tooltip of the list names the definition. At the right, of runs recorded "
          "with “steps,layers”: what every layer's read-out says at every step of the chosen word."),
     HELP("Small KL or latent difference says that the read-out stopped moving, not that it is right. Steps "
          "after the first halted one were not computed: nothing can be read from grey."),
     HELP("grey was not computed: nothing can be read from it"),
     HELP("Wheel zooms, drag pans, double click shows all, a click selects the token and the step. “Add a "
          "map” puts another signal below, over the same tokens; ⤢ in the title fills the window with them. "
          "Where a pixel stands for many tokens it shows their mean, on a scale for means.")},
    {"depth", HELP("Depth"),
     HELP("How much of each earlier layer's value a layer mixes into its own, by layer and source, for the "
          "token in hand or as the mean of a sequence."),
     HELP("Depth-Attention (arXiv 2606.05014): α = softmax_j(q̄ · k_j / √d_h) over the sources S(l) and the "
          "layer itself, v̂_l = Σ_j α_j v̂_j + α_l v_l. mHC, Block AttnRes and DenseFormer as that paper's "
          "baselines define them."),
     HELP("Weights are not causes: the mass on a source is not its effect (arXiv 2606.13168). Leave the "
          "source out and look at the change of NLL. A layer whose weights hardly change from token to token "
          "is marked; its picture says nothing about this text."),
     HELP("weights are not causes: ablate and compare"),
     HELP("Hover reads a cell, a click selects the layer; the context menu leaves a source out and runs "
          "again.")},
    {"attention", HELP("Attention"),
     HELP("What the pinned token read: the weight of every earlier token in the sequence attention, by layer "
          "or by the heads of one layer. Each head's weights sum to one."),
     HELP("softmax_j(q · k_j / √d_h + bias) over the slots that the query may see (methods: causal, per "
          "step, or all earlier slots of the interleaved order). Where a token has several slots, their "
          "weights are added."),
     HELP("Weights are not causes: a token with a large weight may have a value of no effect, and the first "
          "token of a window often takes what no other wants. Tokens before the window's beginning were "
          "never seen."),
     HELP("weights are not causes"),
     HELP("A click on a word of the text pins it; hover reads a cell, a click on a cell goes on from that "
          "token.")},
    {"experts", HELP("Experts"),
     HELP(
         "Which experts of a mixture each token chose in one layer, coloured by their weights. At the right: "
         "the share of the tokens that chose each expert over the whole run, and, with a run B over the same "
         "text, how many experts both runs chose."),
     HELP(
         "p = softmax(W_r y) over E experts; the k largest are chosen, and the layer adds Σ w_e · MLP_e(y)."),
     HELP("An expert that is often chosen need not matter most, and an expert has no meaning that its load "
          "tells. Numbers of experts are arbitrary: expert 3 of one layer has nothing to do with expert 3 of "
          "another layer or of another model."),
     HELP("an expert's load says how often it is used, not what it does"),
     HELP("Hover reads a cell, a click selects the token; the list chooses the layer for all views.")},
    {"halting", HELP("Halting"),
     HELP("How many tokens stopped at each step, their mean NLL, and which types of token get how many "
          "steps."),
     HELP("K_t is the last step that ran; the next runs iff s_k ≥ τ (AdaPonderLM, arXiv 2603.01914), w_{k+1} "
          "≥ τ (PonderLM-3, 2603.02023) or r_{k+1} ≥ τ (adaptive latent CoT, 2602.08220)."),
     HELP("Tokens that stop early have a low NLL because they are easy: that is no evidence that stopping "
          "helped. Means over few tokens are marked by their counts; do not rank them."),
     HELP("Tokens that stop early are the easy ones; lower NLL there is no effect of stopping."),
     HELP("A click on a token type finds it in the text.")},
    {"lab", HELP("Policy lab"),
     HELP("What another halting rule would have done with the recorded steps: mean steps, mean NLL, and the "
          "steps of every word in the text. Table: all policies in rows, replay and rerun beside each other, "
          "Δ NLL to full with its interval and the share of the FLOPs that is saved."),
     HELP(
         "learned(θ), fixed, uniform and geometric at an equal mean, CALM margin and cosine, entropy and its "
         "difference, KL(P_{k−1} ‖ P_k), latent difference, stable argmax; a token stops at the first k at "
         "which the rule says so. The oracle takes the step of least NLL + lambda · step and is no rule."),
     HELP("Replay is not rerun: in a replay tokens do not affect each other, and a single token can differ "
          "by nats from what the model would do. The oracle knows the next token: no policy has a lower NLL "
          "at the same cost. A policy thinks better only if it beats the best blind rule: one depth for all "
          "tokens, or one of two drawn for each."),
     HELP("replay is not rerun"),
     HELP("Choose a rule, move its threshold, look at the text. A click on a row or on a point of a front "
          "chooses its policy. The table sorts by its headings, copies as text, CSV or Markdown, becomes a "
          "figure, and Rerun runs the rows that are selected one after the other; every rerun stays, in the "
          "table and on the front.")},
    {"think", HELP("Think"),
     HELP("The model reads the prompt and goes on, token by token. Each token comes with the steps it took, "
          "its gates, and what the read-out after every step would have said. The slider goes back to what "
          "was known at each token."),
     HELP("Exact: the prompt in one pass, then cached decoding, in which every token is computed once from "
          "its own slots and the keys and values before it. Greedy takes the largest logit; sampling draws "
          "from softmax(logits / temperature), cut to the smallest set with probability p, seeded. When it "
          "ends, prompt and continuation are recorded as one run."),
     HELP("One continuation is one draw. That a word took more steps says that the halting rule let it go "
          "on, not that the model hesitated as a person does."),
     HELP("More steps are computation, not doubt."),
     HELP("Ctrl+Enter starts; the slider and ▶ move time. A word's context menu gives it more steps, or "
          "leaves a source of the depth attention out, and shows the difference.")},
    {"compare", HELP("Compare"),
     HELP("Runs over the same text against each other: mean NLL, paired difference with its interval, "
          "perplexity = exp(mean NLL), and token against token. A run that was cut off, or is being "
          "recorded, takes part as A or B only: runs are compared over the tokens that all of them scored."),
     HELP("Paired bootstrap, the same draws for every run: whole sequences where there are at least 30, else "
          "circular blocks of tokens of a length chosen from the data. Runs of different tokenizers have no "
          "tokens in common: ponderscope compare pairs them by the bytes under their tokens."),
     HELP("Over fewer than 30 sequences, an interval that leaves out 0 holds for other parts of these texts "
          "and says nothing about other texts. It never speaks of other seeds of training, or of models of "
          "another size."),
     HELP("intervals are of this text and these two checkpoints"),
     HELP("Ctrl+Shift+B swaps A and B; a click on a dot selects its token.")},
    {"pareto", HELP("Pareto"),
     HELP("Perplexity, exp(mean NLL), against compute: one line a policy, one point of it a threshold; "
          "single runs are dots. Bands are 95 % of the loss against full: paired over the same tokens, one "
          "point at a time, about full's own perplexity."),
     HELP("FLOPs of a token: 2 per multiply–add, matrix products only, visible keys counted; what is "
          "computed only to be recorded is not counted."),
     HELP("Points of replays and of reruns are not the same thing and are marked. Fewer FLOPs need not take "
          "less time."),
     HELP("FLOPs are not seconds; replay is not rerun"),
     HELP("A click on a point chooses its policy for the lab. The wheel and a dragged rectangle zoom, Shift "
          "and dragging move, a double click shows everything. A click in the legend hides a series.")},
    {"training", HELP("Training"),
     HELP("How the models of the open trainings learned: loss and NLL of held-out text, mean steps, gates by "
          "step, over steps, tokens or time. A training that is running is followed."),
     HELP("Loss is the mean cross-entropy in nats a token since the point before, without the penalty; "
          "gradient norm is before clipping. Held-out NLL, gates and steps are of a part of the held-out "
          "text on the way and of all of it at the end, with the weights as they are stored. A gate of step "
          "k is a mean over the tokens that got there."),
     HELP("Two curves are comparable at equal tokens and of the same texts, and one seed is one draw. Losses "
          "of different tokenizers are not comparable at all. Time is what this machine took, with whatever "
          "else it did."),
     HELP("one seed is one draw; compare at equal tokens"),
     HELP("A ring is the same passage of held-out text, recorded at that step: a "
          "click makes it run A, Ctrl+click run B, and all other views show it.")},
};

#undef HELP

/// The sheet: a popup, so that a click elsewhere and Escape close it.
class Sheet : public QFrame {
public:
    Sheet(const QString& text, const Theme& theme, QWidget* parent) : QFrame(parent, Qt::Popup) {
        setAttribute(Qt::WA_DeleteOnClose);
        setObjectName(QStringLiteral("panelHelp"));
        setAccessibleName(tr("Help"));
        setFrameShape(QFrame::Box);
        auto* label = new QLabel(text, this);
        label->setWordWrap(true);
        label->setTextFormat(Qt::RichText);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
        label->setAccessibleName(tr("Help"));
        label->setFont(theme.body());
        label->setFixedWidth(440);
        auto* column = new QVBoxLayout(this);
        column->setContentsMargins(20, 16, 8, 16);
        auto* scroll = new QScrollArea(this);
        scroll->setFrameShape(QFrame::NoFrame);
        scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        scroll->setWidget(label);
        scroll->setFocusPolicy(Qt::StrongFocus);
        scroll->setAccessibleName(tr("Help"));
        label->adjustSize();
        column->addWidget(scroll);
        const int bar =
            scroll->verticalScrollBar()->sizeHint().width() + 8; // and what a style puts beside it
        const int most = parent->screen()->availableGeometry().height() - 60;
        setFixedSize(label->width() + bar + 28, std::min(label->height() + 32, most));
    }
};

} // namespace

std::span<const PanelHelp> all_panel_help() {
    return helps;
}

const PanelHelp* panel_help(const QString& panel) {
    const auto* const found = std::find_if(std::begin(helps), std::end(helps), [&](const PanelHelp& help) {
        return QLatin1String(help.panel) == panel;
    });
    return found == std::end(helps) ? nullptr : found;
}

QString panel_help_text(const PanelHelp& help) {
    const auto part = [](const QString& heading, const char* text) {
        return QStringLiteral("<p><b>%1</b><br>%2</p>").arg(heading, tr(text).toHtmlEscaped());
    };
    return QStringLiteral("<h3>%1</h3>").arg(tr(help.title).toHtmlEscaped()) +
           part(tr("What is computed"), help.shows) + part(tr("Where it is defined"), help.defined) +
           part(tr("What must not be concluded"), help.caution) + part(tr("Mouse and keyboard"), help.use);
}

QString panel_help_brief(const PanelHelp& help) {
    return tr(help.brief);
}

QWidget* show_panel_help(const PanelHelp& help, QWidget* anchor, const Theme& theme) {
    auto* sheet = new Sheet(panel_help_text(help), theme, anchor->window());
    QPoint place = anchor->mapToGlobal(QPoint(anchor->width() - sheet->width(), anchor->height() + 2));
    if (const QScreen* screen = anchor->screen()) {
        const QRect room = screen->availableGeometry();
        place.setX(std::clamp(place.x(), room.left(), std::max(room.left(), room.right() - sheet->width())));
        place.setY(std::clamp(place.y(), room.top(), std::max(room.top(), room.bottom() - sheet->height())));
    }
    sheet->move(place);
    sheet->show();
    return sheet;
}

} // namespace ponderscope
