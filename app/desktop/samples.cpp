// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/samples.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int levels_up = 5;
constexpr qint64 largest_config = 1 << 20;

QString summary_of(const QString& folder) {
    QFile file(folder + u"/config.json"_s);
    if (file.size() > largest_config || !file.open(QIODevice::ReadOnly)) {
        return {};
    }
    const QJsonObject config = QJsonDocument::fromJson(file.readAll()).object();
    const QJsonObject pondering = config.value(QLatin1String("pondering")).toObject();
    const bool ponders = config.value(QLatin1String("ponderinglm")).toBool();
    QStringList parts;
    const int steps = ponders ? config.value(QLatin1String("pondering_steps")).toInt()
                              : pondering.value(QLatin1String("max_steps")).toInt();
    const QString method =
        ponders ? u"ponderlm"_s : pondering.value(QLatin1String("method")).toString(u"vanilla"_s);
    const QString baseline = config.value(QLatin1String("baseline_mode")).toString();
    const QString depth = config.value(QLatin1String("use_depth_attention")).toBool() ? u"depth attention"_s
                          : baseline == u"baseline"                                   ? QString()
                                                                                      : baseline;
    if (depth.isEmpty() || method != u"vanilla") {
        parts << method;
    }
    if (!depth.isEmpty()) {
        parts << depth;
    }
    if (steps > 0) {
        parts << u"%1 pondering steps"_s.arg(steps);
    }
    const int layers = config.value(QLatin1String("num_hidden_layers")).toInt();
    if (layers > 0) {
        parts << u"%1 layers"_s.arg(layers);
    }
    return parts.join(u" · "_s);
}

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
    // Models that ponder come first: the program is for them.
    const auto add = [&found](const QDir& shelf, bool cabinet, bool stories = false) {
        const QStringList names = shelf.entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name);
        for (const QString& name : names) {
            const QString path = shelf.filePath(name);
            if (QFileInfo::exists(path + u"/config.json"_s)) {
                const SampleModel model{name, path, summary_of(path), cabinet, stories};
                const bool last = cabinet || stories || model.summary.startsWith(QLatin1String("vanilla"));
                found.models.insert(last ? found.models.end() : found.models.begin(), model);
            }
        }
    };
    add(samples, false);
    const QString stories = samples.filePath(u"texts/stories.txt"_s);
    found.stories = QFileInfo(stories).isFile() ? stories : QString();
    if (!found.stories.isEmpty()) {
        add(QDir(samples.filePath(u"chains"_s)), false, true);
    }
    add(QDir(samples.filePath(u"cabinet"_s)), true);
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
