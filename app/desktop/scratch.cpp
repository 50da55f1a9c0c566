// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/scratch.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>
#include <QTemporaryFile>
#include <QUuid>

namespace ponderscope {

namespace {

constexpr int days_kept = 14;

void forget_old(QDir folder) {
    const QDateTime oldest = QDateTime::currentDateTime().addDays(-days_kept);
    const QFileInfoList files =
        folder.entryInfoList({QStringLiteral("scratch-*.ponder*")}, QDir::Files | QDir::NoSymLinks);
    for (const QFileInfo& file : files) {
        if (file.lastModified() < oldest) {
            folder.remove(file.fileName());
        }
    }
}

} // namespace

Scratch::Scratch()
    : trace_(QStandardPaths::writableLocation(QStandardPaths::CacheLocation) +
             QStringLiteral("/scratch/scratch-%1-%2.ponder")
                 .arg(QDateTime::currentDateTime().toString(QStringLiteral("yyyyMMdd-HHmmss")),
                      QUuid::createUuid().toString(QUuid::Id128).left(8))) {}

QString Scratch::on(const QString& machine) const {
    return machine.isEmpty() ? trace_
                             : machine + QStringLiteral("/tmp/ponderscope-") + QFileInfo(trace_).fileName();
}

QString Scratch::prepare() const {
    const QString folder = QFileInfo(trace_).path();
    const bool there = QDir().mkpath(folder);
    // Tried, not asked: permissions do not say all.
    QTemporaryFile probe(folder + QStringLiteral("/probe-XXXXXX"));
    if (!there || !probe.open() || probe.write("probe") != 5 || !probe.flush()) {
        return QCoreApplication::translate("Scratch",
                                           "The scratch folder %1 cannot be written (%2), and runs that "
                                           "nobody asked to keep have no other place: make room there, or "
                                           "start with XDG_CACHE_HOME set to a folder that can be written.")
            .arg(folder,
                 there ? probe.errorString() : QCoreApplication::translate("Scratch", "it cannot be made"));
    }
    forget_old(QDir(folder));
    return {};
}

} // namespace ponderscope
