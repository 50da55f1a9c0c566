// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/engine_process.h"

#include "app/desktop/record_command.h"
#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/remote/host.h"
#include "views/common/paths.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// Bytes. A longer unfinished line is dropped.
constexpr qsizetype longest_line = 1 << 23;
constexpr int exit_cancelled = 130;

} // namespace

EngineProcess::EngineProcess(QObject* parent) : QObject(parent) {
    patience_.setSingleShot(true);
    patience_.setInterval(10'000);
    connect(&patience_, &QTimer::timeout, &process_, &QProcess::kill);
    connect(&process_, &QProcess::readyReadStandardOutput, this,
            [this] { cut(output_, process_.readAllStandardOutput(), &EngineProcess::outputLine); });
    connect(&process_, &QProcess::readyReadStandardError, this,
            [this] { cut(errors_, process_.readAllStandardError(), &EngineProcess::errorLine); });
    connect(&process_, &QProcess::started, this, &EngineProcess::started);
    connect(&process_, &QProcess::finished, this, &EngineProcess::end);
    connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) {
            Q_EMIT ended(End::not_started,
                         u"cannot start %1: %2"_s.arg(process_.program(), process_.errorString()));
        }
    });
    connect(this, &EngineProcess::errorLine, this, [this](const QByteArray& line) {
        if (!line.startsWith('{')) {
            sentence_ = QString::fromUtf8(line);
            if (sentence_.startsWith(QLatin1String("ponderscope: "))) {
                sentence_.remove(0, 13);
                const qsizetype id = sentence_.lastIndexOf(QLatin1String(" ["));
                sentence_ =
                    sentence_.endsWith(u']') ? sentence_.first(std::max<qsizetype>(id, 0)) : sentence_;
            }
        }
    });
}

EngineProcess::~EngineProcess() {
    process_.disconnect(this);
    if (isRunning()) {
        interrupt();
        if (!process_.waitForFinished(3000)) {
            process_.kill();
            process_.waitForFinished(1000);
        }
    }
}

QString EngineProcess::start(const QStringList& arguments) {
    if (isRunning()) {
        return u"The engine is running. Wait for it or cancel it."_s;
    }
    const QString program = program_.isEmpty() ? find_command_line_program() : program_;
    if (program.isEmpty()) {
        return u"Cannot find the command line program 'ponderscope', neither beside this program nor on "
               "PATH. Build Ponderscope with -DPONDERSCOPE_ENGINE=ON, or add the folder of the program "
               "to PATH."_s;
    }
    output_.clear();
    errors_.clear();
    sentence_.clear();
    cancelling_ = heard_ = false;
    const EngineCommand command = engine_command(program, arguments);
    if (!command.problem.isEmpty()) {
        return command.problem;
    }
    machine_ = command.machine;
    process_.setProgram(command.program);
    process_.setArguments(command.arguments);
    // On another machine, a byte on standard input takes the place of a signal.
    process_.setStandardInputFile(machine_.isEmpty() ? QProcess::nullDevice() : QString());
    process_.start();
    return {};
}

void EngineProcess::interrupt() {
    if (machine_.isEmpty()) {
        ::kill(static_cast<pid_t>(process_.processId()), SIGINT);
    } else {
        process_.write("c");
        process_.waitForBytesWritten(100);
    }
}

void EngineProcess::cancel() {
    if (isRunning() && !cancelling_) {
        cancelling_ = true;
        interrupt();
        patience_.start();
    }
}

void EngineProcess::cut(QByteArray& partial, const QByteArray& more, Signal signal) {
    partial += more;
    qsizetype from = 0;
    for (qsizetype end = partial.indexOf('\n'); end >= 0; end = partial.indexOf('\n', from)) {
        const QByteArray line = partial.mid(from, end - from).trimmed();
        from = end + 1;
        if (!line.isEmpty()) {
            heard_ = heard_ || signal == &EngineProcess::outputLine || line.startsWith('{');
            Q_EMIT(this->*signal)(line);
        }
    }
    partial.remove(0, from);
    if (partial.size() > longest_line) {
        partial.clear();
    }
}

void EngineProcess::end(int code, QProcess::ExitStatus status) {
    patience_.stop();
    // A last line may lack its newline.
    cut(output_, process_.readAllStandardOutput() + '\n', &EngineProcess::outputLine);
    cut(errors_, process_.readAllStandardError() + '\n', &EngineProcess::errorLine);
    if (cancelling_ || (status == QProcess::NormalExit && code == exit_cancelled)) {
        Q_EMIT ended(End::cancelled, {});
    } else if (constexpr int ssh_failed = 255; !machine_.isEmpty() && code == ssh_failed) {
        const QString why = std::exchange(sentence_, {});
        Q_EMIT ended(
            heard_ ? End::cut : End::refused,
            heard_ ? u"The connection to %1 broke (%2). Runs on the server continue. The window shows them "
                     "again when the connection returns."_s.arg(machine_.mid(6), why)
                   : u"ssh cannot connect to %1 (%2), so no run was started. Try `ssh %1` in a terminal "
                     "first."_s.arg(machine_.mid(6), why));
    } else if (status == QProcess::CrashExit) {
        Q_EMIT ended(End::crashed, {});
    } else if (!machine_.isEmpty() && (code == 126 || code == 127)) {
        Q_EMIT ended(End::refused, QString::fromStdString(remote::no_program(
                                       machine_.toStdString(), std::exchange(sentence_, {}).toStdString())));
    } else if (code != 0) {
        const QString said = sentence_.isEmpty() ? u"The engine ended with exit code %1."_s.arg(code)
                                                 : std::exchange(sentence_, {});
        Q_EMIT ended(End::refused, machine_.isEmpty() ? said : u"On %1: %2"_s.arg(machine_.mid(6), said));
    } else {
        Q_EMIT ended(End::done, {});
    }
}

namespace {

/// Options whose value names a file that is read or written.
constexpr std::array path_options{"--text",   "--jsonl", "--ids",          "--patch",
                                  "--output", "--from",  "--initial-state"};

} // namespace

EngineCommand engine_command(const QString& program, const QStringList& arguments) {
    EngineCommand command{program, arguments, {}, {}};
    std::vector<std::string> there{"serve", "--"};
    QString here; // an argument that is a local path
    remote::Address address;
    for (const QString& argument : arguments) {
        const qsizetype equals = argument.startsWith(QLatin1String("--")) ? argument.indexOf(u'=') : -1;
        const QString value = argument.mid(equals + 1);
        const bool path = equals < 0 ? !argument.startsWith(u'-') && argument != arguments.first()
                                     : std::ranges::any_of(path_options, [&](const char* option) {
                                           return argument.left(equals) == QLatin1String(option);
                                       });
        if (!path || !is_elsewhere(value)) {
            // values such as "random" and "zero" are not paths
            here = path && value.contains(u'/') ? value : here;
            there.push_back(argument.toStdString());
            continue;
        }
        try {
            const remote::Address one = remote::parse_address(value.toStdString());
            const QString machine = QString::fromStdString(one.machine());
            if (!command.machine.isEmpty() && machine != command.machine) {
                command.problem = u"%1 and %2 are different machines. Choose files on one machine."_s.arg(
                    command.machine, machine);
            }
            command.machine = machine;
            address = one;
            there.push_back(argument.left(equals + 1).toStdString() + one.path);
        } catch (const InputError& error) {
            command.problem = QString::fromUtf8(error.what());
        }
    }
    if (command.machine.isEmpty()) {
        return command;
    }
    if (!here.isEmpty() && command.problem.isEmpty()) {
        command.problem =
            u"%1 is on this machine, but the run is on %2. Copy the file to %2 and enter its location as %2/…"_s
                .arg(here, command.machine);
    }
    command.arguments.clear();
    for (const std::string& word : remote::ssh_command(address, there)) {
        command.arguments << QString::fromStdString(word);
    }
    command.program = command.arguments.takeFirst();
    return command;
}

} // namespace ponderscope
