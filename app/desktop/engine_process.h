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
/// or crashes. If the paths are on another machine (ssh://…), the program runs there and continues after a
/// lost connection. Splits both streams into lines and reports how the process ended. GUI thread only.
class EngineProcess : public QObject {
    Q_OBJECT
public:
    explicit EngineProcess(QObject* parent = nullptr);
    ~EngineProcess() override; ///< ends a running process

    enum class End {
        done,
        cancelled,
        refused, ///< it reported an error message
        cut,     ///< lost connection to its machine, where it continues
        crashed,
        not_started,
    };

    /// Sets the program to start, in place of the one beside this program; for tests.
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
    /// \p sentence: why it did not start, or the last line on stderr (not JSON) of a program that refused.
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
    bool heard_ = false; ///< the program printed something, so it had started
};

/// A verb as a program to start. If the paths are on another machine (ssh://HOST/PATH), the program runs
/// there through ssh and gets the paths without ssh://HOST.
struct EngineCommand {
    QString program;
    QStringList arguments;
    QString machine; ///< "ssh://HOST"; empty: this machine
    QString problem; ///< why it cannot start, one sentence
};

EngineCommand engine_command(const QString& program, const QStringList& arguments);

} // namespace ponderscope
