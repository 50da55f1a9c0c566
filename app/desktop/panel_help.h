// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>

#include <vector>

namespace ponderscope {

class Theme;

/// A section of resources/docs/panels.md. The sections are: every panel, "Text", and "First steps".
struct PanelHelp {
    QString title; ///< title of the panel; "Text" for the centre
    QString brief; ///< a short warning against a wrong conclusion, shown below the panel
    QString text;  ///< Markdown, including the title
};

const std::vector<PanelHelp>& all_panel_help();
/// Null: no section with this title.
const PanelHelp* panel_help(const QString& title);

/// Shows the help in a sheet at \p anchor. A click elsewhere or Escape closes it. Returns the sheet.
QWidget* show_panel_help(const PanelHelp& help, QWidget* anchor, const Theme& theme);

} // namespace ponderscope
