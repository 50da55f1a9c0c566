// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/selection.h"
#include "views/figure/spec.h"

#include <QObject>
#include <QProcess>

namespace ponderscope {

/// Writes what the window shows as a figure, with its specification beside it, so that the very same figure
/// can be made again from the command line. The work is done by this program without a window, in a process
/// of its own.
class FigureExport : public QObject {
    Q_OBJECT
public:
    explicit FigureExport(QObject* parent = nullptr);
    /// The program that is started instead of this one; for tests.
    void setProgram(const QString& program) { program_ = program; }
    /// FIGURE.json is written at once; `done` or `failed` follows.
    void start(const figure::FigureSpec& spec, const QString& file);
    [[nodiscard]] bool isRunning() const { return process_.state() != QProcess::NotRunning; }

signals:
    void done(const QString& sentence);
    void failed(const QString& sentence);

private:
    QString program_;
    QString file_;
    QString specFile_;
    QProcess process_;
};

} // namespace ponderscope
