// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/trace_watch.h"

#include <QFile>
#include <QFileInfo>

#include <optional>

#include <sys/stat.h>

namespace ponderscope {

namespace {

qint64 stamp_of(const struct stat& info) {
    return static_cast<qint64>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
}

std::optional<struct stat> look(const QString& path) {
    struct stat info {};
    return ::stat(QFile::encodeName(path).constData(), &info) == 0 ? std::optional(info) : std::nullopt;
}

} // namespace

QList<TraceWatch::Change> TraceWatch::check(const QStringList& traces) {
    QList<Change> changes;
    std::erase_if(seen_, [&](const auto& entry) { return !traces.contains(entry.first); });
    for (const QString& trace : traces) {
        const auto place = seen_.find(trace);
        const bool known = place != seen_.end();
        Seen& seen = known ? place->second : seen_[trace];
        const auto info = look(trace);
        if (!info) {
            if (!seen.gone) {
                changes.append({trace, Event::gone});
            }
            seen.gone = true;
            continue;
        }
        const QString real = QFileInfo(trace).canonicalFilePath();
        const auto stamp_beside = [&](const char* suffix) {
            const auto other = look(real + QLatin1String(suffix));
            return other ? stamp_of(*other) : 0;
        };
        const Seen now{static_cast<quint64>(info->st_dev),
                       static_cast<quint64>(info->st_ino),
                       static_cast<qint64>(info->st_size),
                       {stamp_of(*info), stamp_beside("-wal"), stamp_beside(".annotations")},
                       false};
        if (known) {
            if (seen.gone || now.inode != seen.inode || now.device != seen.device) {
                changes.append({trace, Event::replaced});
            } else if (now.size < seen.size) {
                changes.append({trace, Event::shrunk});
            } else if (now.stamps != seen.stamps || now.size != seen.size) {
                changes.append({trace, Event::moved});
            }
        }
        seen = now;
    }
    return changes;
}

} // namespace ponderscope
