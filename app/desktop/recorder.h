// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"

#include <QObject>
#include <QProcess>
#include <QTimer>

namespace ponderscope {

/// How far a recording is, as the command line tells it.
struct RecordingProgress {
    QString activity;
    qint64 done = 0;
    qint64 total = 0; ///< 0: not known
    QString unit;
    double rate = 0;
    double secondsLeft = -1; ///< negative: not known
};

/// Runs `ponderscope record` as a child process: the engine may run out of memory or die without taking the
/// window with it. Reads one JSON object a line from its stderr, the result from its stdout.
class Recorder : public QObject {
    Q_OBJECT
public:
    explicit Recorder(QObject* parent = nullptr);
    ~Recorder() override; ///< ends a run that is still going; what it recorded stays, as partial

    /// The program that is started instead of the one beside this; for tests.
    void setProgram(const QString& program) { program_ = program; }
    void start(const RecordRequest& request);
    [[nodiscard]] bool isRunning() const { return process_.state() != QProcess::NotRunning; }
    [[nodiscard]] const RecordRequest& request() const { return request_; }
    [[nodiscard]] const RecordingProgress& progress() const { return progress_; }

public slots:
    /// Asks the program to stop; it ends the run as partial. It is killed if it does not within ten seconds.
    void cancel();

signals:
    void started();
    void progressed(const ponderscope::RecordingProgress& progress);
    void finished(const QString& trace, const QString& run); ///< complete
    void cancelled(const QString& trace);
    void failed(const QString& sentence);

private:
    void readProgress();
    void readLine(const QByteArray& line);
    void end(int code, QProcess::ExitStatus status);

    QString program_;
    RecordRequest request_;
    RecordingProgress progress_;
    QProcess process_;
    QTimer patience_;
    QByteArray partial_;
    QByteArray output_;
    QString sentence_; ///< the last line that was no progress
    bool cancelling_ = false;
};

} // namespace ponderscope
