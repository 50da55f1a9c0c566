// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/session_state.h"

#include "app/desktop/dock_layout.h"
#include "app/desktop/main_menu.h"
#include "app/desktop/message_bar.h"
#include "app/desktop/open_traces.h"
#include "app/desktop/settings.h"
#include "views/text/find_bar.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenu>
#include <QShortcut>
#include <QStatusBar>

#include <algorithm>

namespace ponderscope {

namespace {

/// Changes within this time are one: a walk with the arrow keys, a word that is typed into the find bar.
constexpr int settle_ms = 400;
constexpr int slide_letters = 32; ///< pixels at least, of the text on a slide
constexpr int low_status = 30;    ///< pixels of the status bar beside a slide

} // namespace

SessionState::SessionState(const Shell& shell, DockLayout& docks, Opener& opener)
    : ShellPart(shell), docks_(docks), opener_(opener), caption_(new QLabel(&shell.window)) {
    caption_->setTextFormat(Qt::PlainText);
    caption_->setObjectName(QStringLiteral("caption"));
    caption_->setContentsMargins(24, 0, 0, 0);
    caption_->hide();
    window_->statusBar()->addWidget(caption_, 1);
    connect(&theme_, &Theme::changed, this, [this] {
        if (!presenting_) { // the size of a slide is not the user's choice
            settings_.setTextSize(theme_.textSize());
        }
    });
    settling_.setSingleShot(true);
    settling_.setInterval(settle_ms);
    connect(&settling_, &QTimer::timeout, this, [this] {
        if (selection_.runA().isValid() && !data_.isLive(selection_.runA().trace)) {
            history_.record(viewState());
            Q_EMIT historyChanged();
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

    Q_EMIT historyChanged();
}

ViewState SessionState::viewState() const {
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

void SessionState::showState(const ViewState& state) {
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
    Q_EMIT historyChanged();
}

bool SessionState::canUndo() const {
    return history_.canUndo() || settling_.isActive();
}

void SessionState::undo() {
    if (settling_.isActive()) {
        settling_.stop(); // what was changed just now is what is undone
        history_.record(viewState());
    }
    if (const auto state = history_.undo()) {
        showState(*state);
    }
}

void SessionState::redo() {
    if (const auto state = history_.redo()) {
        showState(*state);
    }
}

void SessionState::saveSession() {
    if (data_.traces().isEmpty()) {
        messages_->show("session.no-trace", tr("Open a trace first. A session stores the open traces."),
                        MessageBar::Kind::notice);
        return;
    }
    const QFileInfo trace(data_.traces().constFirst());
    QString file = QFileDialog::getSaveFileName(window_, tr("Save Session As"),
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

bool SessionState::saveSessionTo(const QString& file) {
    const QString problem = save_session({data_.traces(), viewState(), docks_.layoutState(), views_}, file);
    if (!problem.isEmpty()) {
        Q_EMIT failed(problem);
        return false;
    }
    settings_.addRecent(QFileInfo(file).absoluteFilePath());
    return true;
}

void SessionState::openSession(const QString& file) {
    QString problem;
    const std::optional<Session> session = load_session(file, problem);
    if (!session) {
        Q_EMIT failed(problem);
        return;
    }
    settings_.addRecent(QFileInfo(file).absoluteFilePath());
    views_ = session->views;
    docks_.leaveMaximised();
    if (!session->layout.isEmpty() && !docks_.restoreLayout(session->layout)) {
        messages_->show("session.old-layout",
                        tr("The session has a layout of another version. The panels were not changed."),
                        MessageBar::Kind::notice);
    }
    for (const QString& trace : session->traces) {
        Q_EMIT openWanted(trace);
    }
    if (opener_.isBusy()) {
        opener_.then([this, view = session->view] { showState(view); });
    } else {
        showState(session->view); // none of them is there
    }
}

void SessionState::keepView() {
    if (!selection_.runA().isValid() || data_.isLive(selection_.runA().trace)) {
        messages_->show("view.no-trace", tr("Open a trace first. A saved view refers to a run."),
                        MessageBar::Kind::notice);
        return;
    }
    const RunInfo* run = data_.run(selection_.runA());
    const ViewState state = viewState();
    QStringList parts;
    if (docks_.maximised() != nullptr) {
        parts << docks_.maximised()->windowTitle();
    } else {
        parts << text_->view().values().name();
    }
    const QString name = QString::fromStdString(run->name);
    const RunInfo* other = data_.run(state.b);
    parts << (text_->view().values().difference && other != nullptr
                  ? tr("%1 minus %2").arg(name, QString::fromStdString(other->name))
                  : name);
    if (!state.find.isEmpty()) {
        parts << state.find;
    }
    if (state.token >= 0) {
        parts << tr("token %1").arg(state.token);
    }
    views_.push_back({parts.join(QStringLiteral(" · ")),
                      docks_.maximised() == nullptr ? QString() : docks_.maximised()->objectName(), state});
    messages_->show(
        "view.saved",
        tr("Saved as view %1. F5 presents the saved views; a session file keeps them.").arg(views_.size()),
        MessageBar::Kind::success);
}

void SessionState::fillViews(QMenu* menu) {
    empty_menu(*menu);
    for (std::size_t i = 0; i < views_.size(); ++i) {
        QMenu* one = menu->addMenu(
            tr("%1  %2").arg(i + 1).arg(QString(views_[i].name).replace(u'&', QStringLiteral("&&"))));
        one->addAction(tr("Show"), this, [this, state = views_[i].view] { showState(state); });
        // A session may have other views by the time that something is chosen.
        one->addAction(tr("Move Up"), this,
                       [this, i] {
                           if (i < views_.size()) {
                               std::swap(views_[i], views_[i - 1]);
                           }
                       })
            ->setEnabled(i > 0);
        one->addAction(tr("Remove"), this, [this, i] {
            if (i < views_.size()) {
                views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        });
    }
    if (views_.empty()) {
        menu->addAction(tr("No Saved Views"))->setEnabled(false);
    }
}

void SessionState::present() {
    if (presenting_) {
        const Presenting before = *std::exchange(presenting_, std::nullopt);
        qDeleteAll(before.keys);
        docks_.leaveMaximised();
        docks_.restoreLayout(before.layout);
        if (before.filled != nullptr) {
            docks_.maximise(before.filled);
        }
        window_->menuWidget()->show();
        caption_->hide();
        window_->statusBar()->setMinimumHeight(low_status);
        Q_EMIT statusShown(true);
        text_->setPlain(false);
        showState(before.view);
        window_->setWindowState(before.window);
        return;
    }
    if (!selection_.runA().isValid()) {
        messages_->show("present.no-trace", tr("Open a trace first, then present it."),
                        MessageBar::Kind::notice);
        return;
    }
    Q_EMIT presentationStarted();
    QDockWidget* filled = docks_.maximised();
    docks_.leaveMaximised();
    presenting_ = Presenting{viewState(), window_->windowState(), filled, window_->saveState()};
    const auto key = [this](const QKeySequence& keys, auto&& does) {
        auto* made = new QShortcut(keys, window_);
        connect(made, &QShortcut::activated, this, does);
        presenting_->keys << made;
    };
    key(Qt::Key_Escape, [this] { present(); });
    key(Qt::Key_F5, [this] { present(); }); // the menu's is not there while the menu is not
    key(Qt::Key_PageDown, [this] { presentView(1); });
    key(Qt::Key_PageUp, [this] { presentView(-1); });
    window_->menuWidget()->hide();
    Q_EMIT statusShown(false);
    caption_->show();
    text_->setPlain(true);
    window_->setWindowState(window_->windowState() | Qt::WindowFullScreen);
    for (QDockWidget* dock : docks_.docks()) {
        dock->hide();
    }
    if (filled != nullptr) {
        docks_.maximise(filled);
    }
    theme_.setTextSize(std::max(theme_.textSize(), slide_letters));
    showCaption();
}

void SessionState::presentView(int by) {
    const int wanted = presenting_ ? presenting_->at + by : -1;
    if (wanted < 0 || wanted >= static_cast<int>(views_.size())) {
        return;
    }
    presenting_->at = wanted;
    const SavedView& saved = views_[static_cast<std::size_t>(wanted)];
    docks_.leaveMaximised();
    if (QDockWidget* panel = docks_.dock(saved.panel)) {
        docks_.maximise(panel);
    }
    ViewState state = saved.view;
    state.textSize = std::max(state.textSize, slide_letters);
    showState(state);
    showCaption();
}

void SessionState::showCaption() {
    QFont large = theme_.reading();
    large.setPointSizeF(large.pointSizeF() * slide_letters * 5 / 8 / theme_.textSize());
    caption_->setFont(large);
    caption_->setMinimumHeight(QFontMetrics(large).height() + 12);
    window_->statusBar()->setMinimumHeight(caption_->minimumHeight() + 6);
    const int at = presenting_->at;
    const RunInfo* a = data_.run(selection_.runA());
    const RunInfo* b = data_.run(selection_.runB());
    QStringList shown{tr("A: %1").arg(a == nullptr ? QString() : QString::fromStdString(a->name))};
    if (b != nullptr) {
        shown << tr("B: %1").arg(QString::fromStdString(b->name));
    }
    shown << text_->view().values().name() + (text_->view().values().difference ? tr(", A − B") : QString());
    const QString what = shown.join(QStringLiteral("   "));
    caption_->setText(at >= 0 ? tr("%1 of %2   %3")
                                    .arg(at + 1)
                                    .arg(views_.size())
                                    .arg(views_[static_cast<std::size_t>(at)].name)
                      : views_.empty() ? tr("%1   (Escape ends this)").arg(what)
                                       : tr("%1   (Page Down: view 1 of %2)").arg(what).arg(views_.size()));
}

} // namespace ponderscope
