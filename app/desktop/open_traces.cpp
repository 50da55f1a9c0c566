// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/open_traces.h"

#include "app/desktop/samples.h"
#include "app/desktop/session_state.h"
#include "core/base/error.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"
#include "views/common/paths.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <QStandardPaths>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// Interval at which the open files are checked.
constexpr int poll_ms = 500;

} // namespace

OpenTraces::OpenTraces(const Shell& shell) : ShellPart(shell) {
    opener_.listen();
    follower_.listen();
    connect(&opener_, &Opener::waiting, this, [this](const QString& sentence, bool on) {
        on ? messages_->show("connection.waiting", sentence, MessageBar::Kind::notice)
           : messages_->retract(sentence);
    });
    connect(&data_, &TraceData::failed, this, [this](const QString& path) {
        if (path == follower_.trace() && !isRecording_()) {
            follower_.forgetTrace(); // do not try again
        }
    });
    connect(&opener_, &Opener::opened, this, [this](const QString& path) {
        if (!data_.isLive(path) && !data_.isScratch(path)) {
            settings_.addRecent(path);
        }
        chooseRuns();
        compareOverTheSameText();
    });
    connect(&data_, &TraceData::traceChanged, this, &OpenTraces::chooseRuns);
    connect(&data_, &TraceData::runChanged, this, [this](const RunKey& run) {
        if (run == selection_.runA()) {
            fitSequence();
        }
    });
    connect(&data_, &TraceData::traceClosed, this, [this](const QString& path) {
        if (selection_.runB().trace == path) {
            selection_.setRunB({});
        }
        if (selection_.runA().trace == path) {
            selection_.setRunA({});
            chooseRuns();
        }
    });
    connect(&selection_, &Selection::runsChanged, this, [this] {
        fitSequence();
        // If the previous B is still open, the user removed it. If its run is gone, another run may become B.
        const RunKey b = selection_.runB();
        withoutB_ = !b.isValid() && (withoutB_ || data_.run(lastB_) != nullptr);
        lastB_ = b;
    });
    poll_.setInterval(poll_ms);
    connect(&poll_, &QTimer::timeout, this, &OpenTraces::poll);
    poll_.start();
}

void OpenTraces::open(const QString& path) {
    const QString recorded = find_samples().recorded;
    if (recorded.isEmpty() ||
        QFileInfo(path).canonicalFilePath() != QFileInfo(recorded).canonicalFilePath()) {
        opener_.open(path);
        return;
    }
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
    QString problem;
    if (const QString copy = copy_of_recorded(recorded, folder + u"/recorded"_s, problem); !copy.isEmpty()) {
        opener_.open(copy);
    } else {
        Q_EMIT opener_.failed(problem);
    }
}

void OpenTraces::openFiles() {
    const QStringList files = QFileDialog::getOpenFileNames(
        window_, u"Open traces"_s, {}, u"Traces and sessions (*.ponder *.ponder-session);;All files (*)"_s);
    for (const QString& file : files) {
        open(file);
    }
}

void OpenTraces::openLocation() {
    bool given = false;
    const QString place =
        QInputDialog::getText(window_, u"Open Location"_s,
                              u"A trace, a checkpoint or a training, local or ssh://HOST/PATH:"_s,
                              QLineEdit::Normal, settings_.dialog(u"location"_s, u"ssh://"_s), &given)
            .trimmed();
    if (given && !place.isEmpty()) {
        settings_.setDialog(u"location"_s, place);
        open(place);
    }
}

void OpenTraces::fitSequence() {
    const auto sequences = data_.sequences(selection_.runA());
    if (data_.run(selection_.runA()) != nullptr &&
        data_.sequenceInfo(selection_.runA(), selection_.sequence()) == nullptr) {
        selection_.setSequence(sequences.empty() ? 0 : sequences.front().number);
    }
}

void OpenTraces::chooseRuns() {
    const RunKey a = selection_.runA();
    const RunKey b = selection_.runB();
    if (b.isValid() && data_.run(b) == nullptr) {
        selection_.setRunB({});
    }
    if (data_.run(a) == nullptr) {
        // Prefer the first run with pondering steps.
        RunKey first;
        RunKey pondering;
        for (const QString& trace : data_.traces()) {
            for (const RunInfo& run : data_.runs(trace)) {
                const RunKey key{trace, run.id};
                first = first.isValid() ? first : key;
                pondering = pondering.isValid() || run.max_steps == 0 ? pondering : key;
            }
        }
        selection_.setRunA(pondering.isValid() ? pondering : first);
        compareOverTheSameText();
    }
    follower_.rebase(a, b);
}

void OpenTraces::compareOverTheSameText() {
    if (!selection_.runB().isValid() && !withoutB_) {
        selection_.setRunB(run_over_same_text(data_, selection_.runA()));
    }
}

void OpenTraces::pauseWatch(const QString& trace) {
    watching_.cancel();
    unwatched_ = trace;
}

void OpenTraces::reopen(const QString& trace) {
    watching_.cancel();
    unwatched_.clear();
    watch_.forget(trace);
    if (data_.isOpen(trace)) {
        opener_.openTrace(trace);
    }
}

void OpenTraces::poll() {
    if (watching_.isBusy()) { // a slow disk
        return;
    }
    QStringList files;
    for (const QString& trace : data_.traces()) {
        if (trace != unwatched_) {
            files << data_.files(trace);
        }
    }
    files.removeDuplicates();
    // The trace of a recording opens as soon as its file exists.
    const QString recorded = follower_.trace();
    const bool awaited = !recorded.isEmpty() && !data_.isOpen(recorded) && !opener_.isOpening(recorded);
    watching_.start([all = awaited ? files + QStringList(recorded)
                                   : files](const std::stop_token&) { return TraceWatch::look(all); },
                    [this, files, recorded, awaited](const TraceWatch::Looks& looks) {
                        if (awaited && watch_.hasCome(recorded, looks)) {
                            opener_.openTrace(recorded);
                        }
                        if (isRecording_()) {
                            data_.refresh(recorded);
                        }
                        for (const TraceWatch::Change& change : watch_.check(files, looks)) {
                            follow(change);
                        }
                        Q_EMIT looked();
                    },
                    [](const QString&) {}); // no message: an unreadable file counts as gone
}

void OpenTraces::follow(const TraceWatch::Change& change) {
    const auto with_traces = [&](auto&& call) {
        for (const QString& trace : QStringList(data_.traces())) { // a call may change the list
            if (data_.files(trace).contains(change.trace)) {
                call(trace);
            }
        }
    };
    // This also follows recordings of other processes.
    const auto refresh = [this](const QString& trace) { data_.refresh(trace); };
    switch (change.event) {
    case TraceWatch::Event::moved:
        with_traces(refresh);
        break;
    case TraceWatch::Event::gone:
        messages_->show(
            "trace.removed",
            u"%1 was deleted. The window shows the data that it read earlier."_s.arg(change.trace));
        break;
    case TraceWatch::Event::replaced:
        messages_->show(
            "trace.replaced",
            u"%1 was replaced. The window shows the new file."_s.arg(QFileInfo(change.trace).fileName()),
            MessageBar::Kind::notice);
        with_traces([this](const QString& trace) { opener_.openTrace(trace); });
        break;
    case TraceWatch::Event::cut:
        messages_->show("connection.cut", watch_.machineFault(change.trace));
        break;
    case TraceWatch::Event::back:
        for (const QString& sentence : messages_->sentences()) {
            if (sentence.startsWith(machine_of(change.trace) + u':')) {
                messages_->retract(sentence);
            }
        }
        messages_->show("connection.back",
                        u"The connection to %1 is back."_s.arg(machine_of(change.trace).mid(6)),
                        MessageBar::Kind::notice);
        with_traces(refresh); // read again after failures
        break;
    case TraceWatch::Event::shrunk:
        messages_->show(
            "trace.shorter",
            u"%1 became shorter: data is missing. The window shows the data that it read earlier. Close "
            "the trace and open it again to see the remaining data."_s.arg(change.trace));
        break;
    }
}

TraceWatch::Looks TraceWatch::look(const QStringList& traces) {
    Looks looks;
    for (const QString& trace : traces) {
        if (!is_elsewhere(trace)) { // seen() has the last answer of another machine
            looks[trace] = remote::look_here(path_of(trace));
        }
    }
    return looks;
}

/// std::nullopt: not known yet.
std::optional<remote::Looked> TraceWatch::seen(const QString& trace, const Looks& looks) {
    if (!is_elsewhere(trace)) {
        const auto place = looks.find(trace);
        return place == looks.end() ? std::nullopt : std::optional(place->second);
    }
    std::shared_ptr<remote::Watch>& watch = far_[trace];
    if (!watch) {
        watch = std::make_shared<remote::Watch>(trace.toStdString());
    }
    remote::Looked there;
    return watch->look(there) ? std::optional(there) : std::nullopt;
}

bool TraceWatch::hasCome(const QString& trace, const Looks& looks) {
    const auto now = seen(trace, looks);
    return now && now->size > 0;
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
            } else if (watch.is_stale()) {
                changes.append({trace, Event::moved});
            }
        }
        if (!now) {
            continue;
        }
        const bool known = seen_.contains(trace);
        remote::Looked& before = seen_[trace];
        const bool gone_before = before.kind == remote::Kind::none;
        if (now->kind == remote::Kind::none) {
            if (!known || !gone_before) {
                changes.append({trace, Event::gone});
            }
        } else if (!known) {
            changes.append({trace, Event::moved}); // first check: the file may have grown since it was opened
        } else if (gone_before || now->inode != before.inode || now->device != before.device) {
            changes.append({trace, Event::replaced});
        } else if (now->size < before.size) {
            changes.append({trace, Event::shrunk});
        } else if (!std::ranges::equal(now->times, before.times) || now->size != before.size) {
            changes.append({trace, Event::moved});
        }
        before = *now;
    }
    return changes;
}

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
    } catch (const InputError&) { // no shards
        return false;
    }
}

QString connecting_to(const QString& place) {
    return u"Connecting to %1…"_s.arg(machine_of(place).mid(6));
}

} // namespace

Opener::Opener(TraceData& data, Selection& selection, QObject* parent)
    : QObject(parent), data_(data), selection_(selection) {}

void Opener::listen() {
    connect(&data_, &TraceData::traceOpened, this, [this](const QString& trace) {
        const std::vector<Wanted> wanted = wanted_;
        for (const Wanted& one : wanted) {
            if (one.trace != trace) {
                continue;
            }
            const std::vector<RunInfo> runs = data_.runs(trace);
            const auto run = std::ranges::find_if(runs, [&one](const RunInfo& info) {
                return QString::fromStdString(info.name) == one.run || QString::number(info.id) == one.run;
            });
            if (run == runs.end()) {
                Q_EMIT failed(u"%1 has no run '%2'."_s.arg(trace, one.run));
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
    connect(&data_, &TraceData::traceClosed, this, &Opener::ended);
    connect(&data_, &TraceData::failed, this, [this](const QString& trace, const QString& sentence) {
        Q_EMIT failed(sentence);
        ended(trace);
    });
}

void Opener::ended(const QString& path) {
    std::erase_if(wanted_, [&](const Wanted& one) { return one.trace == path; });
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
    const auto [trace, run] = split_reference(path);
    if (!is_elsewhere(path)) {
        follow(path, look(trace));
    } else if (trace.endsWith(QLatin1String(".ponder"))) {
        openTrace(trace, run);
    } else {
        opening_.insert(path); // until the kind of the path is known
        Q_EMIT waiting(connecting_to(path), true);
        asked_ << path;
        if (asked_.size() == 1) {
            askElsewhere();
        }
    }
}

Opener::Found Opener::look(const QString& place) {
    const remote::Looked looked =
        is_elsewhere(place) ? remote::look(place.toStdString()) : remote::look_here(path_of(place));
    const bool whole = looked.kind == remote::Kind::trace || looked.kind == remote::Kind::file ||
                       looked.kind == remote::Kind::training;
    return {looked, !whole && names_shards(place)};
}

void Opener::follow(const QString& path, const Found& found) {
    using remote::Kind;
    const auto [trace, run] = split_reference(path);
    const bool here = !is_elsewhere(path);
    const QString place = here ? QFileInfo(trace).absoluteFilePath()
                               : machine_of(path) + QString::fromStdString(found.looked.path);
    const Kind kind = found.looked.kind;
    if (found.shards) { // TraceReader reads shards as one run
        openTrace(here ? place : trace, run);
    } else if (kind == Kind::none) {
        refuse(u"%1 does not exist."_s.arg(trace));
    } else if (kind == Kind::training) { // shows the training curves
        Q_EMIT trainingFound();
        openTrace(place + u"/training.ponder"_s, run);
    } else if (kind == Kind::checkpoint || (kind == Kind::folder && here)) {
        Q_EMIT checkpointFound(place);
    } else if (kind == Kind::folder) {
        refuse(u"%1 is a folder. Choose a trace or a checkpoint in the folder."_s.arg(place));
    } else if (here && is_session_file(trace)) {
        Q_EMIT sessionFound(place);
    } else {
        openTrace(place, run);
    }
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

void Opener::askElsewhere() {
    const QString path = asked_.constFirst();
    const auto answered = [this, path] {
        asked_.removeFirst();
        if (!asked_.isEmpty()) {
            QMetaObject::invokeMethod(this, &Opener::askElsewhere, Qt::QueuedConnection);
        }
        ended(path);
    };
    asking_.start([trace = split_reference(path).first](const std::stop_token&) { return look(trace); },
                  [this, path, answered](const Found& found) {
                      follow(path, found);
                      answered();
                  },
                  [this, answered](const QString& sentence) {
                      Q_EMIT failed(sentence);
                      answered();
                  });
}

} // namespace ponderscope
