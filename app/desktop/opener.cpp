// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/opener.h"

#include "app/desktop/view_state.h"
#include "core/base/error.h"
#include "core/remote/host.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"
#include "views/common/paths.h"

#include <QFileInfo>

#include <algorithm>
#include <utility>

namespace ponderscope {

namespace {

/// "TRACE#RUN" as typed.
std::pair<QString, QString> split_reference(const QString& path) {
    const RunReference parts = parse_run_reference(path.toStdString());
    return {path_text(parts.trace), QString::fromStdString(parts.run)};
}

/// Whether shards can be read under the name of a folder, of a pattern, or of the trace that they make.
bool names_shards(const QString& name) {
    try {
        return !find_shards(path_of(name)).empty();
    } catch (const InputError&) { // none of them
        return false;
    }
}

QString connecting_to(const QString& place) {
    return Opener::tr("Connecting to %1…").arg(machine_of(place).mid(6));
}

} // namespace

Opener::Opener(TraceData& data, Selection& selection, QObject* parent)
    : QObject(parent), data_(data), selection_(selection) {}

void Opener::listen() {
    connect(&data_, &TraceData::traceOpened, this, [this](const QString& trace) {
        const auto mine = [&](const Wanted& one) { return one.trace == trace; };
        std::vector<Wanted> named;
        std::copy_if(wanted_.begin(), wanted_.end(), std::back_inserter(named), mine);
        std::erase_if(wanted_, mine);
        for (const Wanted& one : named) {
            const std::vector<RunInfo> runs = data_.runs(trace);
            const auto run = std::find_if(runs.begin(), runs.end(), [&one](const RunInfo& info) {
                return QString::fromStdString(info.name) == one.run || QString::number(info.id) == one.run;
            });
            if (run == runs.end()) {
                Q_EMIT failed(tr("%1 has no run '%2'.").arg(trace, one.run));
            } else if (one.side == 0) {
                selection_.setRunA({trace, run->id});
            } else if (one.side == 1) {
                selection_.setRunB({trace, run->id});
            }
        }
        opening_.remove(trace);
        Q_EMIT opened(trace);
        ended(trace);
    });
    connect(&data_, &TraceData::traceClosed, this, [this](const QString& trace) {
        std::erase_if(wanted_, [&](const Wanted& one) { return one.trace == trace; });
        ended(trace);
    });
    connect(&data_, &TraceData::failed, this, [this](const QString& trace, const QString& sentence) {
        std::erase_if(wanted_, [&](const Wanted& one) { return one.trace == trace; });
        Q_EMIT failed(sentence);
        ended(trace);
    });
}

void Opener::ended(const QString& path) {
    opening_.remove(path);
    if (is_elsewhere(path)) {
        Q_EMIT waiting(connecting_to(path), false);
    }
    settle();
}

void Opener::settle() {
    if (!opening_.isEmpty()) {
        return;
    }
    sides_ = 0;
    for (const auto& call : std::exchange(then_, {})) {
        call();
    }
}

void Opener::refuse(const QString& sentence) {
    Q_EMIT failed(sentence);
    settle();
}

void Opener::open(const QString& path) {
    if (is_elsewhere(path)) {
        openElsewhere(path);
        return;
    }
    const QFileInfo whole(path);
    // The folder of a training: its curves are what one wants to see, while it trains or afterwards.
    if (const QFileInfo training(whole.absoluteFilePath() + QStringLiteral("/training.ponder"));
        whole.isDir() && training.isFile()) {
        Q_EMIT trainingFound();
        open(training.absoluteFilePath());
        return;
    }
    // A folder of shards is one run (TraceReader); any other is a checkpoint to record.
    if (whole.isDir() && !names_shards(path)) {
        Q_EMIT checkpointFound(whole.absoluteFilePath());
        return;
    }
    if (is_session_file(path) && whole.exists()) {
        Q_EMIT sessionFound(whole.absoluteFilePath());
        return;
    }
    const auto [trace, run] = split_reference(path);
    const QFileInfo info(trace);
    if (!info.exists() && !names_shards(trace)) {
        refuse(tr("%1 does not exist.").arg(trace));
        return;
    }
    openTrace(info.absoluteFilePath(), run);
}

void Opener::openTrace(const QString& trace, const QString& run) {
    Q_EMIT started(trace);
    if (is_elsewhere(trace) && !data_.isOpen(trace)) {
        Q_EMIT waiting(connecting_to(trace), true);
    }
    if (!run.isEmpty()) {
        wanted_.push_back({trace, run, sides_++});
    }
    opening_.insert(trace);
    data_.open(trace);
}

void Opener::openElsewhere(const QString& path) {
    const auto [trace, run] = split_reference(path);
    if (trace.endsWith(QLatin1String(".ponder"))) {
        openTrace(trace, run);
        return;
    }
    opening_.insert(path); // until it is known what it is
    Q_EMIT waiting(connecting_to(path), true);
    asked_ << path;
    if (asked_.size() == 1) {
        askElsewhere();
    }
}

void Opener::askElsewhere() {
    const QString path = asked_.constFirst();
    const auto [asked, asked_run] = split_reference(path);
    const auto answered = [this, path] {
        asked_.removeFirst();
        if (!asked_.isEmpty()) {
            QMetaObject::invokeMethod(this, &Opener::askElsewhere, Qt::QueuedConnection);
        }
        ended(path);
    };
    struct Answer {
        remote::Looked looked;
        bool shards = false;
    };
    asking_.start(
        [trace = asked](const std::stop_token&) {
            Answer found{remote::look(trace.toStdString()), false};
            found.shards =
                (found.looked.kind == remote::Kind::folder || found.looked.kind == remote::Kind::none) &&
                names_shards(trace);
            return found;
        },
        [this, answered, machine = machine_of(path), trace = asked, run = asked_run](const Answer& found) {
            const QString url = machine + QString::fromStdString(found.looked.path);
            if (found.shards) {
                openTrace(trace, run);
            } else if (found.looked.kind == remote::Kind::none) {
                Q_EMIT failed(tr("%1 does not exist.").arg(trace));
            } else if (found.looked.kind == remote::Kind::checkpoint) {
                Q_EMIT checkpointFound(url);
            } else if (found.looked.kind == remote::Kind::training) {
                Q_EMIT trainingFound();
                openTrace(url + QStringLiteral("/training.ponder"), run);
            } else if (found.looked.kind == remote::Kind::folder) {
                Q_EMIT folderFound(url);
            } else {
                openTrace(url, run);
            }
            answered();
        },
        [this, answered](const QString& sentence) {
            Q_EMIT failed(sentence);
            answered();
        });
}

} // namespace ponderscope
