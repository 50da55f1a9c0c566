// SPDX-License-Identifier: GPL-3.0-or-later
// What a name opens, here and on other machines.
#include "app/desktop/main_window.h"

#include "app/desktop/connect_dialog.h"
#include "app/desktop/message_bar.h"
#include "app/desktop/settings.h"
#include "core/base/error.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"
#include "views/common/paths.h"
#include "views/common/trace_name.h"

#include <QFileInfo>

#include <algorithm>
#include <filesystem>

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

} // namespace

void MainWindow::open(const QString& path) {
    if (is_elsewhere(path)) {
        openElsewhere(path);
        return;
    }
    const QFileInfo whole(path);
    // The folder of a training: its curves are what one wants to see, while it trains or afterwards.
    if (const QFileInfo training(whole.absoluteFilePath() + QStringLiteral("/training.ponder"));
        whole.isDir() && training.isFile()) {
        raisePanel(QStringLiteral("training"));
        open(training.absoluteFilePath());
        return;
    }
    // A folder of shards is one run (TraceReader); any other is a checkpoint to record.
    if (whole.isDir() && !names_shards(path)) {
        settings_.addRecent(whole.absoluteFilePath());
        RecordRequest request;
        request.checkpoint = whole.absoluteFilePath();
        showRecordDialog(request);
        return;
    }
    if (is_session_file(path) && whole.exists()) {
        openSession(whole.absoluteFilePath());
        return;
    }
    const auto [trace, run] = split_reference(path);
    const QFileInfo info(trace);
    if (!info.exists() && !names_shards(trace)) {
        const QString sentence = tr("%1 does not exist.").arg(trace);
        errors_ << sentence;
        messages_->show(sentence);
        return;
    }
    openTrace(info.absoluteFilePath(), run);
}

void MainWindow::openTrace(const QString& trace, const QString& run) {
    hideWelcome();
    if (is_elsewhere(trace)) {
        messages_->show(connectingTo(trace), MessageBar::Kind::notice);
    }
    if (!run.isEmpty()) {
        wanted_.emplace_back(trace, run);
    }
    opening_.insert(trace);
    data_.open(trace);
}

QString MainWindow::connectingTo(const QString& place) {
    return tr("Connecting to %1…").arg(machine_of(place).mid(6));
}

void MainWindow::openElsewhere(const QString& path) {
    const auto [trace, run] = split_reference(path);
    if (trace.endsWith(QLatin1String(".ponder"))) {
        openTrace(trace, run);
        return;
    }
    opening_.insert(path); // until it is known what it is
    messages_->show(connectingTo(path), MessageBar::Kind::notice);
    elsewhereAsked_ << path;
    if (elsewhereAsked_.size() == 1) {
        askElsewhere();
    }
}

void MainWindow::askElsewhere() {
    const QString path = elsewhereAsked_.constFirst();
    const auto [asked, asked_run] = split_reference(path);
    const QString machine = machine_of(path);
    const auto connected = [this, path] {
        opening_.remove(path);
        messages_->retract(connectingTo(path));
        elsewhereAsked_.removeFirst();
        if (!elsewhereAsked_.isEmpty()) {
            QMetaObject::invokeMethod(this, &MainWindow::askElsewhere, Qt::QueuedConnection);
        }
    };
    struct Answer {
        remote::Looked looked;
        bool shards = false;
    };
    elsewhere_.start(
        [trace = asked](const std::stop_token&) {
            Answer found{remote::look(trace.toStdString()), false};
            found.shards =
                (found.looked.kind == remote::Kind::folder || found.looked.kind == remote::Kind::none) &&
                names_shards(trace);
            return found;
        },
        [this, connected, machine, trace = asked, run = asked_run](const Answer& found) {
            connected();
            if (found.shards) {
                openTrace(trace, run);
                return;
            }
            const QString url = machine + QString::fromStdString(found.looked.path);
            switch (found.looked.kind) {
            case remote::Kind::none: {
                const QString sentence = tr("%1 does not exist.").arg(trace);
                errors_ << sentence;
                messages_->show(sentence);
                break;
            }
            case remote::Kind::checkpoint: {
                settings_.addRecent(url);
                RecordRequest request;
                request.checkpoint = url;
                showRecordDialog(request);
                break;
            }
            case remote::Kind::training:
                raisePanel(QStringLiteral("training"));
                openTrace(url + QStringLiteral("/training.ponder"), run);
                break;
            case remote::Kind::folder:
                connectTo(url);
                break;
            default:
                openTrace(url, run);
            }
        },
        [this, connected](const QString& sentence) {
            connected();
            errors_ << sentence;
            messages_->show(sentence);
        });
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

} // namespace ponderscope
