// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/samples.h"

#include <QStringList>
#include <QWidget>

class QLabel;
class QVBoxLayout;

namespace ponderscope {

class Theme;

/// The page of a window without a trace: samples, recent files, and a drop area. It covers the panels until
/// something opens.
class WelcomePage : public QWidget {
    Q_OBJECT
public:
    WelcomePage(Theme& theme, QWidget* parent);
    void setSamples(const Samples& samples);
    void setRecent(const QStringList& paths);
    /// Something that can be dropped is over the window.
    void setDropHint(bool on);

Q_SIGNALS:
    void openRequested();                 ///< the file dialog
    void pathChosen(const QString& path); ///< a recent file
    void recordedChosen();                ///< the recorded sample
    void sampleChosen(int model);         ///< record Samples::models[model]
    void recordRequested();               ///< a checkpoint of one's own
    void thinkRequested();
    void closed(); ///< wants to see the empty panels instead

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
