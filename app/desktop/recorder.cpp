// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/recorder.h"

#include <QJsonDocument>
#include <QJsonObject>

#include <csignal>

namespace ponderscope {

namespace {

/// A line that never ends is not kept beyond this.
constexpr qsizetype longest_line = 1 << 16;
constexpr int exit_cancelled = 130;

} // namespace

Recorder::Recorder(QObject* parent) : QObject(parent) {
    patience_.setSingleShot(true);
    patience_.setInterval(10'000);
    connect(&patience_, &QTimer::timeout, &process_, &QProcess::kill);
    connect(&process_, &QProcess::readyReadStandardError, this, &Recorder::readProgress);
    connect(&process_, &QProcess::readyReadStandardOutput, this, [this] {
        output_ += process_.readAllStandardOutput();
        output_ = output_.right(longest_line);
    });
    connect(&process_, &QProcess::started, this, &Recorder::started);
    connect(&process_, &QProcess::finished, this, &Recorder::end);
    connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) {
            emit failed(tr("%1 could not be started: %2").arg(process_.program(), process_.errorString()));
        }
    });
}

Recorder::~Recorder() {
    process_.disconnect(this);
    if (isRunning()) {
        ::kill(static_cast<pid_t>(process_.processId()), SIGINT);
        if (!process_.waitForFinished(3000)) {
            process_.kill();
            process_.waitForFinished(1000);
        }
    }
}

void Recorder::start(const RecordRequest& request) {
    if (isRunning()) {
        emit failed(tr("A recording is running already; wait for it or cancel it."));
        return;
    }
    const QString program = program_.isEmpty() ? find_command_line_program() : program_;
    if (program.isEmpty()) {
        emit failed(tr("The command line program 'ponderscope' was found neither beside this program nor on "
                       "PATH; build it "
                       "with -DPONDERSCOPE_ENGINE=ON or add its folder to PATH."));
        return;
    }
    request_ = request;
    progress_ = {};
    partial_.clear();
    output_.clear();
    sentence_.clear();
    cancelling_ = false;
    process_.setProgram(program);
    process_.setArguments(record_arguments(request));
    process_.setStandardInputFile(QProcess::nullDevice());
    process_.start();
}

void Recorder::cancel() {
    if (isRunning() && !cancelling_) {
        cancelling_ = true;
        ::kill(static_cast<pid_t>(process_.processId()), SIGINT);
        patience_.start();
    }
}

void Recorder::readProgress() {
    partial_ += process_.readAllStandardError();
    for (qsizetype end = partial_.indexOf('\n'); end >= 0; end = partial_.indexOf('\n')) {
        readLine(partial_.left(end).trimmed());
        partial_.remove(0, end + 1);
    }
    if (partial_.size() > longest_line) {
        partial_.clear();
    }
}

void Recorder::readLine(const QByteArray& line) {
    if (line.isEmpty()) {
        return;
    }
    const QJsonDocument document = line.startsWith('{') ? QJsonDocument::fromJson(line) : QJsonDocument();
    if (!document.isObject()) {
        sentence_ = QString::fromUtf8(line);
        if (sentence_.startsWith(QLatin1String("ponderscope: "))) {
            sentence_.remove(0, 13);
        }
        return;
    }
    const QJsonObject object = document.object();
    progress_.activity = object.value(QLatin1String("activity")).toString();
    progress_.done = object.value(QLatin1String("done")).toInteger();
    progress_.total = object.value(QLatin1String("total")).toInteger();
    progress_.unit = object.value(QLatin1String("unit")).toString();
    progress_.rate = object.value(QLatin1String("rate")).toDouble();
    progress_.secondsLeft = object.value(QLatin1String("seconds_left")).toDouble(-1);
    emit progressed(progress_);
}

void Recorder::end(int code, QProcess::ExitStatus status) {
    patience_.stop();
    readProgress();
    readLine(std::exchange(partial_, {}).trimmed());
    output_ += process_.readAllStandardOutput();
    if (cancelling_ || (status == QProcess::NormalExit && code == exit_cancelled)) {
        emit cancelled(request_.trace);
        return;
    }
    if (status == QProcess::CrashExit) {
        emit failed(
            tr("The engine ended unexpectedly while %1; the sequences that it had finished are in %2.")
                .arg(progress_.activity.isEmpty() ? tr("starting") : progress_.activity, request_.trace));
        return;
    }
    if (code != 0) {
        emit failed(sentence_.isEmpty() ? tr("The recording ended with exit code %1.").arg(code) : sentence_);
        return;
    }
    const QByteArray last = output_.trimmed().split('\n').constLast();
    const QJsonObject result = QJsonDocument::fromJson(last).object();
    const QString trace = result.value(QLatin1String("trace")).toString(request_.trace);
    emit finished(trace, result.value(QLatin1String("run")).toString());
}

} // namespace ponderscope
