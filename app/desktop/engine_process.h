// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QObject>
#include <QProcess>
#include <QString>
#include <QStringList>
#include <QTimer>

namespace ponderscope {

/// The command line program as a child process, so that the window survives if the program runs out of memory
/// or crashes. If the paths are on another machine (ssh://…), the program runs there and survives a lost
/// connection. Splits both streams into lines and reports the end of the process. GUI thread only.
class EngineProcess : public QObject {
    Q_OBJECT
public:
    explicit EngineProcess(QObject* parent = nullptr);
    ~EngineProcess() override; ///< ends a running process

    enum class End {
        done,
        cancelled,
        refused, ///< the program printed an error
        cut,     ///< the connection was lost; the program continues on its machine
        crashed,
        not_started,
    };

    /// Replaces the program to start; for tests.
    void setProgram(const QString& program) { program_ = program; }
    /// Starts the program. Returns an error message; empty: success.
    [[nodiscard]] QString start(const QStringList& arguments);
    [[nodiscard]] bool isRunning() const { return process_.state() != QProcess::NotRunning; }
    /// Stops the process as Ctrl+C does; kills it after ten seconds.
    void cancel();

Q_SIGNALS:
    void started();
    void outputLine(const QByteArray& line); ///< a line of stdout without its end; never empty
    void errorLine(const QByteArray& line);  ///< a line of stderr
    /// \p sentence: why the program did not start, or its last line on stderr (not JSON) after an error.
    void ended(ponderscope::EngineProcess::End end, const QString& sentence);

private:
    using Signal = void (EngineProcess::*)(const QByteArray&);
    void cut(QByteArray& partial, const QByteArray& more, Signal signal);
    void end(int code, QProcess::ExitStatus status);
    void interrupt();

    QString program_;
    QString machine_; ///< "ssh://HOST"; empty: this machine
    QProcess process_;
    QTimer patience_;
    QByteArray output_;
    QByteArray errors_;
    QString sentence_;
    bool cancelling_ = false;
    bool heard_ = false; ///< the program has printed, so it has started
};

/// The command that runs a verb. If paths are on another machine (ssh://HOST/PATH), the command runs the verb
/// there by ssh, with PATH in place of ssh://HOST/PATH.
struct EngineCommand {
    QString program;
    QStringList arguments;
    QString machine; ///< "ssh://HOST"; empty: this machine
    QString problem; ///< why the program cannot start, one sentence
};

EngineCommand engine_command(const QString& program, const QStringList& arguments);

} // namespace ponderscope
