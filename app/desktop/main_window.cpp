// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/main_window.h"

#include "app/desktop/dock_layout.h"
#include "app/desktop/figure_export.h"
#include "app/desktop/greeting.h"
#include "app/desktop/launch.h"
#include "app/desktop/main_menu.h"
#include "app/desktop/open_traces.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/run_controller.h"
#include "app/desktop/run_edits.h"
#include "app/desktop/session_state.h"
#include "app/desktop/top_bar.h"
#include "app/desktop/what_if.h"
#include "core/trace/tools/summary.h"
#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/text/quantity.h"
#include "views/text/span_bar.h"

#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMimeData>
#include <QStatusBar>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

MainWindow::MainWindow(Theme& theme, Settings& settings, QWidget* parent)
    : QMainWindow(parent), theme_(theme), settings_(settings) {
    setAcceptDrops(true);
    setMinimumSize(640, 400);
    resize(1440, 900);
    build();
    connectParts();
    docks_->arrange();
    if (restoreGeometry(settings_.geometry())) {
        docks_->restoreLayout(settings_.layout());
    }
    showStatus();
    showTitle();
}

MainWindow::~MainWindow() = default;

void MainWindow::build() {
    // No AnimatedDocks: during the animation, Qt 6 keeps paths into a layout that may change. No
    // GroupedDragging: Qt 6.4 creates group windows, which crash when one of their docks is dragged out,
    // moved or destroyed.
    setDockOptions(AllowNestedDocks | AllowTabbedDocks);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
    const ViewContext context{data_, selection_, theme_};
    centre_ = std::make_unique<QWidget>(this);
    text_ = new TextPanel(context, centre_.get());
    make_column(centre_.get(), {}, 0, {{text_, 1}});
    setCentralWidget(centre_.get());
    status_ = new QLabel(this);
    status_->setTextFormat(Qt::PlainText);
    status_->setForegroundRole(QPalette::PlaceholderText);
    status_->setContentsMargins(10, 0, 0, 0);
    statusBar()->addWidget(status_, 1);
    statusBar()->setSizeGripEnabled(false);
    statusBar()->setMinimumHeight(30);
    top_ = std::make_unique<TopBar>(context, this);
    messages_ = new MessageBar(theme_, this);

    const Shell shell{*this, context, settings_, *messages_, *text_};
    docks_ = std::make_unique<DockLayout>(shell);
    docks_->addPanels(context);
    setMenuWidget(top_.get());
    traces_ = std::make_unique<OpenTraces>(shell);
    edits_ = std::make_unique<RunEdits>(shell, *traces_);
    runs_ = std::make_unique<RunController>(shell, *traces_, *edits_, *docks_);
    whatIf_ = std::make_unique<WhatIf>(shell, *runs_);
    figures_ = std::make_unique<FigureExport>(shell);
    session_ = std::make_unique<SessionState>(shell, *docks_, *traces_);
    greeting_ = std::make_unique<Greeting>(shell, *traces_, *docks_, *runs_);
    const WindowParts parts{*text_,   *docks_,   *traces_,  *runs_,    *edits_,
                            *whatIf_, *figures_, *session_, *greeting_};
    attach_panels(parts);
    menu_ = std::make_unique<MainMenu>(shell, parts, *top_);
}

void MainWindow::connectParts() {
    connect(top_.get(), &TopBar::findRequested, text_, &TextPanel::find);
    connect(text_, &TextPanel::helpRequested, this,
            [this] { show_panel_help(*panel_help(u"Text"_s), text_, theme_); });
    connect(text_, &TextPanel::figureWanted, this,
            [this] { figures_->exportFigure(figure::FigureKind::token_text); });
    connect(text_, &TextPanel::failed, this,
            [this](const QString& sentence) { messages_->show("annotation.failed", sentence); });
    connect(&text_->view(), &TextView::menuWanted, menu_.get(), &MainMenu::showTextMenu);
    connect(docks_.get(), &DockLayout::copyRequested, menu_.get(), &MainMenu::copyCommand);

    Opener& opener = traces_->opener();
    connect(&opener, &Opener::started, greeting_.get(), &Greeting::hideWelcome);
    const auto failing = [this](const char* id) {
        return [this, id](const QString& sentence) {
            errors_ << sentence;
            messages_->show(id, sentence);
        };
    };
    connect(&opener, &Opener::failed, this, failing("trace.unreadable"));
    connect(&opener, &Opener::sessionFound, session_.get(), &SessionState::openSession);
    connect(&opener, &Opener::trainingFound, this, [this] { raisePanel(u"training"_s); });
    connect(runs_.get(), &RunController::started, greeting_.get(), &Greeting::hideWelcome);
    connect(session_.get(), &SessionState::failed, this, failing("session.failed"));
    connect(session_.get(), &SessionState::statusShown, status_, &QLabel::setVisible);
    connect(session_.get(), &SessionState::presentationStarted, greeting_.get(), &Greeting::hideWelcome);
    connect(menu_.get(), &MainMenu::newWindowWanted, this, &MainWindow::newWindow);

    const auto tell = [this] {
        showStatus();
        showTitle();
    };
    connect(&opener, &Opener::opened, this, tell);
    connect(&data_, &TraceData::traceClosed, this, tell);
    connect(&selection_, &Selection::runsChanged, this, tell);
    connect(&selection_, &Selection::sequenceChanged, this, &MainWindow::showStatus);
    connect(&data_, &TraceData::runChanged, this, [this, tell](const RunKey& run) {
        if (run == selection_.runA()) {
            tell();
        }
    });
    connect(&data_, &TraceData::sequenceReady, this, [this](const RunKey& run, qint64 sequence) {
        if (run == selection_.runA() && sequence == selection_.sequence()) {
            showStatus();
        }
    });
}

void MainWindow::start(const Launch& launch) {
    const bool picture = !launch.screenshot.isEmpty();
    if (picture) {
        resize(launch.size);
        docks_->arrange();
    } else {
        fit_window(*this, screen()->availableGeometry());
    }
    show();
    apply(launch); // after the layout, which show() restores
    for (const QString& path : launch.paths) {
        picture ? traces_->opener().open(path) : open(path); // a screenshot writes no user files
    }
}

void MainWindow::apply(const Launch& launch) {
    if (launch.sequence || launch.token) {
        traces_->opener().then([this, launch] {
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
    return docks_->raise(name);
}

bool MainWindow::isBusy() const {
    return docks_->isBusy() || traces_->opener().isBusy() || !data_.idle() || text_->isBusy() ||
           (selection_.runA().isValid() && !text_->view().sequence() && errors_.isEmpty() &&
            !data_.sequences(selection_.runA()).empty());
}

QString MainWindow::statusText() const {
    return status_->text();
}

void MainWindow::open(const QString& path) {
    traces_->open(path);
}

void MainWindow::newWindow() {
    auto* window = new MainWindow(theme_, settings_);
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->setWindowState(Qt::WindowNoState);
    window->setGeometry(geometry().translated(32, 32));
    fit_window(*window, screen()->availableGeometry());
    window->show();
}

void MainWindow::showStatus() {
    const RunInfo* run = data_.run(selection_.runA());
    if (run == nullptr) {
        status_->setText(u"No run is open"_s);
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
    // A growing run has no final number of sequences yet.
    const qint64 sequences =
        std::max<qint64>(run->sequences, static_cast<qint64>(data_.sequences(selection_.runA()).size()));
    parts << (sequences > 0 ? u"sequence %1 of %2"_s.arg(format_count(selection_.sequence() + 1),
                                                         format_count(sequences))
                            : u"no sequence yet"_s);
    parts << u"%1 tokens"_s.arg(format_count(tokens));
    // The mean covers scored tokens. The first token is never scored. In a live generation, a sampled token
    // that is not among its candidates has no NLL until the whole text is scored at the end.
    const bool some = data_.isLive(selection_.runA().trace) && scored > 0 && scored < tokens - 1;
    parts << (scored == 0 ? u"no NLL yet"_s
              : some      ? u"NLL %1 over %2 of %3 predicted tokens (the rest are scored at the end)"_s.arg(
                                format_nats(nll, 3), format_count(scored), format_count(tokens - 1))
                     : u"NLL %1 over %2 predicted tokens"_s.arg(format_nats(nll, 3), format_count(scored)));
    if (run->max_steps > 0) {
        parts << steps_word(run->step_unit) + u' ' + format_nats(steps);
    }
    parts << QString::fromStdString(run->device) + u' ' + QString::fromStdString(run->dtype);
    if (is_elsewhere(selection_.runA().trace)) {
        parts << u"read from %1"_s.arg(machine_of(selection_.runA().trace).mid(6));
    }
    const QStringList faults = data_.faults(selection_.runA());
    if (!run->complete) {
        parts << (faults.isEmpty() ? u"partial"_s : u"partial: %1"_s.arg(faults.back()));
    }
    status_->setToolTip(plain_tip(faults.join(u'\n')));
    status_->setText(parts.join(u" · "_s));
}

void MainWindow::showTitle() {
    const RunKey a = selection_.runA();
    const bool file = a.isValid() && !data_.isLive(a.trace);
    const bool scratch = data_.isScratch(a.trace);
    const QString place = is_elsewhere(a.trace) ? u" on %1"_s.arg(machine_of(a.trace).mid(6)) : QString();
    setWindowTitle(scratch       ? u"Temporary"_s
                   : file        ? QFileInfo(a.trace).fileName() + place
                   : a.isValid() ? u"thinking"_s
                                 : QString());
    setWindowFilePath(file && !scratch && place.isEmpty() ? a.trace : QString());
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    if (std::ranges::any_of(urls, [](const QUrl& url) { return url.isLocalFile(); })) {
        event->acceptProposedAction();
    }
}

void MainWindow::dropEvent(QDropEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    for (const QUrl& url : urls) {
        if (url.isLocalFile()) {
            open(url.toLocalFile());
        }
    }
    event->acceptProposedAction();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    greeting_->placeWelcome();
    const auto resized = [this] {
        docks_->fitPanels();
        greeting_->placeWelcome();
    };
    QMetaObject::invokeMethod(this, resized, Qt::QueuedConnection); // when this resize has ended
}

void MainWindow::showEvent(QShowEvent* event) {
    QMainWindow::showEvent(event);
    docks_->showPending();
    // Queued, because paths of the command line are opened in the same turn of the event loop.
    QMetaObject::invokeMethod(
        this,
        [this] {
            if (!greeting_->isDone() && !traces_->opener().isBusy() && data_.traces().isEmpty()) {
                greeting_->showWelcome();
            }
        },
        Qt::QueuedConnection);
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if ((isVisible() && !runs_->mayClose()) || !edits_->leavesScratch()) {
        event->ignore();
        return;
    }
    if (session_->isPresenting()) {
        session_->present(); // do not save the presentation's layout
    }
    docks_->leaveMaximised();
    settings_.setWindow(saveGeometry(), docks_->layoutState());
    event->accept();
}

} // namespace ponderscope
