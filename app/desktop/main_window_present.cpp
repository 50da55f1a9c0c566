// SPDX-License-Identifier: GPL-3.0-or-later
// Showing it to others: views that are kept, the window as a slide, and what is
// left in Scratch when the window closes.
#include "app/desktop/main_window.h"

#include "app/desktop/message_bar.h"
#include "app/desktop/settings.h"
#include "views/common/format.h"
#include "views/text/quantity.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QDockWidget>
#include <QFileInfo>
#include <QLabel>
#include <QMenu>
#include <QMessageBox>
#include <QPushButton>
#include <QShortcut>
#include <QStatusBar>

#include <algorithm>

namespace ponderscope {

namespace {

constexpr int slide_letters = 32; ///< pixels at least, of the text on a slide
constexpr int low_status = 30;    ///< pixels of the status bar beside a slide

} // namespace

void MainWindow::keepView() {
    if (!selection_.runA().isValid() || data_.isLive(selection_.runA().trace)) {
        messages_->show(tr("Open a trace first. A saved view refers to a run."), MessageBar::Kind::notice);
        return;
    }
    const RunInfo* run = data_.run(selection_.runA());
    const ViewState state = viewState();
    QStringList parts;
    if (maximised_ != nullptr) {
        parts << maximised_->windowTitle();
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
                      maximised_ == nullptr ? QString() : maximised_->objectName(), state});
    messages_->show(
        tr("Kept as view %1. F5 presents the kept views; a session saves them.").arg(views_.size()),
        MessageBar::Kind::success);
}

void MainWindow::fillViews(QMenu* menu) {
    emptyMenu(*menu);
    for (std::size_t i = 0; i < views_.size(); ++i) {
        QMenu* one = menu->addMenu(
            tr("%1  %2").arg(i + 1).arg(QString(views_[i].name).replace(u'&', QStringLiteral("&&"))));
        one->addAction(tr("Show"), this, [this, state = views_[i].view] { showState(state); });
        // A session may have other views by the time that something is chosen.
        one->addAction(tr("Earlier"), this,
                       [this, i] {
                           if (i < views_.size()) {
                               std::swap(views_[i], views_[i - 1]);
                           }
                       })
            ->setEnabled(i > 0);
        one->addAction(tr("Forget"), this, [this, i] {
            if (i < views_.size()) {
                views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        });
    }
    if (views_.empty()) {
        menu->addAction(tr("None yet: Keep this view adds one"))->setEnabled(false);
    }
}

void MainWindow::present() {
    if (presenting_) {
        const Presenting before = *std::exchange(presenting_, std::nullopt);
        qDeleteAll(before.keys);
        leaveMaximised();
        restoreLayout(before.layout);
        if (before.filled != nullptr) {
            maximise(before.filled);
        }
        menuWidget()->show();
        caption_->hide();
        statusBar()->setMinimumHeight(low_status);
        status_->show();
        text_->setPlain(false);
        showState(before.view);
        setWindowState(before.window);
        return;
    }
    if (!selection_.runA().isValid()) {
        messages_->show(tr("Open a trace first; then there is something to present."),
                        MessageBar::Kind::notice);
        return;
    }
    hideWelcome();
    QDockWidget* filled = maximised_;
    leaveMaximised();
    presenting_ = Presenting{viewState(), windowState(), filled, saveState()};
    const auto key = [this](const QKeySequence& keys, auto&& does) {
        auto* made = new QShortcut(keys, this);
        connect(made, &QShortcut::activated, this, does);
        presenting_->keys << made;
    };
    key(Qt::Key_Escape, [this] { present(); });
    key(Qt::Key_F5, [this] { present(); }); // the menu's is not there while the menu is not
    key(Qt::Key_PageDown, [this] { presentView(1); });
    key(Qt::Key_PageUp, [this] { presentView(-1); });
    menuWidget()->hide();
    status_->hide();
    caption_->show();
    text_->setPlain(true);
    setWindowState(windowState() | Qt::WindowFullScreen);
    for (QDockWidget* dock : docks_) {
        dock->hide();
    }
    if (filled != nullptr) {
        maximise(filled);
    }
    theme_.setTextSize(std::max(theme_.textSize(), slide_letters));
    showCaption();
}

void MainWindow::presentView(int by) {
    const int wanted = presenting_ ? presenting_->at + by : -1;
    if (wanted < 0 || wanted >= static_cast<int>(views_.size())) {
        return;
    }
    presenting_->at = wanted;
    const SavedView& saved = views_[static_cast<std::size_t>(wanted)];
    leaveMaximised();
    if (const auto panel = dockByName_.find(saved.panel); panel != dockByName_.end()) {
        maximise(panel->second);
    }
    ViewState state = saved.view;
    state.textSize = std::max(state.textSize, slide_letters);
    showState(state);
    showCaption();
}

void MainWindow::showCaption() {
    QFont large = theme_.reading();
    large.setPointSizeF(large.pointSizeF() * slide_letters * 5 / 8 / theme_.textSize());
    caption_->setFont(large);
    caption_->setMinimumHeight(QFontMetrics(large).height() + 12);
    statusBar()->setMinimumHeight(caption_->minimumHeight() + 6);
    const int at = presenting_->at;
    const RunInfo* a = data_.run(selection_.runA());
    const RunInfo* b = data_.run(selection_.runB());
    QStringList shown{tr("A: %1").arg(a == nullptr ? QString() : QString::fromStdString(a->name))};
    if (b != nullptr) {
        shown << tr("B: %1").arg(QString::fromStdString(b->name));
    }
    shown << text_->view().values().name() +
                 (text_->view().values().difference ? tr(", A − B") : QString());
    const QString what = shown.join(QStringLiteral("   "));
    caption_->setText(at >= 0 ? tr("%1 of %2   %3")
                                    .arg(at + 1)
                                    .arg(views_.size())
                                    .arg(views_[static_cast<std::size_t>(at)].name)
                      : views_.empty() ? tr("%1   (Escape ends this)").arg(what)
                                       : tr("%1   (Page Down: view 1 of %2)").arg(what).arg(views_.size()));
}

bool MainWindow::leavesScratch() {
    const std::size_t left = runsNotKept().size();
    if (left == 0 || scratchAsked_ || !isVisible()) {
        return true;
    }
    auto* question = new QMessageBox(
        QMessageBox::Question, tr("Runs that were not kept"),
        left == 1 ? tr("One run of this session lies in Scratch only. Close without it?")
                  : tr("%1 runs of this session lie in Scratch only. Close without them?").arg(left),
        QMessageBox::Cancel, this);
    question->setObjectName(QStringLiteral("scratchLeft"));
    question->setInformativeText(
        tr("What-if runs, reruns and generated runs are temporary until you save them to a trace."));
    QPushButton* keep = question->addButton(tr("Keep in a trace…"), QMessageBox::AcceptRole);
    QPushButton* leave = question->addButton(tr("Close without"), QMessageBox::DestructiveRole);
    question->setDefaultButton(QMessageBox::Cancel);
    question->setAttribute(Qt::WA_DeleteOnClose);
    connect(keep, &QPushButton::clicked, this, &MainWindow::keepAllOfScratch);
    connect(leave, &QPushButton::clicked, this, [this] {
        scratchAsked_ = true;
        close();
    });
    question->open();
    return false;
}

} // namespace ponderscope
