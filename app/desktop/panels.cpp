// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/panels.h"

#include "app/desktop/think_panel.h"
#include "views/attention/attention_view.h"
#include "views/compare/compare_view.h"
#include "views/depth/depth_view.h"
#include "views/experts/experts_view.h"
#include "views/halting/halting_view.h"
#include "views/heatmap/heatmap_view.h"
#include "views/inspector/inspector_view.h"
#include "views/library/library_panel.h"
#include "views/policy/pareto_view.h"
#include "views/policy/policy_lab.h"
#include "views/training/training_view.h"

#include <QCoreApplication>

#include <type_traits>

namespace ponderscope {
namespace {

template <class View>
QWidget* make(const ViewContext& context, QWidget* parent) {
    static_assert(std::is_base_of_v<ShowsCommand, View>, "a panel says how to make what it shows");
    return new View(context, parent);
}

constexpr Panel all[] = {
    {"library", QT_TRANSLATE_NOOP("Panels", "Library"), PanelPlace::left,
     QT_TRANSLATE_NOOP("Panels", "Open runs"), true, make<LibraryPanel>},
    {"inspector", QT_TRANSLATE_NOOP("Panels", "Inspector"), PanelPlace::right,
     QT_TRANSLATE_NOOP("Panels", "Inspector"), true, make<InspectorView>},
    {"heatmap", QT_TRANSLATE_NOOP("Panels", "Steps"), PanelPlace::upper,
     QT_TRANSLATE_NOOP("Panels", "Signals by token and step"), true, make<HeatmapView>},
    {"depth", QT_TRANSLATE_NOOP("Panels", "Depth"), PanelPlace::upper,
     QT_TRANSLATE_NOOP("Panels", "Weights by layer and source"), true, make<DepthView>},
    {"attention", QT_TRANSLATE_NOOP("Panels", "Attention"), PanelPlace::upper,
     QT_TRANSLATE_NOOP("Panels", "What the pinned token attends to"), true, make<AttentionView>},
    {"experts", QT_TRANSLATE_NOOP("Panels", "Experts"), PanelPlace::upper,
     QT_TRANSLATE_NOOP("Panels", "Experts by token, and their load"), true, make<ExpertsView>},
    {"think", QT_TRANSLATE_NOOP("Panels", "Think"), PanelPlace::lower,
     QT_TRANSLATE_NOOP("Panels", "Live generation"), true, make<ThinkPanel>},
    {"halting", QT_TRANSLATE_NOOP("Panels", "Halting"), PanelPlace::lower,
     QT_TRANSLATE_NOOP("Panels", "Halting by step and token type"), true, make<HaltingView>},
    {"lab", QT_TRANSLATE_NOOP("Panels", "Policy lab"), PanelPlace::lower,
     QT_TRANSLATE_NOOP("Panels", "Other halting rules, by replay"), false, make<PolicyLab>},
    {"compare", QT_TRANSLATE_NOOP("Panels", "Compare"), PanelPlace::lower,
     QT_TRANSLATE_NOOP("Panels", "Runs over the same text"), false, make<CompareView>},
    {"pareto", QT_TRANSLATE_NOOP("Panels", "Pareto"), PanelPlace::lower,
     QT_TRANSLATE_NOOP("Panels", "Perplexity against compute"), false, make<ParetoView>},
    {"training", QT_TRANSLATE_NOOP("Panels", "Training"), PanelPlace::lower,
     QT_TRANSLATE_NOOP("Panels", "Training curves"), true, make<TrainingView>},
};

} // namespace

std::span<const Panel> panels() {
    return all;
}

} // namespace ponderscope
