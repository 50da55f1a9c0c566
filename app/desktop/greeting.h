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

/// The page of a window without a trace, with links: samples, recent files and other first steps.
class Greeting : public ShellPart {
    Q_OBJECT
public:
    Greeting(const Shell& shell, OpenTraces& traces, DockLayout& docks, RunController& runs);
    ~Greeting() override;
    [[nodiscard]] QTextBrowser& welcome() { return *welcome_; }
    /// Whether the page was shown, or a file was opened before.
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
    std::vector<std::function<void()>> links_; ///< the actions of the links, by number
    bool greeted_ = false;
};

} // namespace ponderscope
