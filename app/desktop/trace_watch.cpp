// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/trace_watch.h"

#include "core/remote/file.h"
#include "views/common/paths.h"

#include <QFile>
#include <QFileInfo>
#include <QSet>

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

TraceWatch::Looks TraceWatch::look(const QStringList& traces) {
    Looks looks;
    for (const QString& trace : traces) {
        if (is_elsewhere(trace)) {
            continue; // seen() asks what its machine said last
        }
        const auto info = stat_of(trace);
        if (!info) {
            looks[trace] = {.gone = true};
            continue;
        }
        const QString real = QFileInfo(trace).canonicalFilePath();
        const auto stamp_beside = [&](const char* suffix) {
            const auto other = stat_of(real + QLatin1String(suffix));
            return other ? stamp_of(*other) : 0;
        };
        looks[trace] = {static_cast<quint64>(info->st_dev),
                        static_cast<quint64>(info->st_ino),
                        static_cast<qint64>(info->st_size),
                        {stamp_of(*info), stamp_beside("-wal"), stamp_beside(".annotations")},
                        false};
    }
    return looks;
}

/// Nothing: not known yet. gone: no file of that name.
std::optional<TraceWatch::Seen> TraceWatch::seen(const QString& trace, const Looks& looks) {
    if (!is_elsewhere(trace)) {
        const auto place = looks.find(trace);
        return place == looks.end() ? std::nullopt : std::optional(place->second);
    }
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

bool TraceWatch::hasCome(const QString& trace, const Looks& looks) {
    const auto now = seen(trace, looks);
    return now && !now->gone && now->size > 0;
}

QString TraceWatch::machineFault(const QString& trace) const {
    const auto place = far_.find(trace);
    return place == far_.end() ? QString() : QString::fromStdString(place->second->state().fault);
}

QList<TraceWatch::Change> TraceWatch::check(const QStringList& traces, const Looks& looks) {
    QList<Change> changes;
    const QSet<QString> listed(traces.begin(), traces.end()); // a run may have thousands of shards
    const auto gone = [&](const auto& entry) { return !listed.contains(entry.first); };
    std::erase_if(seen_, gone);
    std::erase_if(lines_, gone);
    for (const QString& trace : traces) {
        const auto now = seen(trace, looks);
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
        Seen& before = known ? place->second : seen_[trace];
        if (now->gone) {
            if (!before.gone) {
                changes.append({trace, Event::gone});
            }
            before.gone = true;
            continue;
        }
        if (known) {
            if (before.gone || now->inode != before.inode || now->device != before.device) {
                changes.append({trace, Event::replaced});
            } else if (now->size < before.size) {
                changes.append({trace, Event::shrunk});
            } else if (now->stamps != before.stamps || now->size != before.size) {
                changes.append({trace, Event::moved});
            }
        } else {
            changes.append({trace, Event::moved}); // it may have grown since it was opened
        }
        before = *now;
    }
    return changes;
}

} // namespace ponderscope
