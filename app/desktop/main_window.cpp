// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/main_window.h"

#include "app/desktop/message_bar.h"
#include "app/desktop/record_dialog.h"
#include "app/desktop/recording_status.h"
#include "app/desktop/settings.h"
#include "app/desktop/top_bar.h"
#include "app/desktop/tour.h"
#include "app/desktop/welcome.h"
#include "core/trace/recorded_choices.h"
#include "core/trace/summary.h"
#include "views/common/task.h"
#include "views/common/format.h"
#include "views/common/trace_name.h"
#include "views/compare/compare_view.h"
#include "views/figure/export_dialog.h"
#include "views/library/library_panel.h"
#include "views/policy/policy_lab.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QCloseEvent>
#include <QDockWidget>
#include <QFileInfo>
#include <QLabel>
#include <QMessageBox>
#include <QStatusBar>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace ponderscope {

namespace {

/// How often a growing trace is looked at.
constexpr int poll_ms = 500;

} // namespace

MainWindow::MainWindow(Theme& theme, Settings& settings, QWidget* parent)
    : QMainWindow(parent), theme_(theme), settings_(settings) {
    setAcceptDrops(true);
    setMinimumSize(640, 400);
    resize(1440, 900);
    buildPanels();
    buildMenus();
    buildWelcome();
    buildThink();
    buildHabits();
    connectData();
    connectRecorder();
    connectRerun();
    connectRuns();
    arrange(size());
    if (restoreGeometry(settings_.geometry())) {
        restoreLayout(settings_.layout());
    }
    showStatus();
    showTitle();
    poll_.setInterval(poll_ms);
    connect(&poll_, &QTimer::timeout, this, &MainWindow::poll);
    poll_.start();
}

MainWindow::~MainWindow() {
    // Before the data and the selection that they look at, which are members and would go first.
    delete tour_;
    delete welcome_;
    delete recordDialog_;
    delete exportDialog_;
    for (QDockWidget* dock : docks_) {
        dock->disconnect(this); // going, they say that they are hidden
    }
    qDeleteAll(docks_);
    delete takeCentralWidget();
    setMenuWidget(nullptr);
}

void MainWindow::connectData() {
    connectOpener();
    connect(&data_, &TraceData::traceChanged, this, &MainWindow::chooseRuns);
    connect(&data_, &TraceData::runChanged, this, [this](const RunKey& run) {
        if (run == selection_.runA()) {
            fitSequence();
            showStatus();
            showTitle();
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
        showTitle();
    });
    connect(&data_, &TraceData::failed, this, [this](const QString& path) {
        if (path == follower_.trace() && !recorder_.isRunning()) {
            follower_.forgetTrace(); // not again and again
        }
    });
    connect(&data_, &TraceData::sequenceReady, this, [this](const RunKey& run, qint64 sequence) {
        if (run == selection_.runA() && sequence == selection_.sequence()) {
            showStatus();
        }
    });
    connect(&text_->view(), &TextView::contentChanged, this, [this] {
        if (tourWanted_) {
            QMetaObject::invokeMethod(this, &MainWindow::startTour, Qt::QueuedConnection);
        }
    });
    connect(&selection_, &Selection::runsChanged, this, [this] {
        fitSequence();
        // A B that is there and was left is not wanted; one that vanished may have a successor.
        const RunKey b = selection_.runB();
        withoutB_ = !b.isValid() && (withoutB_ || isListed(lastB_));
        lastB_ = b;
        showStatus();
        showTitle();
    });
    connect(&selection_, &Selection::sequenceChanged, this, &MainWindow::showStatus);
    connect(library_, &LibraryPanel::checkRequested, this, &MainWindow::checkTrace);
}

void MainWindow::connectRecorder() {
    connect(&recorder_, &Recorder::started, this, [this] {
        hideWelcome();
        const RecordRequest& request = recorder_.request();
        follower_.begin(absolute_name(request.trace), rerunning_ ? RunFollower::As::b : RunFollower::As::a);
        recording_->begin(request.name.isEmpty() ? QFileInfo(request.checkpoint).fileName() : request.name);
    });
    connect(&recorder_, &Recorder::progressed, this,
            [this](const RecordingProgress& progress) { recording_->show(progress); });
    connect(&recorder_, &Recorder::finished, this, [this](const QString& trace, const QString& run) {
        recording_->end();
        if (!data_.isScratch(absolute_name(trace))) {
            settings_.addRecent(absolute_name(trace));
        }
        follower_.finish(absolute_name(trace), run);
        data_.refresh(follower_.trace());
        poll();
    });
    connect(&recorder_, &Recorder::cancelled, this, [this](const QString& trace) {
        follower_.cancel();
        recording_->end();
        data_.refresh(follower_.trace());
        messages_->show(tr("The recording was cancelled; %1 holds what was finished, marked as partial.")
                            .arg(data_.isScratch(absolute_name(trace)) ? tr("Scratch") : trace),
                        MessageBar::Kind::notice);
        poll();
    });
    connect(&recorder_, &Recorder::failed, this, [this](const QString& sentence) {
        follower_.cancel();
        data_.refresh(follower_.trace());
        if (!recorder_.isRunning()) {
            recording_->end();
        }
        messages_->show(sentence);
        poll();
    });
    connect(recording_, &RecordingStatus::cancelRequested, this, [this] {
        recording_->cancelling();
        recorder_.cancel();
    });
}

void MainWindow::connectRerun() {
    connect(lab_, &PolicyLab::rerunRequested, this, [this](const RunKey& key, const QString& policy) {
        if (recorder_.isRunning()) {
            messages_->show(tr("A recording is running already; wait for it or cancel it."));
        } else if (const RunInfo* run = data_.run(key); run != nullptr && scratchReady()) {
            // Why it cannot be run again at all comes before where its checkpoint is.
            const QString folder = checkpointOf(key);
            if (folder.isEmpty() && why_no_rerun(*run).empty()) {
                locateCheckpoint(key, [this, key, policy] { Q_EMIT lab_->rerunRequested(key, policy); });
            } else {
                rerun_.start(key, *run, policy, folder, scratchFor(key.trace));
            }
        }
    });
    connect(lab_, &PolicyLab::rerunCancelRequested, this, [this] {
        recording_->cancelling();
        recorder_.cancel();
    });
    connect(&rerun_, &Rerun::failed, this, [this](const QString& sentence) {
        messages_->show(sentence);
        lab_->endRerun(false);
    });
    connect(&rerun_, &Rerun::prepared, this, [this](const RecordRequest& request) {
        if (const QString problem = problem_of(request); !problem.isEmpty()) {
            messages_->show(tr("The rerun needs something from you. %1").arg(problem));
            lab_->endRerun(false);
            showRecordDialog(request);
            return;
        }
        rerunning_ = true;
        lab_->setRerunProgress(0);
        recorder_.start(request);
    });
    connect(&recorder_, &Recorder::progressed, this, [this](const RecordingProgress& progress) {
        if (rerunning_) {
            // The bytes of the weights, which come first, are no part of it.
            const bool counts = progress.total > 0 && progress.unit == QLatin1String("tokens");
            lab_->setRerunProgress(
                counts ? static_cast<int>(std::clamp<qint64>(progress.done * 1000 / progress.total, 0, 1000))
                       : 0);
        }
    });
    const auto ended = [this](bool done) {
        if (rerunning_ && !recorder_.isRunning()) {
            rerunning_ = false;
            lab_->endRerun(done);
        }
    };
    connect(&recorder_, &Recorder::finished, this, [ended] { ended(true); });
    connect(&recorder_, &Recorder::cancelled, this, [ended] { ended(false); });
    connect(&recorder_, &Recorder::failed, this, [ended] { ended(false); });
    connect(lab_, &PolicyLab::figureWanted, this, [this] { exportFigure(figure::FigureKind::policy_table); });
}

void MainWindow::apply(const Launch& launch) {
    if (launch.sequence || launch.token) {
        opener_.then([this, launch] {
            selection_.setSequence(launch.sequence.value_or(selection_.sequence()));
            selection_.setToken(launch.token.value_or(selection_.token()));
        });
    }
    if (const auto quantity = quantity_called(launch.quantity)) {
        text_->setQuantity(*quantity);
    }
    text_->setDifference(launch.difference);
    for (const QString& name : launch.tabs) {
        raisePanel(name);
    }
}

bool MainWindow::raisePanel(const QString& name) {
    if (name == QLatin1String("policies")) {
        lab_->setTableShown(true);
        return raisePanel(QStringLiteral("lab"));
    }
    const auto dock = dockByName_.find(name);
    if (dock == dockByName_.end()) {
        return false;
    }
    if (maximised_ != dock->second) {
        leaveMaximised();
    }
    dock->second->show();
    dock->second->raise();
    return true;
}

bool MainWindow::isBusy() const {
    const bool computing =
        std::any_of(live_.begin(), live_.end(), [](const LiveView* view) { return view->isBusy(); });
    return computing || opener_.isBusy() || !data_.idle() || text_->isBusy() || compare_->isBusy() ||
           (selection_.runA().isValid() && !text_->view().sequence() && errors_.isEmpty() &&
            !data_.sequences(selection_.runA()).empty());
}

QStringList MainWindow::errors() const {
    return errors_;
}

QString MainWindow::statusText() const {
    return status_->text();
}

void MainWindow::traceOpened(const QString& path) {
    if (!data_.isLive(path) && !data_.isScratch(path)) {
        settings_.addRecent(path);
    }
    chooseRuns();
    if (!selection_.runB().isValid() && !withoutB_) {
        compareOverTheSameText();
    }
    showStatus();
    showTitle();
}

void MainWindow::fitSequence() {
    const auto sequences = data_.sequences(selection_.runA());
    if (data_.run(selection_.runA()) != nullptr &&
        data_.sequenceInfo(selection_.runA(), selection_.sequence()) == nullptr) {
        selection_.setSequence(sequences.empty() ? 0 : sequences.front().index);
    }
}

bool MainWindow::isListed(const RunKey& key) const {
    const std::vector<RunInfo> runs = data_.runs(key.trace);
    return std::any_of(runs.begin(), runs.end(), [&key](const RunInfo& run) { return run.id == key.run; });
}

void MainWindow::chooseRuns() {
    const RunKey a = selection_.runA();
    const RunKey b = selection_.runB();
    if (b.isValid() && !isListed(b)) {
        selection_.setRunB({});
    }
    if (!isListed(a)) {
        // A run that ponders is what the program is for; else the first.
        RunKey first;
        RunKey pondering;
        const QStringList traces = data_.traces();
        for (const QString& trace : traces) {
            for (const RunInfo& run : data_.runs(trace)) {
                const RunKey key{trace, run.id};
                first = first.isValid() ? first : key;
                pondering = pondering.isValid() || run.max_steps == 0 ? pondering : key;
            }
        }
        selection_.setRunA(pondering.isValid() ? pondering : first);
        if (!selection_.runB().isValid() && !withoutB_) {
            compareOverTheSameText();
        }
    }
    follower_.rebase(a, b);
}

void MainWindow::compareOverTheSameText() {
    const RunInfo* a = data_.run(selection_.runA());
    const QStringList traces = data_.traces();
    for (const QString& trace : traces) {
        for (const RunInfo& run : data_.runs(trace)) {
            const RunKey key{trace, run.id};
            if (a != nullptr && key != selection_.runA() && run.text_digest == a->text_digest) {
                selection_.setRunB(key);
                return;
            }
        }
    }
}

void MainWindow::showStatus() {
    const RunInfo* run = data_.run(selection_.runA());
    if (run == nullptr) {
        status_->setText(tr("No run is open"));
        return;
    }
    QStringList parts;
    double nll = mean_nll(*run);
    qint64 tokens = run->tokens;
    qint64 scored = run->scored_tokens;
    double steps = mean_steps(*run);
    if (const SequenceInfo* info = data_.sequenceInfo(selection_.runA(), selection_.sequence())) {
        tokens = info->tokens;
        scored = info->scored_tokens;
        nll = mean_nll(*info);
        steps = info->scored_tokens > 0 ? info->steps_sum / static_cast<double>(info->scored_tokens)
                                        : std::nan("");
    }
    // While a run grows, it does not say yet how many it has.
    const qint64 sequences =
        std::max<qint64>(run->sequences, static_cast<qint64>(data_.sequences(selection_.runA()).size()));
    parts << (sequences > 0 ? tr("sequence %1 of %2")
                                  .arg(format_count(selection_.sequence() + 1), format_count(sequences))
                            : tr("no sequence yet"));
    parts << tr("%1 tokens").arg(format_count(tokens));
    // What the mean is over: a token is scored where it was predicted, and the first one never is.
    // A token that was drawn from outside its candidates has no NLL before the whole text is scored.
    const bool some = data_.isLive(selection_.runA().trace) && scored > 0 && scored < tokens - 1;
    parts << (scored == 0 ? tr("no NLL yet")
              : some      ? tr("NLL %1 over %2 of %3 predicted, the others are scored at the end")
                           .arg(format_nats(nll, 3), format_count(scored), format_count(tokens - 1))
                     : tr("NLL %1 over %2 predicted").arg(format_nats(nll, 3), format_count(scored)));
    if (run->max_steps > 0) {
        parts << tr("steps %1").arg(format_nats(steps));
    }
    parts << QString::fromStdString(run->device) + u' ' + QString::fromStdString(run->dtype);
    if (is_elsewhere(selection_.runA().trace)) {
        parts << tr("read from %1").arg(machine_of(selection_.runA().trace).mid(6));
    }
    const QStringList faults = data_.faults(selection_.runA());
    if (!run->complete) {
        parts << (faults.isEmpty() ? tr("partial") : tr("partial: %1").arg(faults.back()));
    }
    status_->setToolTip(plain_tip(faults.join(u'\n')));
    status_->setText(parts.join(QStringLiteral(" · ")));
}

void MainWindow::showTitle() {
    const RunKey a = selection_.runA();
    const bool file = a.isValid() && !data_.isLive(a.trace);
    const bool scratch = data_.isScratch(a.trace);
    const QString place = is_elsewhere(a.trace) ? tr(" on %1").arg(machine_of(a.trace).mid(6)) : QString();
    setWindowTitle(scratch       ? tr("Scratch")
                   : file        ? QFileInfo(a.trace).fileName() + place
                   : a.isValid() ? tr("thinking")
                                 : QString());
    setWindowFilePath(file && !scratch && place.isEmpty() ? a.trace : QString());
}

RecordDialog* MainWindow::recordDialog() const {
    return recordDialog_;
}

ExportDialog* MainWindow::exportDialog() const {
    return exportDialog_;
}

void MainWindow::showRecordDialog(const RecordRequest& wanted) {
    if (recordDialog_ == nullptr) {
        const QString open = selection_.runA().trace;
        recordDialog_ = new RecordDialog(
            settings_, theme_, data_.isScratch(open) || data_.isLive(open) ? QString() : open, this);
        recordDialog_->offerCheckpoints(offeredCheckpoints());
        recordDialog_->setAttribute(Qt::WA_DeleteOnClose);
        connect(recordDialog_, &QDialog::accepted, this, [this] {
            recordDialog_->remember();
            settings_.addRecent(recordDialog_->request().checkpoint);
            recorder_.start(recordDialog_->request());
        });
    }
    if (!wanted.trace.isEmpty()) {
        recordDialog_->setRequest(wanted);
    } else if (!wanted.checkpoint.isEmpty()) {
        RecordRequest request = recordDialog_->request();
        request.checkpoint = wanted.checkpoint;
        if (is_elsewhere(wanted.checkpoint)) { // what a run reads and writes lies where it is made
            request.fromPrompt = request.fromPrompt || !is_elsewhere(request.textFile);
            request.trace = wanted.checkpoint + QStringLiteral(".ponder");
        }
        recordDialog_->setRequest(request);
    }
    recordDialog_->show();
    recordDialog_->raise();
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (isVisible() && (recorder_.isRunning() || thinker_.isRunning())) {
        const bool recording = recorder_.isRunning();
        const auto answer = QMessageBox::question(
            this, recording ? tr("A recording is running") : tr("A model is generating"),
            recording
                ? tr("Stop the recording and close? What is finished stays in the trace, marked as partial.")
                : tr("Stop the generation and close? Its tokens are lost; Stop in the Think panel keeps "
                     "them."),
            QMessageBox::Yes | QMessageBox::No, QMessageBox::No);
        if (answer != QMessageBox::Yes) {
            event->ignore();
            return;
        }
    }
    if (!leavesScratch()) {
        event->ignore();
        return;
    }
    if (presenting_) {
        present(); // its layout is none to come back to
    }
    leaveMaximised();
    settings_.setWindow(saveGeometry(), layoutState());
    event->accept();
}

} // namespace ponderscope
