// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/view_context.h"

#include <QString>

#include <span>

class QWidget;

namespace ponderscope {

/// Where a panel stands by default. Panels of one place share it as tabs.
enum class PanelPlace {
    left,
    right,
    upper, ///< below the text
    lower, ///< below that; in low windows it joins the upper ones
};

/// A view as the window knows it. A new view is a folder in views/ and a line in panels.cpp.
struct Panel {
    const char* name;  ///< of its layout, and for --tab
    const char* title; ///< to be translated
    PanelPlace place;
    const char* heading; ///< what it shows, as it stands on the panel; to be translated
    bool caveat;         ///< what must not be concluded stands below it; false: its charts say it
    QWidget* (*make)(const ViewContext& context, QWidget* parent);
};

/// In the order of their tabs.
std::span<const Panel> panels();

} // namespace ponderscope
