// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/recording_status.h"

#include "app/desktop/recorder.h"
#include "views/common/format.h"
#include "views/common/theme.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QToolButton>

#include <algorithm>

namespace ponderscope {

RecordingStatus::RecordingStatus(Theme& theme, QWidget* parent)
    : QWidget(parent),
      label_(new QLabel(this)),
      bar_(new QProgressBar(this)),
      cancel_(new QToolButton(this)) {
    label_->setForegroundRole(QPalette::PlaceholderText);
    label_->setTextFormat(Qt::PlainText);
    bar_->setTextVisible(false);
    bar_->setFixedWidth(110);
    bar_->setAccessibleName(tr("Progress of the recording"));
    cancel_->setText(tr("Cancel"));
    cancel_->setAutoRaise(true);
    cancel_->setToolTip(tr("Stop recording; what is recorded stays, marked as partial"));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 8, 0);
    row->setSpacing(12);
    row->addWidget(label_);
    row->addWidget(bar_);
    row->addWidget(cancel_);
    connect(cancel_, &QToolButton::clicked, this, &RecordingStatus::cancelRequested);
    label_->setFont(theme.body());
    hide();
}

void RecordingStatus::begin(const QString& name) {
    name_ = name;
    label_->setText(tr("starting %1").arg(name));
    bar_->setRange(0, 0);
    cancel_->setEnabled(true);
    QWidget::show();
}

void RecordingStatus::show(const RecordingProgress& progress) {
    QStringList parts;
    parts << (progress.activity.isEmpty() ? tr("working on") : progress.activity) + u' ' + name_;
    if (progress.rate > 0) {
        parts << (progress.unit == QLatin1String("bytes")
                      ? format_bytes(static_cast<qint64>(progress.rate)) + QStringLiteral("/s")
                      : format_rate(progress.rate, progress.unit));
    }
    if (progress.secondsLeft >= 0) {
        parts << tr("%1 left").arg(format_duration(progress.secondsLeft));
    }
    label_->setText(parts.join(QStringLiteral("   ")));
    if (progress.total > 0) {
        bar_->setRange(0, 1000);
        const double share = static_cast<double>(progress.done) / static_cast<double>(progress.total);
        bar_->setValue(static_cast<int>(std::clamp(share, 0.0, 1.0) * 1000));
    } else {
        bar_->setRange(0, 0);
    }
}

void RecordingStatus::cancelling() {
    label_->setText(tr("stopping %1").arg(name_));
    cancel_->setEnabled(false);
}

void RecordingStatus::end() {
    hide();
}

QString RecordingStatus::text() const {
    return label_->text();
}

} // namespace ponderscope
