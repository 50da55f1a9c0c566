// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/message_bar.h"
#include "app/desktop/settings.h"
#include "views/common/view_context.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QMainWindow>
#include <QObject>

namespace ponderscope {

/// Objects that the parts of a window share. They outlive the parts.
struct Shell {
    QMainWindow& window; ///< the parent of dialogs and menus
    ViewContext views;
    Settings& settings;
    MessageBar& messages;
    TextPanel& text;
};

/// A part of the window that is not a widget. Each part owns one topic with its actions and connections.
class ShellPart : public QObject {
    Q_OBJECT
public:
    explicit ShellPart(const Shell& shell)
        : window_(&shell.window),
          data_(shell.views.data),
          selection_(shell.views.selection),
          theme_(shell.views.theme),
          settings_(shell.settings),
          messages_(&shell.messages),
          text_(&shell.text) {}

protected:
    QMainWindow* window_;
    TraceData& data_;
    Selection& selection_;
    Theme& theme_;
    Settings& settings_;
    MessageBar* messages_;
    TextPanel* text_;
};

} // namespace ponderscope
