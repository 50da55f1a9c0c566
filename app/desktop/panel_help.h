// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>

#include <span>

namespace ponderscope {

class Theme;

/// What a view shows, in the words of a person who has to defend it in a talk. Every panel of panels.cpp has
/// one, and so has the text. All strings are to be translated (translated.h).
struct PanelHelp {
    const char* panel;   ///< its name in panels.cpp; "text" for the centre
    const char* title;   ///< as it is written on the panel
    const char* shows;   ///< what is computed
    const char* defined; ///< by which equation, of which paper
    const char* caution; ///< what must not be concluded from it
    const char* brief;   ///< the caution in a few words: it stands below the panel
    const char* use;     ///< what mouse and keyboard do here
};

std::span<const PanelHelp> all_panel_help();
/// Null when there is none of that name.
const PanelHelp* panel_help(const QString& panel);
/// As rich text, with headings; what a screen reader reads as well.
QString panel_help_text(const PanelHelp& help);
QString panel_help_brief(const PanelHelp& help);

/// Shows it in a sheet at \p anchor that the next click elsewhere or Escape closes. Returns the sheet.
QWidget* show_panel_help(const PanelHelp& help, QWidget* anchor, const Theme& theme);

} // namespace ponderscope
