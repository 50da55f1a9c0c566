// SPDX-License-Identifier: GPL-3.0-or-later
// What happens with what is opened, and with files that change while they are open.
#include "app/desktop/main_window.h"

#include "app/desktop/connect_dialog.h"
#include "app/desktop/message_bar.h"
#include "app/desktop/settings.h"
#include "views/common/trace_name.h"
#include "views/text/text_panel.h"

#include <QFileInfo>

namespace ponderscope {

void MainWindow::connectOpener() {
    opener_.listen();
    follower_.listen();
    connect(&opener_, &Opener::started, this, &MainWindow::hideWelcome);
    connect(&opener_, &Opener::opened, this, &MainWindow::traceOpened);
    connect(&opener_, &Opener::failed, this, &MainWindow::fail);
    connect(&opener_, &Opener::waiting, this, [this](const QString& sentence, bool on) {
        on ? messages_->show(sentence, MessageBar::Kind::notice) : messages_->retract(sentence);
    });
    connect(&opener_, &Opener::checkpointFound, this, [this](const QString& folder) {
        // A folder without a model is no checkpoint to open again.
        if (is_elsewhere(folder) || QFileInfo::exists(folder + QStringLiteral("/config.json"))) {
            settings_.addRecent(folder);
        }
        RecordRequest request;
        request.checkpoint = folder;
        showRecordDialog(request);
    });
    connect(&opener_, &Opener::sessionFound, this, &MainWindow::openSession);
    connect(&opener_, &Opener::trainingFound, this, [this] { raisePanel(QStringLiteral("training")); });
    connect(&opener_, &Opener::folderFound, this, &MainWindow::connectTo);
    connect(&follower_, &RunFollower::liveRecorded, this, [this] { thinker_.forget(); });
    connect(&follower_, &RunFollower::compared, this, [this] {
        text_->setDifference(true);
        sayPair();
    });
}

void MainWindow::fail(const QString& sentence) {
    errors_ << sentence;
    messages_->show(sentence);
}

void MainWindow::open(const QString& path) {
    const QFileInfo file(path);
    const QFileInfo sample(file.fileName() == u"samples.ponder" ? samples().recorded : QString());
    if (sample.exists() && sample.canonicalFilePath() == file.canonicalFilePath()) {
        openSample();
    } else {
        opener_.open(path);
    }
}

void MainWindow::connectTo(const QString& place) {
    auto* dialog = findChild<ConnectDialog*>();
    if (dialog == nullptr) {
        dialog = new ConnectDialog(settings_, theme_, this);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        connect(dialog, &ConnectDialog::chosen, this, &MainWindow::open);
    }
    if (!place.isEmpty()) {
        dialog->look(place);
    }
    dialog->show();
    dialog->raise();
}

void MainWindow::poll() {
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
                        if (recorder_.isRunning()) {
                            data_.refresh(recorded);
                        }
                        for (const TraceWatch::Change& change : watch_.check(files, looks)) {
                            follow(change);
                        }
                    },
                    [](const QString&) {}); // nothing to say: a file that cannot be looked at is gone
}

void MainWindow::follow(const TraceWatch::Change& change) {
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
        messages_->show(tr("%1 is gone; what is on the screen was read before.").arg(change.trace));
        break;
    case TraceWatch::Event::replaced:
        messages_->show(tr("%1 was replaced by another file, which is shown now.")
                            .arg(QFileInfo(change.trace).fileName()),
                        MessageBar::Kind::notice);
        with_traces([this](const QString& trace) { opener_.openTrace(trace); });
        break;
    case TraceWatch::Event::cut:
        messages_->show(watch_.machineFault(change.trace));
        break;
    case TraceWatch::Event::back:
        for (const QString& sentence : messages_->sentences()) {
            if (sentence.startsWith(machine_of(change.trace) + u':')) {
                messages_->retract(sentence);
            }
        }
        messages_->show(tr("The connection to %1 is back.").arg(machine_of(change.trace).mid(6)),
                        MessageBar::Kind::notice);
        with_traces(refresh); // what could not be read is asked for again
        break;
    case TraceWatch::Event::shrunk:
        messages_->show(tr("%1 has become shorter, so a part of it is missing; what is on the screen was "
                           "read before. Close it and open it again to see what is left.")
                            .arg(change.trace));
        break;
    }
}

} // namespace ponderscope
