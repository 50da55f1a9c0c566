// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/engine_process.h"
#include "app/desktop/record_command.h"

#include <QObject>
#include <QWidget>

class QLabel;
class QProgressBar;
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
/// result from its stdout. A run that ends early stays in the trace as partial.
class Recorder : public QObject {
    Q_OBJECT
public:
    explicit Recorder(QObject* parent = nullptr);

    /// Sets the program to start, in place of the one beside this program; for tests.
    void setProgram(const QString& program) { engine_.setProgram(program); }
    void start(const RecordRequest& request);
    [[nodiscard]] bool isRunning() const { return engine_.isRunning(); }
    [[nodiscard]] const RecordRequest& request() const { return request_; }
    [[nodiscard]] const RecordingProgress& progress() const { return progress_; }

public Q_SLOTS:
    /// Asks the program to stop. The run becomes partial.
    void cancel();

Q_SIGNALS:
    void started();
    void progressed(const ponderscope::RecordingProgress& progress);
    void finished(const QString& trace, const QString& run); ///< the run is complete
    void cancelled(const QString& trace);
    void failed(const char* id, const QString& sentence); ///< arguments as for MessageBar::show

private:
    void readProgress(const QByteArray& line);
    void end(EngineProcess::End end, const QString& sentence);

    RecordRequest request_;
    RecordingProgress progress_;
    EngineProcess engine_;
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
    QLabel* label_;
    QProgressBar* bar_;
    QToolButton* cancel_;
};

} // namespace ponderscope
