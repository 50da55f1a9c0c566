// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>

#include <vector>

namespace ponderscope {

class Theme;

/// A section of resources/docs/panels.md: what a panel shows, as one would explain it in a talk. Every panel
/// of panels.cpp has one, and so have the text and the first steps.
struct PanelHelp {
    QString title; ///< of the panel; "Text" for the centre
    QString brief; ///< a wrong conclusion to avoid, in a few words, shown below the panel
    QString text;  ///< Markdown, with the title
};

const std::vector<PanelHelp>& all_panel_help();
/// Null when there is none of that title.
const PanelHelp* panel_help(const QString& title);

/// Shows it in a sheet at \p anchor that the next click elsewhere or Escape closes. Returns the sheet.
QWidget* show_panel_help(const PanelHelp& help, QWidget* anchor, const Theme& theme);

} // namespace ponderscope
