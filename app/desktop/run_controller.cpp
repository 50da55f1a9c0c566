// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/run_controller.h"

#include "app/desktop/branches.h"
#include "app/desktop/dock_layout.h"
#include "app/desktop/open_traces.h"
#include "app/desktop/record_dialog.h"
#include "app/desktop/run_edits.h"
#include "app/desktop/samples.h"
#include "app/desktop/think_panel.h"
#include "core/checkpoint/method_info.h"
#include "core/trace/recorded_choices.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/common/view_command.h"
#include "views/depth/depth_charts.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QMessageBox>
#include <QStandardPaths>
#include <QStatusBar>
#include <QTemporaryFile>
#include <QUuid>

#include <algorithm>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int days_kept = 14;

void forget_old(QDir folder) {
    const QDateTime oldest = QDateTime::currentDateTime().addDays(-days_kept);
    const QFileInfoList files =
        folder.entryInfoList({u"scratch-*.ponder*"_s}, QDir::Files | QDir::NoSymLinks);
    for (const QFileInfo& file : files) {
        if (file.lastModified() < oldest) {
            folder.remove(file.fileName());
        }
    }
}

QString new_scratch() {
    return QStandardPaths::writableLocation(QStandardPaths::CacheLocation) +
           u"/scratch/scratch-%1-%2.ponder"_s.arg(QDateTime::currentDateTime().toString(u"yyyyMMdd-HHmmss"_s),
                                                  QUuid::createUuid().toString(QUuid::Id128).left(8));
}

/// Creates the folder of temporary runs. Returns an error message; empty: success.
QString prepare_scratch(const QString& trace) {
    const QString folder = QFileInfo(trace).path();
    const bool there = QDir().mkpath(folder);
    // Write a file, because permissions alone do not show whether this works.
    QTemporaryFile probe(folder + u"/probe-XXXXXX"_s);
    if (!there || !probe.open() || probe.write("probe") != 5 || !probe.flush()) {
        return u"Cannot write temporary runs to %1 (%2). Free disk space, or set XDG_CACHE_HOME to a "
               "writable folder and start Ponderscope again."_s.arg(
                   folder, there ? probe.errorString() : u"cannot create the folder"_s);
    }
    forget_old(QDir(folder));
    return {};
}

/// Finds a file or folder that a trace names: as named, else relative to the trace's folder or a folder
/// above. Empty: not found.
QString find_named(const QString& named, const QString& trace) {
    if (is_elsewhere(trace)) { // the remote machine resolves "/.../"
        return named.isEmpty()          ? QString()
               : named.startsWith(u'/') ? machine_of(trace) + named
                                        : trace.section(u'/', 0, -2) + u"/.../"_s + named;
    }
    if (const QFileInfo here(named); here.exists()) {
        return here.absoluteFilePath();
    }
    if (QFileInfo(named).isAbsolute() || named.isEmpty()) {
        return {};
    }
    for (QDir folder = QFileInfo(trace).absoluteDir();; folder.cdUp()) {
        const QFileInfo candidate(folder, named);
        if (candidate.exists()) {
            return QDir::cleanPath(candidate.absoluteFilePath());
        }
        if (folder.isRoot()) {
            return {};
        }
    }
}

} // namespace

RunController::~RunController() {
    delete recordDialog_;
}

bool RunController::mayClose() {
    if (!recorder_.isRunning() && !thinker_.isRunning()) {
        return true;
    }
    const bool recording = recorder_.isRunning();
    return QMessageBox::question(window_,
                                 recording ? u"A recording is running"_s : u"A model is generating"_s,
                                 recording ? u"Stop the recording and close? Finished sequences stay in "
                                             "the trace. The run is marked as partial."_s
                                           : u"Stop the generation and close? The generated tokens are "
                                             "lost. To save them, press Stop in the Think panel first."_s,
                                 QMessageBox::Yes | QMessageBox::No, QMessageBox::No) == QMessageBox::Yes;
}

RecordDialog* RunController::recordDialog() const {
    return recordDialog_;
}

RunController::RunController(const Shell& shell, OpenTraces& traces, RunEdits& edits, DockLayout& docks)
    : ShellPart(shell),
      traces_(traces),
      edits_(edits),
      docks_(docks),
      thinker_(shell.views.data),
      scratch_(new_scratch()),
      recording_(new RecordingStatus(shell.views.theme, &shell.window)) {
    window_->statusBar()->addPermanentWidget(recording_);
    data_.setScratch(scratch_);
    traces_.setRecording([this] { return recorder_.isRunning(); });
    connect(&traces_.opener(), &Opener::checkpointFound, this, [this](const QString& folder) {
        // Only a folder with a model becomes a recent checkpoint.
        if (is_elsewhere(folder) || QFileInfo::exists(folder + u"/config.json"_s)) {
            settings_.addRecent(folder);
        }
        RecordRequest request;
        request.checkpoint = folder;
        showRecordDialog(request);
    });
    connect(&traces_.follower(), &RunFollower::liveRecorded, this, [this] { thinker_.forget(); });
    connect(&traces_.follower(), &RunFollower::compared, this, [this] { text_->setDifference(true); });
    connect(&recorder_, &Recorder::started, this, [this] {
        Q_EMIT started();
        const RecordRequest& request = recorder_.request();
        traces_.follower().begin(absolute_name(request.trace),
                                 rerunning_ ? RunFollower::As::b : RunFollower::As::a);
        recording_->begin(request.name.isEmpty() ? QFileInfo(request.checkpoint).fileName() : request.name);
    });
    connect(&recorder_, &Recorder::progressed, this, [this](const RecordingProgress& progress) {
        recording_->show(progress);
        if (rerunning_) {
            // Loading the weights, which comes first, reports bytes and does not count.
            const bool counts = progress.total > 0 && progress.unit == QLatin1String("tokens");
            Q_EMIT rerunProgressed(
                counts ? static_cast<int>(std::clamp<qint64>(progress.done * 1000 / progress.total, 0, 1000))
                       : 0);
        }
    });
    connect(&recorder_, &Recorder::finished, this, [this](const QString& trace, const QString& run) {
        asked_.reset();
        if (!data_.isScratch(absolute_name(trace))) {
            settings_.addRecent(absolute_name(trace));
        }
        traces_.follower().finish(absolute_name(trace), run);
        recordingEnded(true);
    });
    connect(&recorder_, &Recorder::cancelled, this, [this](const QString& trace) {
        asked_.reset();
        traces_.follower().cancel();
        messages_->show(
            "recording.cancelled",
            u"The recording was cancelled. Finished sequences are in %1. The run is marked as partial."_s.arg(
                data_.isScratch(absolute_name(trace)) ? u"Temporary"_s : trace),
            MessageBar::Kind::notice);
        recordingEnded(false);
    });
    connect(&recorder_, &Recorder::failed, this, [this](const char* id, const QString& sentence) {
        traces_.follower().cancel();
        messages_->show(id, sentence);
        recordingEnded(false);
        // The message says what the checkpoint needs (another method, token ids), so the dialog opens again.
        if (const auto asked = std::exchange(asked_, std::nullopt);
            asked && QLatin1String(id) == QLatin1String("recording.refused")) {
            showRecordDialog(*asked);
        }
    });
    connect(recording_, &RecordingStatus::cancelRequested, this, &RunController::cancelRecording);
}

void RunController::recordingEnded(bool done) {
    data_.refresh(traces_.follower().trace());
    traces_.poll();
    if (recorder_.isRunning()) { // a second request was refused; the first recording continues
        return;
    }
    recording_->hide();
    if (std::exchange(rerunning_, false)) {
        Q_EMIT rerunEnded(done);
    }
}

void RunController::cancelRecording() {
    recording_->cancelling();
    recorder_.cancel();
}

void RunController::rerun(const RunKey& key, const QString& policy) {
    if (recorder_.isRunning()) {
        messages_->show("recording.running", u"A recording is running. Wait for it or cancel it."_s);
        return;
    }
    const RunInfo* run = data_.run(key);
    if (run == nullptr) {
        return;
    }
    // Before asking for the checkpoint, check whether the run can be repeated at all.
    QString why = QString::fromStdString(why_no_rerun(*run));
    std::optional<RecordRequest> request;
    if (why.isEmpty()) {
        request = requestLike(key, policy, kv_of_rerun(*run), [this, key, policy] { rerun(key, policy); });
        if (!request || (request->trace = scratchFor(key.trace)).isEmpty()) {
            return;
        }
        why = problem_of(*request);
    }
    if (!why.isEmpty()) {
        messages_->show("rerun.refused", why);
        Q_EMIT rerunEnded(false);
        return;
    }
    rerunning_ = true;
    Q_EMIT rerunProgressed(0);
    recorder_.start(*request);
}

void RunController::showRecordDialog(const RecordRequest& wanted) {
    if (recordDialog_ == nullptr) {
        const QString open = selection_.runA().trace;
        recordDialog_ = new RecordDialog(
            settings_, theme_, data_.isScratch(open) || data_.isLive(open) ? QString() : open, window_);
        recordDialog_->offerCheckpoints(offeredCheckpoints());
        recordDialog_->setAttribute(Qt::WA_DeleteOnClose);
        if (RecordRequest first = recordDialog_->request(); first.textFile.isEmpty()) {
            first.textFile = find_samples().text;
            recordDialog_->setRequest(first);
        }
        connect(recordDialog_, &QDialog::accepted, this, [this] {
            recordDialog_->remember();
            asked_ = recordDialog_->request();
            settings_.addRecent(asked_->checkpoint);
            recorder_.start(*asked_);
        });
    }
    if (!wanted.trace.isEmpty()) {
        recordDialog_->setRequest(wanted);
    } else if (!wanted.checkpoint.isEmpty()) {
        RecordRequest request = recordDialog_->request();
        request.checkpoint = wanted.checkpoint;
        if (is_elsewhere(wanted.checkpoint)) { // the text and the trace must be on the checkpoint's machine
            request.fromPrompt = request.fromPrompt || !is_elsewhere(request.textFile);
            request.trace = wanted.checkpoint + u".ponder"_s;
        }
        recordDialog_->setRequest(request);
    }
    recordDialog_->show();
    recordDialog_->raise();
}

QStringList RunController::offeredCheckpoints() {
    QStringList folders;
    for (const RunKey& key : {selection_.runA(), selection_.runB()}) {
        if (const QString folder = checkpointOf(key); !folder.isEmpty()) {
            folders << folder;
        }
    }
    static const QStringList installed = find_samples().checkpoints;
    folders << installed;
    const QStringList recent = settings_.recent();
    std::ranges::copy_if(recent, std::back_inserter(folders), [](const QString& path) {
        return is_elsewhere(path) ? !path.endsWith(QLatin1String(".ponder")) : QFileInfo(path).isDir();
    });
    folders.removeDuplicates();
    return folders;
}

void RunController::showThink() {
    Q_EMIT started();
    think_->setCheckpoints(offeredCheckpoints(), checkpointOf(selection_.runA()));
    docks_.raise(u"think"_s);
    think_->focusPrompt();
}

void RunController::think(const ThinkRequest& request) {
    settings_.setDialog(u"think more"_s, option_line(request.more));
    parent_ = {};
    generate(request);
}

std::optional<RecordRequest> RunController::requestLikeA(std::function<void()> again) {
    const RunKey key = selection_.runA();
    const RunInfo* run = data_.run(key);
    if (run == nullptr || data_.isLive(key.trace)) {
        messages_->show("run.live",
                        u"Wait until the generation has ended. This action needs a recorded run."_s,
                        MessageBar::Kind::notice);
        return std::nullopt;
    }
    // Drop the forced steps from a policy such as "learned; forced 12:3".
    return requestLike(key, QString::fromStdString(run->policy).section(u"; forced "_s, 0, 0),
                       recorded_choices(*run).kv, [this, key, again = std::move(again)] {
                           if (selection_.runA() == key) {
                               again();
                           }
                       });
}

std::optional<RecordRequest> RunController::requestLike(const RunKey& key, const QString& policy,
                                                        const std::string& kv,
                                                        const std::function<void()>& again) {
    const RunInfo& run = *data_.run(key);
    RecordRequest request = rerun_request(run, key.trace, policy, QString::fromStdString(kv));
    request.fromRun = run_reference(key, run);
    request.checkpoint = checkpointOf(key);
    if (request.checkpoint.isEmpty()) {
        edits_.locateCheckpoint(key, again);
        return std::nullopt;
    }
    return request;
}

void RunController::ask(RecordRequest request, const RunKey& question) {
    request.trace = scratchFor(question.trace);
    if (request.trace.isEmpty()) {
        return;
    }
    traces_.follower().ask(question);
    recorder_.start(request);
    if (!recorder_.isRunning()) {
        traces_.follower().ask({});
    }
}

void RunController::branch(qint64 at, int id) {
    const std::optional<RecordRequest> same = requestLikeA([this, at, id] { branch(at, id); });
    if (!same) {
        return;
    }
    const RunKey key = selection_.runA();
    const RunInfo* run = data_.run(key);
    // The model has the settings of the run. Sampling and the number of tokens come from the panel.
    ThinkRequest request = think_->request();
    request.checkpoint = same->checkpoint;
    request.policy = same->policy;
    request.device = same->device;
    request.more = same->more;
    request.more << u"--method="_s + same->method << u"--dtype="_s + same->dtype;
    request.from = same->fromRun;
    request.sequence = selection_.sequence();
    request.at = at;
    request.force = id;
    QString root = QString::fromStdString(run->name);
    if (const std::optional<Branch> before = recorded_choices(*run).branch) {
        root = root.left(root.lastIndexOf(u" %1: "_s.arg(before->at)));
    }
    request.name = u"%1 %2: %3"_s.arg(root).arg(at).arg(data_.tokenLabel(key, id));
    parent_ = key;
    generate(request);
}

void RunController::generate(ThinkRequest wanted) {
    if (wanted.trace.isEmpty()) {
        wanted.trace = scratchFor(wanted.checkpoint);
        if (wanted.trace.isEmpty()) {
            return;
        }
    }
    if (data_.isLive(selection_.runA().trace)) {
        selection_.setRunA({}); // drop the previous live run
    }
    traces_.follower().beginLive();
    thinker_.start(wanted);
}

QString RunController::checkpointOf(const RunKey& key) const {
    const RunInfo* run = data_.run(key);
    if (run == nullptr) {
        return {};
    }
    const QString named = find_named(QString::fromStdString(run->checkpoint), key.trace);
    return named.isEmpty() ? settings_.located(QString::fromStdString(run->checkpoint_digest)) : named;
}

QString RunController::scratchFor(const QString& lies) {
    // Only one run at a time may be written to the trace of temporary runs.
    const bool recording = recorder_.isRunning() && data_.isScratch(absolute_name(recorder_.request().trace));
    const QString problem = recording || thinker_.isRunning() || edits_.isBusy()
                                ? u"A temporary run is being written. Wait for it or cancel it."_s
                                : prepare_scratch(scratch_);
    if (!problem.isEmpty()) {
        messages_->show("scratch.not-ready", problem);
        return {};
    }
    const QString machine = machine_of(lies);
    QString scratch =
        machine.isEmpty() ? scratch_ : machine + u"/tmp/ponderscope-"_s + QFileInfo(scratch_).fileName();
    data_.setScratch(scratch);
    return scratch;
}

void RunController::attachThink(ThinkPanel& panel) {
    think_ = &panel;
    connect(think_, &ThinkPanel::thinkRequested, this, &RunController::think);
    connect(&think_->branches(), &Branches::branchRequested, this, &RunController::branch);
    connect(&think_->branches(), &Branches::saveRequested, &edits_, &RunEdits::keepTree);
    think_->setOptions(settings_.dialog(u"think more"_s));
    connect(&selection_, &Selection::runsChanged, this,
            [this] { think_->setCheckpoints(offeredCheckpoints(), checkpointOf(selection_.runA())); });
    connect(think_, &ThinkPanel::stopRequested, &thinker_, &Thinker::cancel);
    connect(&thinker_, &Thinker::started, this, [this] {
        Q_EMIT started();
        think_->setRunning(true);
        think_->setStatus(u"Reading the weights…"_s);
    });
    connect(&thinker_, &Thinker::began, this, [this] { traces_.follower().showLive(thinker_.key()); });
    connect(&thinker_, &Thinker::grew, this, [this](qint64 tokens) {
        think_->setStatus(tokens < thinker_.promptTokens()
                              ? u"Reading the prompt: %1 of %2 tokens"_s.arg(
                                    format_count(tokens), format_count(thinker_.promptTokens()))
                              : u"Generating: %1 tokens after the prompt"_s.arg(
                                    format_count(tokens - thinker_.promptTokens())));
    });
    connect(&thinker_, &Thinker::recorded, this, [this](const QString& trace, const QString& run) {
        const bool scratch = data_.isScratch(absolute_name(trace));
        think_->setStatus(scratch
                              ? u"“%1” is temporary. To save the run, open its menu in the Library"_s.arg(run)
                              : u"Recorded as “%1” in %2"_s.arg(run, trace));
        traces_.follower().finishLive(thinker_.key(), trace, run, parent_);
    });
    connect(&thinker_, &Thinker::failed, this, [this](const char* id, const QString& sentence) {
        messages_->show(id, sentence);
        think_->setStatus(sentence);
    });
    connect(&thinker_, &EngineProcess::ended, this, [this] { think_->setRunning(false); });
}

RecordRequest rerun_request(const RunInfo& run, const QString& trace, const QString& policy,
                            const QString& kv) {
    RecordRequest request;
    request.method = QString::fromStdString(run.method);
    request.policy = policy;
    const auto option = [&request](const char* name, const QString& value) {
        if (!value.isEmpty()) {
            request.more << QLatin1String(name) + u'=' + value;
        }
    };
    if (const MethodInfo* method = method_info(run.method); method != nullptr && method->any_steps) {
        option("--steps", QString::number(run.max_steps + 1));
    }
    option("--kv", kv);
    const QString start = QString::fromStdString(recorded_choices(run).initial_state);
    const bool of_file = start != u"zero" && !start.startsWith(u"random:");
    const QString file = of_file ? find_named(start, trace) : QString();
    option("--initial-state", file.isEmpty() ? start : file);
    // "jacobi:3"; "exact" appears only where a method could also be scored otherwise.
    const QString scoring = QString::fromStdString(run.scoring);
    option("--jacobi", scoring.startsWith(u"jacobi:")                           ? scoring.mid(7)
                       : run.method == "ponderlm2" || run.method == "ponderlm3" ? u"exact"_s
                                                                                : QString());
    for (const AblatedSource& one : ablated_sources(run)) {
        option("--ablate-source",
               one.layer ? u"%1:%2"_s.arg(one.source).arg(*one.layer) : QString::number(one.source));
    }
    request.device = QString::fromStdString(run.device).section(u' ', 0, 0);
    request.dtype = QString::fromStdString(run.dtype);
    request.level = QString::fromStdString(run.record_level);
    request.name = QString::fromStdString(run.name) + u' ' + policy;
    request.context = static_cast<int>(run.context);
    request.stride = static_cast<int>(run.stride);
    return request;
}

} // namespace ponderscope
