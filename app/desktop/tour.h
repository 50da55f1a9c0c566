// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QString>
#include <QWidget>

#include <functional>
#include <vector>

class QLabel;
class QPushButton;

namespace ponderscope {

class Theme;

/// One stop of a tour: what is pointed at, and what is said there.
struct TourStop {
    QString title;
    QString text;
    std::function<void()> prepare;    ///< brings it to the screen; may be empty
    std::function<QWidget*()> target; ///< what is pointed at; null points at nothing
};

/// Leads through the window: a card with words beside what they are about, the rest dimmed. Arrow keys and
/// Enter go on, Escape ends. Clicks go through to the window below, so that one can try what is said.
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
    QWidget* card_;
    QLabel* title_;
    QLabel* text_;
    QLabel* count_;
    QPushButton* back_;
    QPushButton* on_;
    int stop_ = -1;
};

} // namespace ponderscope
