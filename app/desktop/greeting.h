// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"

#include <functional>
#include <vector>

class QTextBrowser;

namespace ponderscope {

class DockLayout;
class OpenTraces;
class RunController;

/// The page of a window without a trace: samples, recent files, and what else to begin with, as links.
class Greeting : public ShellPart {
    Q_OBJECT
public:
    Greeting(const Shell& shell, OpenTraces& traces, DockLayout& docks, RunController& runs);
    ~Greeting() override;
    [[nodiscard]] QTextBrowser& welcome() { return *welcome_; }
    /// Whether the page was shown, or something was opened before.
    [[nodiscard]] bool isDone() const { return greeted_; }
    void placeWelcome();

public Q_SLOTS:
    void showWelcome(); ///< covers the panels until something opens
    void hideWelcome();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void write();

    OpenTraces& traces_;
    RunController& runs_;
    QTextBrowser* welcome_;
    std::vector<std::function<void()>> links_; ///< what each link does, by its number
    bool greeted_ = false;
};

} // namespace ponderscope
