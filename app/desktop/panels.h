// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QString>

#include <span>

class QWidget;

namespace ponderscope {

/// The default position of a panel. Panels with the same position share it as tabs.
enum class PanelPlace {
    left,
    right,
    upper, ///< below the text
    lower, ///< below that; in low windows it joins the upper ones
};

class DockLayout;
class FigureExport;
class Greeting;
class RunController;
class RunEdits;
class SessionState;
class TextPanel;
class WhatIf;

/// The parts of a window that panels and commands speak to. They outlive both.
struct WindowParts {
    TextPanel& text;
    DockLayout& docks;
    RunController& runs;
    RunEdits& edits;
    WhatIf& whatIf;
    FigureExport& figures;
    SessionState& session;
    Greeting& greeting;
};

/// A view as the window knows it. A new view is a folder in views/ and a line in panels.cpp.
struct Panel {
    const char* name;  ///< of its layout, and for --tab
    const char* title;
    PanelPlace place;
    const char* heading; ///< title of the panel
    bool caveat;         ///< true: the caveat is shown below the panel; false: its charts show it
    QWidget* (*make)(const ViewContext& context, QWidget* parent);
    /// Connects it with other parts; null: it speaks through the selection alone.
    void (*attach)(QWidget& panel, const WindowParts& parts) = nullptr;
};

/// Calls attach of every panel.
void attach_panels(const WindowParts& parts);
/// All panels, in the order of their tabs.
std::span<const Panel> panels();

} // namespace ponderscope
