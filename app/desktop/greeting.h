// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"

#include <QPointer>
#include <QString>
#include <QWidget>

#include <functional>
#include <vector>

class QFrame;
class QLabel;
class QPushButton;

namespace ponderscope {

class DockLayout;
class RunController;
class Theme;
class Tour;
class WelcomePage;

/// The first minutes: the welcome page, the samples, the tour.
class Greeting : public ShellPart {
    Q_OBJECT
public:
    Greeting(const Shell& shell, DockLayout& docks, RunController& runs);
    ~Greeting() override;
    [[nodiscard]] WelcomePage& welcome() { return *welcome_; }
    [[nodiscard]] Tour* tour() { return tour_; } ///< null unless one is going on
    /// The page was shown, or something was opened before it could be.
    [[nodiscard]] bool isDone() const { return greeted_; }
    void placeWelcome();

public Q_SLOTS:
    void showWelcome(); ///< over the panels; hidden when anything opens
    void hideWelcome();
    /// Six stops over the open trace, or over the sample, which is opened or recorded first.
    void startTour();
    void openSample();            ///< the user's copy of the recorded sample
    void recordSample(int model); ///< over the passage, into a trace of the user's own

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
    Tour* tour_ = nullptr;
    bool tourWanted_ = false; ///< as soon as a run is there
    bool greeted_ = false;
};

/// A stop of a tour: its place and its text.
struct TourStop {
    QString title;
    QString text;
    std::function<void()> prepare;    ///< brings it to the screen; may be empty
    std::function<QWidget*()> target; ///< the widget to point at; null: none
};

/// A tour of the window: a card beside the explained widget, with the rest dimmed. Arrow keys and Enter
/// continue, Escape ends. Clicks reach the window below.
class Tour : public QWidget {
    Q_OBJECT
public:
    Tour(std::vector<TourStop> stops, Theme& theme, QWidget* window);
    [[nodiscard]] int stop() const { return stop_; }
    [[nodiscard]] int stops() const { return static_cast<int>(stops_.size()); }

public Q_SLOTS:
    void next();
    void previous();
    void end();

Q_SIGNALS:
    void ended();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void show(int stop);
    void place();

    std::vector<TourStop> stops_;
    Theme& theme_;
    QPointer<QWidget> target_;
    QFrame* card_;
    QLabel* title_;
    QLabel* text_;
    QLabel* count_;
    QPushButton* back_;
    QPushButton* on_;
    int stop_ = -1;
};

} // namespace ponderscope
