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

constexpr int levels_up = 5;
} // namespace

Samples find_samples(const QString& start) {
    Samples found;
    QDir folder(start);
    for (int level = 0; level < levels_up && found.folder.isEmpty(); ++level) {
        for (const QString& below : {u"sample_models"_s, u"share/ponderscope/sample_models"_s}) {
            if (QFileInfo(folder.filePath(below)).isDir()) {
                found.folder = QDir(folder.filePath(below)).absolutePath();
                break;
            }
        }
        if (found.folder.isEmpty() && !folder.cdUp()) {
            break;
        }
    }
    if (found.folder.isEmpty()) {
        return found;
    }
    const QDir samples(found.folder);
    const QString stories = samples.filePath(u"texts/stories.txt"_s);
    found.stories = QFileInfo(stories).isFile() ? stories : QString();
    for (const QString& shelf : {QString(), u"chains/"_s, u"cabinet/"_s}) {
        const bool reads_stories = shelf == u"chains/";
        const QStringList names =
            QDir(samples.filePath(shelf)).entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name);
        for (const QString& name : names) {
            const QString path = samples.filePath(shelf + name);
            if (QFileInfo::exists(path + u"/config.json"_s) && (!reads_stories || !found.stories.isEmpty())) {
                found.models.push_back({shelf + name, path, reads_stories});
            }
        }
    }
    const QString text = samples.filePath(u"texts/passage.txt"_s);
    found.text = QFileInfo(text).isFile() ? text : QString();
    const QString recorded = samples.filePath(u"../build/samples/samples.ponder"_s);
    found.recorded = QFileInfo(recorded).isFile() ? QFileInfo(recorded).absoluteFilePath() : QString();
    return found;
}

QString copy_of_recorded(const Samples& samples, const QString& folder, QString& problem) {
    const QFileInfo from(samples.recorded);
    const QFileInfo to(QDir(folder).filePath(from.fileName()));
    if (to.exists() && to.lastModified() >= from.lastModified()) {
        return to.absoluteFilePath();
    }
    // Under another name first: a copy that was cut off would be taken for the sample.
    QFile part(from.filePath());
    const QString passing = to.filePath() + u".part"_s;
    QFile::remove(passing);
    if (!QDir().mkpath(folder) || !part.copy(passing)) {
        problem = u"The sample could not be copied to %1: %2"_s.arg(to.filePath(), part.errorString());
        return {};
    }
    for (const char* beside : {"-wal", "-shm", ".annotations"}) { // of an older copy
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

RecordRequest sample_request(const Samples& samples, const SampleModel& model, const QString& folder) {
    RecordRequest request;
    request.checkpoint = model.checkpoint;
    request.textFile = model.stories ? samples.stories : samples.text;
    if (model.stories) {
        constexpr int story = 31; // tokens, with the line's end
        request.context = story;
        request.stride = story;
    }
    request.trace = QDir(folder).filePath(u"samples.ponder"_s);
    return request;
}

const Samples& SampleShelf::refresh() {
    samples_ = find_samples(QCoreApplication::applicationDirPath());
    return samples_;
}

} // namespace ponderscope
