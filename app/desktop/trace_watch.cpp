// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/trace_watch.h"

#include "core/remote/file.h"
#include "views/common/trace_name.h"

#include <QFile>
#include <QFileInfo>

#include <optional>
#include <utility>

#include <sys/stat.h>

namespace ponderscope {

namespace {

qint64 stamp_of(const struct stat& info) {
    return static_cast<qint64>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
}

std::optional<struct stat> stat_of(const QString& path) {
    struct stat info {};
    return ::stat(QFile::encodeName(path).constData(), &info) == 0 ? std::optional(info) : std::nullopt;
}

} // namespace

/// Nothing: not known yet. gone: no file of that name.
std::optional<TraceWatch::Seen> TraceWatch::look(const QString& trace) {
    if (is_elsewhere(trace)) {
        std::shared_ptr<remote::Watch>& watch = far_[trace];
        if (!watch) {
            watch = std::make_shared<remote::Watch>(trace.toStdString());
        }
        remote::Looked there;
        if (!watch->look(there)) {
            return std::nullopt;
        }
        return Seen{there.device,
                    there.inode,
                    static_cast<qint64>(there.size),
                    {there.times[0], there.times[1], there.times[2]},
                    there.kind == remote::Kind::none};
    }
    const auto info = stat_of(trace);
    if (!info) {
        return Seen{.gone = true};
    }
    const QString real = QFileInfo(trace).canonicalFilePath();
    const auto stamp_beside = [&](const char* suffix) {
        const auto other = stat_of(real + QLatin1String(suffix));
        return other ? stamp_of(*other) : 0;
    };
    return Seen{static_cast<quint64>(info->st_dev),
                static_cast<quint64>(info->st_ino),
                static_cast<qint64>(info->st_size),
                {stamp_of(*info), stamp_beside("-wal"), stamp_beside(".annotations")},
                false};
}

bool TraceWatch::hasCome(const QString& trace) {
    const auto seen = look(trace);
    return seen && !seen->gone && seen->size > 0;
}

QString TraceWatch::machineFault(const QString& trace) const {
    const auto place = far_.find(trace);
    return place == far_.end() ? QString() : QString::fromStdString(place->second->state().fault);
}

QList<TraceWatch::Change> TraceWatch::check(const QStringList& traces) {
    QList<Change> changes;
    std::erase_if(seen_, [&](const auto& entry) { return !traces.contains(entry.first); });
    std::erase_if(lines_, [&](const auto& entry) { return !traces.contains(entry.first); });
    for (const QString& trace : traces) {
        const auto now = look(trace);
        if (is_elsewhere(trace)) {
            const remote::Watch& watch = *far_.at(trace);
            const remote::Host::State state = watch.state();
            const Line line{!state.fault.empty(), state.times};
            const Line before = std::exchange(lines_[trace], line);
            if (line.cut && !before.cut) {
                changes.append({trace, Event::cut});
            } else if (!line.cut && (before.cut || (before.times > 0 && line.times > before.times))) {
                changes.append({trace, Event::back});
            } else if (watch.is_behind()) {
                changes.append({trace, Event::moved});
            }
        }
        if (!now) {
            continue;
        }
        const auto place = seen_.find(trace);
        const bool known = place != seen_.end();
        Seen& seen = known ? place->second : seen_[trace];
        if (now->gone) {
            if (!seen.gone) {
                changes.append({trace, Event::gone});
            }
            seen.gone = true;
            continue;
        }
        if (known) {
            if (seen.gone || now->inode != seen.inode || now->device != seen.device) {
                changes.append({trace, Event::replaced});
            } else if (now->size < seen.size) {
                changes.append({trace, Event::shrunk});
            } else if (now->stamps != seen.stamps || now->size != seen.size) {
                changes.append({trace, Event::moved});
            }
        } else {
            changes.append({trace, Event::moved}); // it may have grown since it was opened
        }
        seen = *now;
    }
    return changes;
}

} // namespace ponderscope
