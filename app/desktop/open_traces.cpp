// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/open_traces.h"

#include "app/desktop/message_bar.h"
#include "views/common/paths.h"

#include <QFileInfo>

namespace ponderscope {

namespace {

/// How often a growing trace is looked at.
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
            follower_.forgetTrace(); // not again and again
        }
    });
    poll_.setInterval(poll_ms);
    connect(&poll_, &QTimer::timeout, this, &OpenTraces::poll);
    poll_.start();
}

void OpenTraces::reopen(const QString& trace) {
    watching_.cancel();
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
        files << data_.files(trace);
    }
    files.removeDuplicates();
    // The trace that is recorded into opens as soon as it exists.
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
                    },
                    [](const QString&) {}); // nothing to say: a file that cannot be looked at is gone
}

void OpenTraces::follow(const TraceWatch::Change& change) {
    const auto with_traces = [&](auto&& call) {
        for (const QString& trace : data_.traces()) {
            if (data_.files(trace).contains(change.trace)) {
                call(trace);
            }
        }
    };
    // A recording in another process is followed, too.
    const auto refresh = [this](const QString& trace) { data_.refresh(trace); };
    switch (change.event) {
    case TraceWatch::Event::moved:
        with_traces(refresh);
        break;
    case TraceWatch::Event::gone:
        messages_->show("trace.removed",
                        tr("%1 was removed. The window shows what it read before.").arg(change.trace));
        break;
    case TraceWatch::Event::replaced:
        messages_->show(
            "trace.replaced",
            tr("%1 was replaced. The window shows the new file.").arg(QFileInfo(change.trace).fileName()),
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
                        tr("The connection to %1 is back.").arg(machine_of(change.trace).mid(6)),
                        MessageBar::Kind::notice);
        with_traces(refresh); // what could not be read is asked for again
        break;
    case TraceWatch::Event::shrunk:
        messages_->show("trace.shorter", tr("%1 became shorter: a part is missing. The window shows what it "
                                            "read before. Close the trace and open it again to see the rest.")
                                             .arg(change.trace));
        break;
    }
}

} // namespace ponderscope
