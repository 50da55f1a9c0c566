// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/panels.h"

#include "app/desktop/dock_layout.h"
#include "app/desktop/figure_export.h"
#include "app/desktop/run_controller.h"
#include "app/desktop/run_edits.h"
#include "app/desktop/think_panel.h"
#include "views/attention/attention_view.h"
#include "views/compare/compare_view.h"
#include "views/depth/depth_view.h"
#include "views/experts/experts_view.h"
#include "views/figure/figure_panel.h"
#include "views/heatmap/heatmap_view.h"
#include "views/inspector/inspector_view.h"
#include "views/library/library_panel.h"
#include "views/policy/policy_data.h"
#include "views/policy/policy_lab.h"
#include "views/text/find_bar.h"
#include "views/text/span_bar.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <type_traits>

namespace ponderscope {
namespace {

using figure::FigureKind;

template <class View>
QWidget* make(const ViewContext& context, QWidget* parent) {
    static_assert(std::is_base_of_v<ShowsCommand, View>, "a panel says how to make what it shows");
    return new View(context, parent);
}

/// A panel of figures side by side.
template <FigureKind... kinds>
QWidget* make_figures(const ViewContext& context, QWidget* parent) {
    return new FigurePanel(context, page_of({kinds...}), parent);
}

void attach_library(QWidget& panel, const WindowParts& parts) {
    auto* library = static_cast<LibraryPanel*>(&panel);
    QObject::connect(library, &LibraryPanel::renameRequested, &parts.edits, &RunEdits::renameRun);
    QObject::connect(library, &LibraryPanel::removeRequested, &parts.edits, &RunEdits::removeRun);
    QObject::connect(library, &LibraryPanel::keepRequested, &parts.edits, &RunEdits::keepRun);
}

void attach_heatmap(QWidget& panel, const WindowParts& parts) {
    auto* heatmap = static_cast<HeatmapView*>(&panel);
    parts.figures.addFiller([heatmap](figure::FigureSpec& spec) {
        if (spec.kind == FigureKind::step_heatmap && heatmap->hasSignal()) {
            spec.signal = heatmap->signalName().toStdString();
        }
    });
}

void attach_think(QWidget& panel, const WindowParts& parts) {
    parts.runs.attachThink(static_cast<ThinkPanel&>(panel));
}

void attach_halting(QWidget& panel, const WindowParts& parts) {
    QObject::connect(static_cast<FigurePanel*>(&panel), &FigurePanel::linkChosen, &parts.text,
                     [&text = parts.text](const QString& link) {
                         if (link.startsWith(QLatin1String("type:"))) {
                             text.findText(u"id = "_s + link.mid(5));
                         }
                     });
}

void attach_compare(QWidget& panel, const WindowParts& parts) {
    auto* compare = static_cast<CompareView*>(&panel);
    QObject::connect(&parts.text.findBar(), &FindBar::sent, compare, &CompareView::setSubset);
    QObject::connect(&parts.text.spanBar(), &SpanBar::sent, compare, &CompareView::setSubset);
}

void attach_lab(QWidget& panel, const WindowParts& parts) {
    auto* lab = static_cast<PolicyLab*>(&panel);
    parts.figures.addFiller([lab](figure::FigureSpec& spec) {
        if (spec.kind == FigureKind::policy_table || spec.kind == FigureKind::policy_front) {
            lab->fillFigure(spec);
        }
    });
    QObject::connect(lab, &PolicyLab::figureWanted, &parts.figures,
                     [&figures = parts.figures] { figures.exportFigure(FigureKind::policy_table); });
    QObject::connect(lab, &PolicyLab::replayed, &parts.text.view(), &TextView::setReplay);
    QObject::connect(&parts.text, &TextPanel::replayDismissed, lab, [lab] { lab->setColoursText(false); });
    QObject::connect(lab, &PolicyLab::rerunRequested, &parts.runs, &RunController::rerun);
    QObject::connect(lab, &PolicyLab::rerunCancelRequested, &parts.runs, &RunController::cancelRecording);
    QObject::connect(&parts.runs, &RunController::rerunProgressed, lab, &PolicyLab::setRerunProgress);
    QObject::connect(&parts.runs, &RunController::rerunEnded, lab, [lab] { lab->setRerunProgress(-1); });
}

QWidget* make_pareto(const ViewContext& context, QWidget* parent) {
    auto* panel = new FigurePanel(context, front_figure(), parent);
    QObject::connect(panel, &FigurePanel::linkChosen, &PolicyData::of(context), &PolicyData::chooseLink);
    return panel;
}

QWidget* make_training(const ViewContext& context, QWidget* parent) {
    return new FigurePanel(context, training_page(), parent);
}

constexpr Panel registered_panels[] = {
    {"library", "Library", PanelPlace::left, "Open runs", true, make<LibraryPanel>, attach_library},
    {"inspector", "Inspector", PanelPlace::right, "Inspector", true, make<InspectorView>},
    {"heatmap", "Steps", PanelPlace::upper, "Signals by token and step", true, make<HeatmapView>,
     attach_heatmap},
    {"depth", "Depth", PanelPlace::upper, "Weights by layer and source", true, make<DepthView>},
    {"attention", "Attention", PanelPlace::upper, "What the pinned token attends to", true,
     make<AttentionView>},
    {"experts", "Experts", PanelPlace::upper, "Experts by token, and their load", true, make<ExpertsView>},
    {"think", "Think", PanelPlace::lower, "Live generation", true, make<ThinkPanel>, attach_think},
    {"halting", "Halting", PanelPlace::lower, "Halting by step and token type", true,
     make_figures<FigureKind::steps_histogram, FigureKind::nll_by_halt_step, FigureKind::steps_by_type>,
     attach_halting},
    {"lab", "Policy lab", PanelPlace::lower, "Other halting rules, by replay", false, make<PolicyLab>,
     attach_lab},
    {"compare", "Compare", PanelPlace::lower, "Runs over the same text", false, make<CompareView>,
     attach_compare},
    {"pareto", "Pareto", PanelPlace::lower, "Perplexity against compute", false, make_pareto},
    {"training", "Training", PanelPlace::lower, "Training curves", true, make_training},
};

} // namespace

void attach_panels(const WindowParts& parts) {
    for (const Panel& panel : registered_panels) {
        if (panel.attach != nullptr) {
            panel.attach(*parts.docks.panel(QString::fromLatin1(panel.name)), parts);
        }
    }
}

std::span<const Panel> panels() {
    return registered_panels;
}

} // namespace ponderscope
