// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QProgressBar;
class QToolButton;

namespace ponderscope {

class Theme;
struct RecordingProgress;

/// In the status bar: "recording vanilla-1m   41,200 tokens/s   0:07 left", a bar, and Cancel. Hidden when
/// nothing runs.
class RecordingStatus : public QWidget {
    Q_OBJECT
public:
    explicit RecordingStatus(Theme& theme, QWidget* parent = nullptr);
    void begin(const QString& name);
    void show(const RecordingProgress& progress);
    void cancelling();
    void end();
    [[nodiscard]] QString text() const;

Q_SIGNALS:
    void cancelRequested();

private:
    QString name_;
    QLabel* label_;
    QProgressBar* bar_;
    QToolButton* cancel_;
};

} // namespace ponderscope
