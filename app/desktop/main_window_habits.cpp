// SPDX-License-Identifier: GPL-3.0-or-later
// Habits: undo and redo of what is looked at, sessions, the command palette, shortcuts, several windows.
#include "app/desktop/main_window.h"

#include "app/desktop/command_palette.h"
#include "app/desktop/message_bar.h"
#include "app/desktop/settings.h"
#include "app/desktop/shortcut_dialog.h"
#include "app/desktop/top_bar.h"
#include "views/text/find_bar.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QMenuBar>

namespace ponderscope {

namespace {

/// Changes within this time are one: a walk with the arrow keys, a word that is typed into the find bar.
constexpr int settle_ms = 400;

} // namespace

void MainWindow::buildHabits() {
    settling_.setSingleShot(true);
    settling_.setInterval(settle_ms);
    connect(&settling_, &QTimer::timeout, this, [this] {
        if (selection_.runA().isValid() && !data_.isLive(selection_.runA().trace)) {
            history_.record(viewState());
            showHistory();
        }
    });
    const auto moved = [this] {
        if (!travelling_) {
            settling_.start();
        }
    };
    connect(&selection_, &Selection::runsChanged, this, moved);
    connect(&selection_, &Selection::sequenceChanged, this, moved);
    connect(&selection_, &Selection::tokenChanged, this, moved);
    connect(&selection_, &Selection::stepChanged, this, moved);
    connect(&selection_, &Selection::depthChanged, this, moved);
    connect(&selection_, &Selection::attributionChanged, this, moved);
    connect(text_, &TextPanel::viewChanged, this, moved);
    connect(&theme_, &Theme::changed, this, moved);
    connect(&text_->view().ranges(), &ColourRanges::changed, this, moved);

    showHistory();
}

ViewState MainWindow::viewState() const {
    ViewState state;
    state.a = selection_.runA();
    state.b = selection_.runB();
    state.sequence = selection_.sequence();
    state.token = selection_.token();
    state.step = selection_.step();
    state.layer = selection_.layer();
    state.head = selection_.head();
    state.attribution = selection_.attribution();
    state.look = selection_.look();
    state.ranges = text_->view().ranges().all();
    state.zoom = text_->zoom();
    state.textSize = theme_.textSize();
    state.find = text_->findBar().query();
    return state;
}

void MainWindow::showState(const ViewState& state) {
    travelling_ = true;
    settling_.stop();
    if (data_.run(state.a) != nullptr) {
        selection_.setRunA(state.a);
        selection_.setRunB(data_.run(state.b) != nullptr ? state.b : RunKey{});
        selection_.setSequence(state.sequence);
    }
    theme_.setTextSize(state.textSize);
    text_->setLook(state.look);
    text_->view().ranges().setAll(state.ranges);
    text_->setZoom(state.zoom);
    selection_.setAttribution(state.attribution);
    if (state.find.isEmpty()) {
        if (!text_->findBar().query().isEmpty()) {
            text_->findBar().close();
        }
    } else if (state.find != text_->findBar().query()) {
        text_->findText(state.find);
    }
    selection_.setToken(state.token); // after the search, which jumps
    selection_.setStep(state.step);
    selection_.setLayer(state.layer);
    selection_.setHead(state.head);
    travelling_ = false;
    showHistory();
}

void MainWindow::showHistory() {
    if (undo_ != nullptr) {
        undo_->setEnabled(history_.canUndo() || settling_.isActive());
        redo_->setEnabled(history_.canRedo());
    }
}

void MainWindow::undo() {
    if (settling_.isActive()) {
        settling_.stop(); // what was changed just now is what is undone
        history_.record(viewState());
    }
    if (const auto state = history_.undo()) {
        showState(*state);
    }
}

void MainWindow::redo() {
    if (const auto state = history_.redo()) {
        showState(*state);
    }
}

void MainWindow::saveSession() {
    if (data_.traces().isEmpty()) {
        messages_->show(tr("Open a trace first: a session remembers what is open."),
                        MessageBar::Kind::notice);
        return;
    }
    const QFileInfo trace(data_.traces().constFirst());
    QString file = QFileDialog::getSaveFileName(this, tr("Save the session"),
                                                trace.absolutePath() + u'/' + trace.completeBaseName() +
                                                    QStringLiteral(".ponder-session"),
                                                tr("Sessions (*.ponder-session)"));
    if (file.isEmpty()) {
        return;
    }
    if (!is_session_file(file)) {
        file += QStringLiteral(".ponder-session");
    }
    saveSessionTo(file);
}

bool MainWindow::saveSessionTo(const QString& file) {
    const QString problem = save_session({data_.traces(), viewState(), layoutState(), views_}, file);
    if (!problem.isEmpty()) {
        fail(problem);
        return false;
    }
    settings_.addRecent(QFileInfo(file).absoluteFilePath());
    return true;
}

void MainWindow::openSession(const QString& file) {
    QString problem;
    const std::optional<Session> session = load_session(file, problem);
    if (!session) {
        fail(problem);
        return;
    }
    settings_.addRecent(QFileInfo(file).absoluteFilePath());
    views_ = session->views;
    leaveMaximised();
    if (!session->layout.isEmpty() && !restoreLayout(session->layout)) {
        messages_->show(tr("The session's layout is of another version; the panels stay as they are."),
                        MessageBar::Kind::notice);
    }
    for (const QString& trace : session->traces) {
        open(trace);
    }
    if (opener_.isBusy()) {
        opener_.then([this, view = session->view] { showState(view); });
    } else {
        showState(session->view); // none of them is there
    }
}

void MainWindow::newWindow() {
    auto* window = new MainWindow(theme_, settings_);
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->setWindowState(Qt::WindowNoState);
    window->setGeometry(geometry().translated(32, 32));
    window->fitTo(screen()->availableGeometry());
    window->show();
}

void MainWindow::showPalette() {
    auto* palette = new CommandPalette(commands_of(top_->menus().actions()), theme_, this);
    // The action outlives the palette, which is gone when it is triggered.
    auto* found = new QAction(this);
    connect(palette, &QObject::destroyed, found, &QObject::deleteLater);
    connect(found, &QAction::triggered, this, [this, found] { text_->findText(found->data().toString()); });
    palette->model().setTyped([found](const QString& line) {
        found->setData(line);
        return CommandModel::Command{found, {}, tr("Find “%1” in the text").arg(line)};
    });
    palette->move(mapToGlobal(QPoint((width() - palette->width()) / 2, 60)));
    palette->show();
}

void MainWindow::showShortcuts() {
    auto* dialog = new ShortcutDialog(commands_of(top_->menus().actions()), theme_, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->show();
}

} // namespace ponderscope
