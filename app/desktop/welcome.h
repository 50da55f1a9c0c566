// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/samples.h"

#include <QStringList>
#include <QWidget>

class QLabel;
class QVBoxLayout;

namespace ponderscope {

class Theme;

/// The page of a window without a trace: samples, recent files, and a drop area.
class WelcomePage : public QWidget {
    Q_OBJECT
public:
    WelcomePage(Theme& theme, QWidget* parent);
    void setSamples(const Samples& samples);
    void setRecent(const QStringList& paths);
    /// Shows that the dragged object can be dropped.
    void setDropHint(bool on);

Q_SIGNALS:
    void openRequested();                 ///< the user wants the file dialog
    void pathChosen(const QString& path); ///< a recent file was chosen
    void recordedChosen();                ///< the recorded sample was chosen
    void sampleChosen(int model);         ///< the user wants to record Samples::models[model]
    void recordRequested();               ///< the user wants to record another checkpoint
    void thinkRequested();
    void closed(); ///< the user wants to see the empty panels

protected:
    void paintEvent(QPaintEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void restyle();

    Theme& theme_;
    QLabel* title_;
    QLabel* lead_;
    QLabel* drop_;
    QVBoxLayout* samples_;
    QVBoxLayout* recent_;
    QList<QLabel*> headings_;
};

} // namespace ponderscope
