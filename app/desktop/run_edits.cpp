// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/run_edits.h"

#include "app/desktop/open_traces.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/method_info.h"
#include "core/trace/tools/merge.h"
#include "core/trace/tools/run_edits.h"
#include "views/common/paths.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// A question with Cancel as its only button. The caller adds the other buttons and calls open().
QMessageBox* make_question(const QString& title, const QString& text, const QString& note, QWidget* parent) {
    auto* question = new QMessageBox(QMessageBox::Question, title, text, QMessageBox::Cancel, parent);
    question->setTextFormat(Qt::PlainText);
    question->setInformativeText(note);
    question->setDefaultButton(QMessageBox::Cancel);
    question->setAttribute(Qt::WA_DeleteOnClose);
    return question;
}

} // namespace

void RunEdits::editRuns(RunEdit edit, const QString& trace, const std::function<void()>& then) {
    if (edits_.isBusy()) {
        messages_->show("edit.running", u"The window is writing to a trace. Wait until it has finished."_s,
                        MessageBar::Kind::notice);
        return;
    }
    // The edit replaces the file, which the watch would report as a change by another process.
    traces_.pauseWatch(trace);
    edits_.start(
        std::move(edit),
        [this, trace, then](const QString& done) {
            traces_.reopen(trace);
            messages_->show("edit.done", done, MessageBar::Kind::success);
            if (then) {
                then();
            }
        },
        [this, trace](const QString& sentence) {
            traces_.reopen(trace);
            messages_->show("edit.failed", sentence);
        });
}

void RunEdits::renameRun(const RunKey& key, const QString& name) {
    if (const RunInfo* run = data_.run(key)) {
        editRuns(
            [trace = path_of(key.trace), run = *run, name = name.toStdString()](const std::stop_token&,
                                                                                const Task::Tell&) {
                rename_run(trace, run, name);
                return QString();
            },
            key.trace);
    }
}

void RunEdits::removeRun(const RunKey& key) {
    const RunInfo* run = data_.run(key);
    if (run == nullptr) {
        return;
    }
    auto* question = make_question(u"Remove Run"_s,
                                   u"Remove “%1” from %2? This cannot be undone."_s.arg(
                                       QString::fromStdString(run->name), QFileInfo(key.trace).fileName()),
                                   u"The old trace stays until the new trace is complete."_s, window_);
    QPushButton* remove = question->addButton(u"Remove"_s, QMessageBox::DestructiveRole);
    connect(remove, &QPushButton::clicked, this, [this, key, run = *run] {
        editRuns(
            [trace = path_of(key.trace), run](const std::stop_token& stop, const Task::Tell&) {
                remove_run(trace, run, stop);
                return QString();
            },
            key.trace, [this, key] { kept_.erase(key); }); // the next temporary run may get the same number
    });
    question->open();
}

void RunEdits::keep(const QString& title, const std::vector<RunKey>& keys,
                    const std::function<void()>& then) {
    auto* dialog = new QFileDialog(window_, title, {}, u"Traces (*.ponder)"_s);
    dialog->setObjectName(u"keep"_s);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(u"ponder"_s);
    dialog->setOption(QFileDialog::DontConfirmOverwrite); // an existing trace gets an additional run
    dialog->setLabelText(QFileDialog::Accept, u"Keep"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    // Suggest the folder of the first local trace that is not temporary.
    const QStringList traces = data_.traces();
    const auto own = std::ranges::find_if(
        traces, [this](const QString& trace) { return !data_.isScratch(trace) && !is_elsewhere(trace); });
    if (own != traces.end()) {
        dialog->setDirectory(QFileInfo(*own).absolutePath());
    }
    connect(dialog, &QFileDialog::fileSelected, this, [this, keys, then](const QString& file) {
        const QString target = QFileInfo(file).absoluteFilePath();
        editRuns(
            [this, keys, target](const std::stop_token& stop, const Task::Tell& tell) {
                QStringList names;
                for (const RunKey& key : keys) {
                    names << u"“%1”"_s.arg(QString::fromStdString(
                        copy_run(path_of(key.trace), key.run, path_of(target), {}, stop)));
                    tell([this, key] { kept_.insert(key); }); // even if a later copy fails
                }
                return u"Saved as %1 in %2."_s.arg(names.join(u", "_s), target);
            },
            target, then);
        settings_.addRecent(target);
    });
    dialog->open();
}

void RunEdits::keepRun(const RunKey& key) {
    if (const RunInfo* run = data_.run(key)) {
        keep(u"Save “%1” to a Trace"_s.arg(QString::fromStdString(run->name)), {key}, {});
    }
}

void RunEdits::keepTree(const std::vector<RunKey>& keys) {
    keep(u"Save the Branches to a Trace"_s, keys, {});
}

std::vector<RunKey> RunEdits::runsNotKept() const {
    std::vector<RunKey> keys;
    for (const QString& trace : data_.traces()) {
        for (const RunInfo& run : data_.runs(trace)) {
            if (const RunKey key{trace, run.id}; data_.isScratch(trace) && !kept_.contains(key)) {
                keys.push_back(key);
            }
        }
    }
    return keys;
}

void RunEdits::locateCheckpoint(const RunKey& key, const std::function<void()>& then) {
    const RunInfo* run = data_.run(key);
    if (run == nullptr) {
        return;
    }
    const QString sentence =
        u"The checkpoint %1 of “%2” was not found%3. Choose the folder of the "
        "checkpoint."_s.arg(QString::fromStdString(run->checkpoint), QString::fromStdString(run->name),
                            QDir::isRelativePath(QString::fromStdString(run->checkpoint))
                                ? u" (its path was recorded relative to another folder)"_s
                                : QString());
    messages_->show("checkpoint.missing", sentence);
    auto* dialog = new QFileDialog(
        window_, u"Choose the checkpoint folder of “%1”"_s.arg(QString::fromStdString(run->name)));
    dialog->setObjectName(u"locate"_s);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    dialog->setLabelText(QFileDialog::Accept, u"Locate"_s);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    const QString digest = QString::fromStdString(run->checkpoint_digest);
    const MethodInfo* method = method_info(run->method); // some checkpoints fit several methods
    const auto kind = method != nullptr ? std::optional(method->kind) : std::nullopt;
    connect(dialog, &QFileDialog::fileSelected, this,
            [this, digest, kind, sentence, then](const QString& folder) {
                locating_.start(
                    [folder, kind](const std::stop_token& stop) {
                        return checkpoint_digest(Checkpoint::open(path_of(folder), kind), {}, stop);
                    },
                    [this, folder, digest, sentence, then](const std::string& found) {
                        if (!digest.isEmpty() && QString::fromStdString(found) != digest) {
                            messages_->show(
                                "checkpoint.other",
                                u"%1 is not the checkpoint of the run (SHA-256 %2… instead of %3…). "
                                "Choose the folder that the checkpoint was moved to."_s.arg(
                                    folder, QString::fromStdString(found).left(12), digest.left(12)));
                            return;
                        }
                        settings_.setLocated(digest, folder);
                        messages_->retract(sentence);
                        then();
                    },
                    [this](const QString& problem) { messages_->show("checkpoint.unreadable", problem); });
            });
    dialog->open();
}

bool RunEdits::leavesScratch() {
    const std::size_t left = runsNotKept().size();
    if (left == 0 || scratchAsked_ || !window_->isVisible()) {
        return true;
    }
    auto* question = make_question(
        u"Unsaved Runs"_s,
        left == 1 ? u"One run is not saved to a trace. Close without saving it?"_s
                  : u"%1 runs are not saved to a trace. Close without saving them?"_s.arg(left),
        u"What-if runs, reruns and generated runs are temporary until you save them to a trace."_s, window_);
    question->setObjectName(u"scratchLeft"_s);
    QPushButton* save = question->addButton(u"Save to Trace…"_s, QMessageBox::AcceptRole);
    QPushButton* leave = question->addButton(u"Discard"_s, QMessageBox::DestructiveRole);
    connect(save, &QPushButton::clicked, this, [this] {
        keep(u"Save the Runs of This Session to a Trace"_s, runsNotKept(), [this] { window_->close(); });
    });
    connect(leave, &QPushButton::clicked, this, [this] {
        scratchAsked_ = true;
        window_->close();
    });
    question->open();
    return false;
}

} // namespace ponderscope
