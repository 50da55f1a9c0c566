// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/engine_process.h"
#include "app/desktop/record_command.h"

#include <QLabel>
#include <QObject>
#include <QProgressBar>
#include <QWidget>

class QToolButton;

namespace ponderscope {

class Theme;

/// Progress of a recording, as the command line program reports it.
struct RecordingProgress {
    QString activity;
    qint64 done = 0;
    qint64 total = 0; ///< 0: unknown
    QString unit;
    double rate = 0;
    double secondsLeft = -1; ///< negative: unknown
};

/// Runs `ponderscope record` as a child process. Reads one JSON object from each line of its stderr, and the
/// result from its stdout. A run that ends early, or is cancelled, stays in the trace as partial.
class Recorder : public EngineProcess {
    Q_OBJECT
public:
    explicit Recorder(QObject* parent = nullptr);
    void start(const RecordRequest& request);
    [[nodiscard]] const RecordRequest& request() const { return request_; }
    [[nodiscard]] const RecordingProgress& progress() const { return progress_; }

Q_SIGNALS:
    void progressed(const ponderscope::RecordingProgress& progress);
    void finished(const QString& trace, const QString& run); ///< the run is complete
    void cancelled(const QString& trace);
    void failed(const char* id, const QString& sentence); ///< arguments as for MessageBar::show

private:
    void readProgress(const QByteArray& line);
    void end(EngineProcess::End end, const QString& sentence);

    RecordRequest request_;
    RecordingProgress progress_;
    QByteArray result_; ///< last line of stdout
};

/// In the status bar: "recording vanilla-1m 41,200 tokens/s 0:07 left", a bar, and Cancel.
class RecordingStatus : public QWidget {
    Q_OBJECT
public:
    explicit RecordingStatus(Theme& theme, QWidget* parent = nullptr);
    void begin(const QString& name);
    void show(const RecordingProgress& progress);
    void cancelling();

Q_SIGNALS:
    void cancelRequested();

private:
    QString name_;
    QLabel* label_ = new QLabel(this);
    QProgressBar* bar_ = new QProgressBar(this);
    QToolButton* cancel_;
};

} // namespace ponderscope
