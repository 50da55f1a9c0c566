// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"

#include <QString>

namespace ponderscope {

class DockLayout;
class RunController;
class WelcomePage;

/// The first minutes: the welcome page and the samples.
class Greeting : public ShellPart {
    Q_OBJECT
public:
    Greeting(const Shell& shell, DockLayout& docks, RunController& runs);
    ~Greeting() override;
    [[nodiscard]] WelcomePage& welcome() { return *welcome_; }
    /// Whether the page was shown, or something was opened before.
    [[nodiscard]] bool isDone() const { return greeted_; }
    void placeWelcome();

public Q_SLOTS:
    void showWelcome(); ///< covers the panels until something opens
    void hideWelcome();
    void openSample();            ///< opens the user's copy of the recorded sample
    void recordSample(int model); ///< records a model over the sample text into the user's own trace

Q_SIGNALS:
    void openWanted(const QString& path);
    void openFilesWanted();
    void failed(const QString& sentence);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    DockLayout& docks_;
    RunController& runs_;
    WelcomePage* welcome_ = nullptr;
    bool greeted_ = false;
};

} // namespace ponderscope
