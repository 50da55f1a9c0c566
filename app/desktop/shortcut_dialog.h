// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/command_palette.h"

#include <QDialog>

namespace ponderscope {

/// Every shortcut of the program: those of the menus, and what keys and mouse do in the views.
class ShortcutDialog : public QDialog {
    Q_OBJECT
public:
    ShortcutDialog(const std::vector<CommandModel::Command>& commands, const Theme& theme, QWidget* parent);
};

} // namespace ponderscope
