// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <span>

class QWidget;

namespace ponderscope {

/// The default position of a panel. Panels with the same position are tabs.
enum class PanelPlace {
    left,
    right,
    upper, ///< below the text
    lower, ///< below `upper`; in low windows a tab of `upper`
};

class DockLayout;
class FigureExport;
class Greeting;
class OpenTraces;
class RunController;
class RunEdits;
class SessionState;
class TextPanel;
class WhatIf;

/// The parts of a window that panels and commands use. They outlive panels and commands.
struct WindowParts {
    TextPanel& text;
    DockLayout& docks;
    OpenTraces& traces;
    RunController& runs;
    RunEdits& edits;
    WhatIf& whatIf;
    FigureExport& figures;
    SessionState& session;
    Greeting& greeting;
};

/// A view's registration. A new view needs a folder in views/ and a line in panels.cpp.
struct Panel {
    const char* name; ///< name in layouts and for --tab
    const char* title;
    PanelPlace place;
    const char* heading; ///< title of the panel's content
    bool caveat;         ///< show the warning below the panel; false: its charts show it
    QWidget* (*make)(const ViewContext& context, QWidget* parent);
    /// Connects the panel with other parts; null: the panel needs no other part.
    void (*attach)(QWidget& panel, const WindowParts& parts) = nullptr;
};

/// Calls attach for every panel.
void attach_panels(const WindowParts& parts);
/// All panels, in the order of their tabs.
std::span<const Panel> panels();

} // namespace ponderscope
