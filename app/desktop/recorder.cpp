// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/recorder.h"

#include "core/trace/writer.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/common/theme.h"

#include <QJsonDocument>
#include <QJsonObject>
#include <QToolButton>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

Recorder::Recorder(QObject* parent) : EngineProcess(parent) {
    connect(this, &EngineProcess::errorLine, this, &Recorder::readProgress);
    connect(this, &EngineProcess::outputLine, this, [this](const QByteArray& line) { result_ = line; });
    connect(this, &EngineProcess::ended, this, &Recorder::end);
}

void Recorder::start(const RecordRequest& request) {
    if (isRunning()) {
        Q_EMIT failed("recording.running", u"A recording is running. Wait for it or cancel it."_s);
        return;
    }
    request_ = request;
    progress_ = {};
    result_.clear();
    const QString problem = EngineProcess::start(record_arguments(request));
    if (!problem.isEmpty()) {
        Q_EMIT failed("recording.not-started", problem);
    }
}

void Recorder::readProgress(const QByteArray& line) {
    const QJsonObject object = QJsonDocument::fromJson(line).object();
    if (object.isEmpty()) {
        return;
    }
    progress_.activity = object.value(QLatin1String("activity")).toString();
    progress_.done = object.value(QLatin1String("done")).toInteger();
    progress_.total = object.value(QLatin1String("total")).toInteger();
    progress_.unit = object.value(QLatin1String("unit")).toString();
    progress_.rate = object.value(QLatin1String("rate")).toDouble();
    progress_.secondsLeft = object.value(QLatin1String("seconds_left")).toDouble(-1);
    Q_EMIT progressed(progress_);
}

void Recorder::end(End end, const QString& sentence) {
    if (end == End::done) {
        const QJsonObject result = QJsonDocument::fromJson(result_).object();
        Q_EMIT finished(is_elsewhere(request_.trace)
                            ? request_.trace
                            : result.value(QLatin1String("trace")).toString(request_.trace),
                        result.value(QLatin1String("run")).toString());
    } else if (end == End::cancelled) {
        Q_EMIT cancelled(request_.trace);
    } else if (end == End::crashed) {
        const QString activity = progress_.activity.isEmpty() ? u"starting"_s : progress_.activity;
        if (activity == QLatin1String("recording") && !is_elsewhere(request_.trace)) {
            TraceWriter::note_death(path_of(request_.trace),
                                    "The engine ended unexpectedly while recording.");
        }
        Q_EMIT failed("recording.died",
                      u"The engine ended unexpectedly while %1. Finished sequences are in %2."_s.arg(
                          activity, request_.trace));
    } else {
        Q_EMIT failed(end == End::refused ? "recording.refused"
                      : end == End::cut   ? "recording.cut"
                                          : "recording.not-started",
                      sentence);
    }
}

RecordingStatus::RecordingStatus(Theme& theme, QWidget* parent)
    : QWidget(parent),
      cancel_(flat_button(u"Cancel"_s,
                          u"Stop the recording. Finished sequences stay in the trace. The run is marked as "
                          "partial"_s,
                          this)) {
    label_->setForegroundRole(QPalette::PlaceholderText);
    label_->setTextFormat(Qt::PlainText);
    bar_->setTextVisible(false);
    bar_->setFixedWidth(110);
    bar_->setAccessibleName(u"Progress of the recording"_s);
    make_row(this, {0, 0, 8, 0}, 12, {label_, bar_, cancel_});
    connect(cancel_, &QToolButton::clicked, this, &RecordingStatus::cancelRequested);
    label_->setFont(theme.body());
    hide();
}

void RecordingStatus::begin(const QString& name) {
    name_ = name;
    label_->setText(u"starting %1"_s.arg(name));
    bar_->setRange(0, 0);
    cancel_->setEnabled(true);
    QWidget::show();
}

void RecordingStatus::show(const RecordingProgress& progress) {
    QStringList parts;
    parts << (progress.activity.isEmpty() ? u"working on"_s : progress.activity) + u' ' + name_;
    if (progress.rate > 0) {
        parts << (progress.unit == QLatin1String("bytes")
                      ? format_bytes(static_cast<qint64>(progress.rate)) + u"/s"_s
                      : format_rate(progress.rate, progress.unit));
    }
    if (progress.secondsLeft >= 0) {
        parts << u"%1 left"_s.arg(format_duration(progress.secondsLeft));
    }
    label_->setText(parts.join(u"   "_s));
    if (progress.total > 0) {
        bar_->setRange(0, 1000);
        const double share = static_cast<double>(progress.done) / static_cast<double>(progress.total);
        bar_->setValue(static_cast<int>(std::clamp(share, 0.0, 1.0) * 1000));
    } else {
        bar_->setRange(0, 0);
    }
}

void RecordingStatus::cancelling() {
    label_->setText(u"stopping %1"_s.arg(name_));
    cancel_->setEnabled(false);
}

} // namespace ponderscope
