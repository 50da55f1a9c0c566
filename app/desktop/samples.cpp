// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/samples.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// The samples folder in \p folder or a folder above; empty: none.
QString samples_above(QDir folder) {
    constexpr int levels_up = 5;
    for (int level = 0; level < levels_up; ++level, folder.cdUp()) {
        for (const QString& below : {u"sample_models"_s, u"share/ponderscope/sample_models"_s}) {
            if (QDir(folder.filePath(below)).exists()) {
                return folder.absoluteFilePath(below);
            }
        }
    }
    return {};
}

} // namespace

Samples find_samples(const QString& start) {
    Samples found;
    const QString folder = samples_above(start.isEmpty() ? QCoreApplication::applicationDirPath() : start);
    if (folder.isEmpty()) {
        return found;
    }
    for (const QString& shelf : {u"/"_s, u"/chains/"_s, u"/cabinet/"_s}) {
        for (const QString& name :
             QDir(folder + shelf).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name)) {
            if (const QString path = folder + shelf + name; QFileInfo::exists(path + u"/config.json"_s)) {
                found.checkpoints << path;
            }
        }
    }
    const auto file = [&folder](const QString& name) {
        const QFileInfo info(folder + name);
        return info.isFile() ? QDir::cleanPath(info.absoluteFilePath()) : QString();
    };
    found.text = file(u"/texts/passage.txt"_s);
    found.recorded = file(u"/../build/samples/samples.ponder"_s);
    return found;
}

QString copy_of_recorded(const QString& recorded, const QString& folder, QString& problem) {
    const QFileInfo from(recorded);
    const QFileInfo to(QDir(folder).filePath(from.fileName()));
    if (to.exists() && to.lastModified() >= from.lastModified()) {
        return to.absoluteFilePath();
    }
    // Copy to a temporary name first, because an incomplete copy would look like the sample.
    QFile part(from.filePath());
    const QString passing = to.filePath() + u".part"_s;
    QFile::remove(passing);
    if (!QDir().mkpath(folder) || !part.copy(passing)) {
        problem = u"The sample could not be copied to %1: %2"_s.arg(to.filePath(), part.errorString());
        return {};
    }
    for (const char* beside : {"-wal", "-shm", ".annotations"}) { // remove files of an older copy
        QFile::remove(to.filePath() + QLatin1String(beside));
    }
    QFile::remove(to.filePath());
    QFile::setPermissions(passing,
                          QFile::ReadOwner | QFile::WriteOwner | QFile::ReadGroup | QFile::ReadOther);
    if (!QFile::rename(passing, to.filePath())) {
        problem = u"%1 could not be written."_s.arg(to.filePath());
        return {};
    }
    return to.absoluteFilePath();
}

} // namespace ponderscope
