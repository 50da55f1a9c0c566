// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/figure_export.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QSaveFile>

namespace ponderscope {

FigureExport::FigureExport(QObject* parent) : QObject(parent) {
    connect(&process_, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
        if (status == QProcess::NormalExit && code == 0) {
            emit done(tr("Wrote %1, its numbers as CSV beside it, and %2, which makes it again: ponderscope "
                         "figure %2 -o %1")
                          .arg(QFileInfo(file_).fileName(), QFileInfo(specFile_).fileName()));
            return;
        }
        const QString said = QString::fromUtf8(process_.readAllStandardError()).trimmed();
        emit failed(status == QProcess::CrashExit || said.isEmpty()
                        ? tr("The figure %1 could not be made.").arg(file_)
                        : said.section(u'\n', -1));
    });
    connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart) {
            emit failed(tr("%1 could not be started: %2").arg(process_.program(), process_.errorString()));
        }
    });
}

void FigureExport::start(const figure::FigureSpec& spec, const QString& file) {
    if (isRunning()) {
        emit failed(tr("A figure is being made; try again when it is done."));
        return;
    }
    file_ = file;
    const QFileInfo info(file);
    specFile_ = info.absolutePath() + u'/' + info.completeBaseName() + QStringLiteral(".json");
    const std::string json =
        figure::write_figure_spec(spec, std::filesystem::path(info.absolutePath().toStdU16String()));
    QSaveFile out(specFile_);
    if (!out.open(QIODevice::WriteOnly) || out.write(json.data(), static_cast<qint64>(json.size())) < 0 ||
        !out.commit()) {
        emit failed(tr("%1 could not be written: %2").arg(specFile_, out.errorString()));
        return;
    }
    process_.setProgram(program_.isEmpty() ? QCoreApplication::applicationFilePath() : program_);
    process_.setArguments({QStringLiteral("--figure"), specFile_, QStringLiteral("-o"), file});
    process_.start();
}

} // namespace ponderscope
