// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QString>
#include <QStringList>
#include <QTimer>

namespace ponderscope {

/// The command line as a child process: the engine may run out of memory or die without taking the window
/// with it. If its paths are on another machine (ssh://…), it runs there, and continues if the connection
/// breaks. Cuts its two streams into lines and says how it ended. GUI thread only.
class EngineProcess : public QObject {
    Q_OBJECT
public:
    explicit EngineProcess(QObject* parent = nullptr);
    ~EngineProcess() override; ///< ends a run that is still going

    enum class End {
        done,
        cancelled,
        refused, ///< it said why: a sentence
        cut,     ///< the connection to its machine; it goes on there
        crashed,
    };

    /// The program that is started instead of the one beside this; for tests.
    void setProgram(const QString& program) { program_ = program; }
    /// An error message; empty: it starts.
    [[nodiscard]] QString start(const QStringList& arguments);
    [[nodiscard]] bool isRunning() const { return process_.state() != QProcess::NotRunning; }
    /// Asks it to stop as Ctrl+C does; it is killed if it does not within ten seconds.
    void cancel();

Q_SIGNALS:
    void started();
    void outputLine(const QByteArray& line); ///< of stdout, without its end; never empty
    void errorLine(const QByteArray& line);  ///< of stderr
    /// \p sentence: its last line on stderr that was no JSON, when it was refused.
    void ended(ponderscope::EngineProcess::End end, const QString& sentence);
    void failedToStart(const QString& sentence);

private:
    using Signal = void (EngineProcess::*)(const QByteArray&);
    void cut(QByteArray& partial, const QByteArray& more, Signal signal);
    void end(int code, QProcess::ExitStatus status);
    void interrupt();

    QString program_;
    QString machine_; ///< "ssh://host"; empty: this machine
    QProcess process_;
    QTimer patience_;
    QByteArray output_;
    QByteArray errors_;
    QString sentence_;
    bool cancelling_ = false;
    bool heard_ = false; ///< the program said something: it was started
};

/// A verb as a program to start. Where its paths are names on another machine (ssh://host/path), it runs
/// there, through ssh, and the paths are that machine's.
struct EngineCommand {
    QString program;
    QStringList arguments;
    QString machine; ///< "ssh://host"; empty: this one
    QString problem; ///< why it cannot be started, a sentence
};

/// \p program runs \p arguments here.
EngineCommand engine_command(const QString& program, const QStringList& arguments);

} // namespace ponderscope
