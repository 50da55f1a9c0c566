// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/main_window.h"

#include "app/desktop/message_bar.h"
#include "app/desktop/record_dialog.h"
#include "app/desktop/recording_status.h"
#include "app/desktop/related_dialog.h"
#include "app/desktop/settings.h"
#include "app/desktop/top_bar.h"
#include "app/desktop/tour.h"
#include "app/desktop/welcome.h"
#include "core/trace/recorded_choices.h"
#include "core/trace/summary.h"
#include "views/common/background.h"
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
    if (!settings_.geometry().isEmpty()) {
        restoreGeometry(settings_.geometry());
        restoreLayout(settings_.layout());
        fitPanels();
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
    delete relatedDialog_;
    delete exportDialog_;
    for (QDockWidget* dock : docks_) {
        dock->disconnect(this); // going, they say that they are hidden
    }
    qDeleteAll(docks_);
    delete takeCentralWidget();
    setMenuWidget(nullptr);
}

void MainWindow::connectData() {
    connect(&data_, &TraceData::traceOpened, this, &MainWindow::traceOpened);
    connect(&data_, &TraceData::traceChanged, this, &MainWindow::traceChanged);
    connect(&data_, &TraceData::traceClosed, this, [this](const QString& path) {
        opening_.remove(path);
        if (absolute_name(recorder_.request().trace) == path) {
            followed_ = false; // what goes on being recorded does not bring it back
        }
        if (selection_.runB().trace == path) {
            selection_.setRunB({});
        }
        if (selection_.runA().trace == path) {
            selection_.setRunA({});
            chooseRuns();
        }
        showTitle();
    });
    connect(&data_, &TraceData::failed, this, [this](const QString& path, const QString& sentence) {
        opening_.remove(path);
        messages_->retract(connectingTo(path));
        followed_ = followed_ && recorder_.isRunning(); // not again and again
        errors_ << sentence;
        messages_->show(sentence);
        showSession();
    });
    connect(&data_, &TraceData::sequenceReady, this, &MainWindow::showStatus);
    connect(&text_->view(), &TextView::contentChanged, this, [this] {
        if (tourWanted_) {
            QMetaObject::invokeMethod(this, &MainWindow::startTour, Qt::QueuedConnection);
        }
    });
    connect(&selection_, &Selection::runsChanged, this, [this] {
        // Another run may hold fewer sequences.
        const auto sequences = data_.sequences(selection_.runA());
        const bool there = std::any_of(sequences.begin(), sequences.end(), [this](const SequenceInfo& info) {
            return info.index == selection_.sequence();
        });
        if (!there && !sequences.empty()) {
            selection_.setSequence(sequences.front().index);
        }
        showStatus();
        showTitle();
    });
    connect(&selection_, &Selection::sequenceChanged, this, &MainWindow::showStatus);
    connect(library_, &LibraryPanel::checkRequested, this, &MainWindow::checkTrace);
    connect(library_, &LibraryPanel::relatedRequested, this, &MainWindow::showRelated);
}

void MainWindow::connectRecorder() {
    connect(&recorder_, &Recorder::started, this, [this] {
        hideWelcome();
        const RecordRequest& request = recorder_.request();
        log_.ran(record_arguments(request));
        followed_ = true;
        seen_ = false;
        recording_->begin(request.name.isEmpty() ? QFileInfo(request.checkpoint).fileName() : request.name);
        runsBefore_.clear();
        for (const RunInfo& run : data_.runs(absolute_name(request.trace))) {
            runsBefore_.push_back(run.id);
        }
    });
    connect(&recorder_, &Recorder::progressed, this,
            [this](const RecordingProgress& progress) { recording_->show(progress); });
    connect(&recorder_, &Recorder::finished, this, [this](const QString& trace, const QString& run) {
        recording_->end();
        recordedRun(absolute_name(trace), run);
        poll();
    });
    connect(&recorder_, &Recorder::cancelled, this, [this](const QString& trace) {
        whatIf_ = {};
        recording_->end();
        messages_->show(tr("The recording was cancelled; %1 holds what was finished, marked as partial.")
                            .arg(data_.isScratch(absolute_name(trace)) ? tr("Scratch") : trace),
                        MessageBar::Kind::notice);
        poll();
    });
    connect(&recorder_, &Recorder::failed, this, [this](const QString& sentence) {
        whatIf_ = {};
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
    launch_ = launch;
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
    return computing || !opening_.isEmpty() || !data_.idle() || text_->isBusy() || compare_->isBusy() ||
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
    opening_.remove(path);
    messages_->retract(connectingTo(path));
    if (!data_.isLive(path) && !data_.isScratch(path)) {
        settings_.addRecent(path);
    }
    traceChanged(path);
    showSession();
    if (launch_.sequence) {
        selection_.setSequence(*std::exchange(launch_.sequence, std::nullopt));
    }
    if (launch_.token) {
        selection_.setToken(*std::exchange(launch_.token, std::nullopt));
    }
}

void MainWindow::traceChanged(const QString& path) {
    const std::vector<RunInfo> runs = data_.runs(path);
    showWantedRun(path);
    if (recorder_.isRunning() && absolute_name(recorder_.request().trace) == path) {
        // The run that is being recorded is what one wants to watch.
        const auto fresh = std::find_if(runs.begin(), runs.end(), [this](const RunInfo& run) {
            return std::find(runsBefore_.begin(), runsBefore_.end(), run.id) == runsBefore_.end();
        });
        if (fresh != runs.end()) {
            runsBefore_.push_back(fresh->id);
            seen_ = true;
        }
        if (fresh != runs.end() && rerunning_) {
            selection_.setRunB({path, fresh->id}); // the lab stays with what it reruns
        } else if (fresh != runs.end()) {
            showAsA({path, fresh->id}, whatIf_);
        }
    }
    for (std::size_t side = 0; side < wanted_.size(); ++side) {
        const auto& [trace, named] = wanted_[side];
        if (trace != path || named.isEmpty()) {
            continue;
        }
        const auto run = std::find_if(runs.begin(), runs.end(), [&name = named](const RunInfo& info) {
            return QString::fromStdString(info.name) == name || QString::number(info.id) == name;
        });
        if (run == runs.end()) {
            const QString sentence = tr("%1 holds no run '%2'.").arg(trace, named);
            errors_ << sentence;
            messages_->show(sentence);
        } else if (side == 0) {
            selection_.setRunA({path, run->id});
        } else if (side == 1) {
            selection_.setRunB({path, run->id});
        }
        wanted_[side].second.clear(); // once
    }
    chooseRuns();
    showStatus();
    showTitle();
}

bool MainWindow::isListed(const RunKey& key) const {
    const std::vector<RunInfo> runs = data_.runs(key.trace);
    return std::any_of(runs.begin(), runs.end(), [&key](const RunInfo& run) { return run.id == key.run; });
}

void MainWindow::chooseRuns() {
    if (selection_.runB().isValid() && !isListed(selection_.runB()) &&
        !data_.isLive(selection_.runB().trace)) {
        selection_.setRunB({});
    }
    if (!isListed(selection_.runA())) {
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
    }
    if (!selection_.runB().isValid()) {
        compareOverTheSameText();
    }
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

void MainWindow::poll() {
    // The trace that is recorded into opens as soon as it exists.
    const QString recorded = followed_ ? absolute_name(recorder_.request().trace) : QString();
    if (!recorded.isEmpty() && !data_.isOpen(recorded) && !opening_.contains(recorded) &&
        watch_.hasCome(recorded)) {
        opening_.insert(recorded);
        data_.open(recorded);
    }
    // A recording in another process is followed too.
    bool moved = recorder_.isRunning();
    QStringList files;
    for (const QString& trace : data_.traces()) {
        files << data_.files(trace);
    }
    files.removeDuplicates();
    for (const TraceWatch::Change& change : watch_.check(files)) {
        const QString name = QFileInfo(change.trace).fileName();
        switch (change.event) {
        case TraceWatch::Event::moved:
            moved = true;
            break;
        case TraceWatch::Event::gone:
            messages_->show(tr("%1 is gone; what is on the screen was read before.").arg(change.trace));
            break;
        case TraceWatch::Event::replaced:
            messages_->show(tr("%1 was replaced by another file, which is shown now.").arg(name),
                            MessageBar::Kind::notice);
            for (const QString& trace : data_.traces()) {
                if (data_.files(trace).contains(change.trace)) {
                    opening_.insert(trace);
                    data_.open(trace);
                }
            }
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
            moved = true; // what could not be read is asked for again
            break;
        case TraceWatch::Event::shrunk:
            messages_->show(tr("%1 has become shorter, so a part of it is missing; what is on the screen was "
                               "read before. "
                               "Close it and open it again to see what is left.")
                                .arg(change.trace));
            break;
        }
    }
    if (moved) {
        data_.refresh();
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
    for (const SequenceInfo& info : data_.sequences(selection_.runA())) {
        if (info.index == selection_.sequence()) {
            tokens = info.tokens;
            scored = info.scored_tokens;
            nll = mean_nll(info);
            steps = info.scored_tokens > 0 ? info.steps_sum / static_cast<double>(info.scored_tokens)
                                           : std::nan("");
        }
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

RelatedDialog* MainWindow::relatedDialog() const {
    return relatedDialog_;
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
    if (recorder_.isRunning() && isVisible()) {
        const auto answer = QMessageBox::question(
            this, tr("A recording is running"),
            tr("Stop the recording and close? What is finished stays in the trace, marked as partial."),
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
    settings_.setWindow(saveGeometry(), saveState());
    event->accept();
}

} // namespace ponderscope
