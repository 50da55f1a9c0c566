// SPDX-License-Identifier: GPL-3.0-or-later
// The first minutes: what is dropped, the welcome page, the samples, the tour, help.
#include "app/desktop/main_window.h"

#include "app/desktop/message_bar.h"
#include "app/desktop/panel_frame.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/settings.h"
#include "app/desktop/top_bar.h"
#include "app/desktop/tour.h"
#include "app/desktop/welcome.h"
#include "views/common/view_command.h"
#include "views/heatmap/heatmap_view.h"
#include "views/inspector/inspector_view.h"
#include "views/policy/policy_lab.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QApplication>
#include <QClipboard>
#include <QDir>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QMimeData>
#include <QStandardPaths>
#include <QStatusBar>

#include <algorithm>
#include <cmath>

namespace ponderscope {

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    if (std::any_of(urls.begin(), urls.end(), [](const QUrl& url) { return url.isLocalFile(); })) {
        event->acceptProposedAction();
        welcome_->setDropHint(true);
    }
}

void MainWindow::dragLeaveEvent(QDragLeaveEvent* event) {
    welcome_->setDropHint(false);
    QMainWindow::dragLeaveEvent(event);
}

void MainWindow::dropEvent(QDropEvent* event) {
    welcome_->setDropHint(false);
    const QList<QUrl> urls = event->mimeData()->urls();
    for (const QUrl& url : urls) {
        if (url.isLocalFile()) {
            open(url.toLocalFile());
        }
    }
    event->acceptProposedAction();
}

/// Found when they are first asked for: a window that opens on a trace needs none of them.
const Samples& MainWindow::samples() {
    if (samples_.folder.isEmpty()) {
        samples_ = find_samples(QCoreApplication::applicationDirPath());
    }
    return samples_;
}

void MainWindow::buildWelcome() {
    welcome_ = new WelcomePage(theme_, this);
    welcome_->hide();
    menuWidget()->installEventFilter(this); // a message moves the page down
    connect(welcome_, &WelcomePage::openRequested, this, &MainWindow::openFiles);
    connect(welcome_, &WelcomePage::pathChosen, this, &MainWindow::open);
    connect(welcome_, &WelcomePage::recordedChosen, this, &MainWindow::openSample);
    connect(welcome_, &WelcomePage::sampleChosen, this, &MainWindow::recordSample);
    connect(welcome_, &WelcomePage::recordRequested, this, [this] { showRecordDialog(); });
    connect(welcome_, &WelcomePage::tourRequested, this, &MainWindow::startTour);
    connect(welcome_, &WelcomePage::closed, this, &MainWindow::hideWelcome);
}

void MainWindow::placeWelcome() {
    const int top = menuWidget()->geometry().bottom() + 1;
    welcome_->setGeometry(0, top, width(), std::max(0, statusBar()->geometry().top() - top));
    welcome_->raise(); // over panels that were placed anew
}

void MainWindow::showWelcome() {
    greeted_ = true;
    samples_ = find_samples(QCoreApplication::applicationDirPath());
    welcome_->setSamples(samples_);
    welcome_->setRecent(settings_.recent());
    placeWelcome();
    welcome_->show();
    welcome_->setFocus();
}

void MainWindow::hideWelcome() {
    greeted_ = true;
    if (welcome_->isVisible()) {
        welcome_->hide();
        text_->view().setFocus();
    }
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    placeWelcome();
    const auto resized = [this] {
        fitPanels();
        placeWelcome();
    };
    QMetaObject::invokeMethod(this, resized, Qt::QueuedConnection); // after this resize
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
    if (watched == menuWidget() && event->type() == QEvent::Resize) {
        QMetaObject::invokeMethod(this, &MainWindow::placeWelcome, Qt::QueuedConnection);
    }
    return QMainWindow::eventFilter(watched, event);
}

void MainWindow::start(const Launch& launch) {
    const bool picture = !launch.screenshot.isEmpty();
    if (picture) {
        resize(launch.size);
        restoreDefaultLayout();
    } else {
        fitTo(screen()->availableGeometry());
    }
    show();
    apply(launch); // over the layout, which comes with the window
    for (const QString& path : launch.paths) {
        picture ? opener_.open(path) : open(path); // for a picture nothing of the user's is written
    }
}

void MainWindow::showEvent(QShowEvent* event) {
    QMainWindow::showEvent(event);
    if (!layoutToCome_.isEmpty()) {
        restoreLayout(std::exchange(layoutToCome_, {}));
    }
    // Whoever starts the program with a path opens it in the same turn of the event loop.
    QMetaObject::invokeMethod(
        this,
        [this] {
            if (!greeted_ && !opener_.isBusy() && data_.traces().isEmpty()) {
                showWelcome();
            }
        },
        Qt::QueuedConnection);
}

void MainWindow::openSample() {
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
    QString problem;
    const QString copy = copy_of_recorded(samples(), folder + QStringLiteral("/recorded"), problem);
    copy.isEmpty() ? fail(problem) : open(copy);
}

void MainWindow::recordSample(int model) {
    if (model < 0 || model >= static_cast<int>(samples_.models.size())) {
        return;
    }
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
    if (!QDir().mkpath(folder)) {
        messages_->show(
            tr("%1 could not be made, so there is no place for the sample's trace; record it with "
               "Run → Record… into a folder of your choice.")
                .arg(folder));
        return;
    }
    recorder_.start(sample_request(samples_, samples_.models[static_cast<std::size_t>(model)], folder));
}

QDockWidget* MainWindow::focusedDock() const {
    for (QWidget* at = QApplication::focusWidget(); at != nullptr; at = at->parentWidget()) {
        if (auto* dock = qobject_cast<QDockWidget*>(at)) {
            return dock;
        }
    }
    return nullptr;
}

QWidget* MainWindow::focusedPanel() const {
    const QDockWidget* dock = focusedDock();
    return dock == nullptr ? text_ : panel_of(*dock);
}

void MainWindow::showHelp() {
    const QDockWidget* dock = focusedDock();
    const PanelHelp* help = dock == nullptr ? nullptr : panel_help(dock->objectName());
    if (help != nullptr) {
        show_panel_help(*help, dock->titleBarWidget(), theme_);
    } else {
        show_panel_help(*panel_help(QStringLiteral("text")), text_, theme_);
    }
}

void MainWindow::copyCommand(QWidget* panel) {
    const auto* view = dynamic_cast<ShowsCommand*>(panel);
    const ViewCommand command = view == nullptr ? ViewCommand() : view->viewCommand();
    if (command.kind == ViewCommand::Kind::none) {
        messages_->show(command.text, MessageBar::Kind::notice);
        return;
    }
    QApplication::clipboard()->setText(command.text);
    messages_->show(command.kind == ViewCommand::Kind::shell
                        ? tr("Copied, for a terminal: %1").arg(command.text.section(u'\n', 0, 0))
                        : tr("Copied, for Python: the lines that read these numbers (import ponderscope)."),
                    MessageBar::Kind::success);
}

void MainWindow::startTour() {
    if (tour_ != nullptr) {
        return;
    }
    if (!selection_.runA().isValid() || !text_->view().sequence()) {
        // Over the sample, then; recorded ones open at once.
        tourWanted_ = true;
        if (!selection_.runA().isValid() && !recorder_.isRunning()) {
            if (!samples().recorded.isEmpty()) {
                openSample();
            } else if (!samples_.models.empty() && !samples_.text.isEmpty()) {
                recordSample(0);
            } else {
                tourWanted_ = false;
                messages_->show(
                    tr("No samples lie beside this program; open a trace, then take the tour over it."),
                    MessageBar::Kind::notice);
            }
        }
        return;
    }
    tourWanted_ = false;
    hideWelcome();
    const auto told = [this] {
        // Of what is on the screen: the word with the most steps, and of several that which B, or else A, was
        // surprised by most.
        const TextView& view = text_->view();
        const auto a = view.sequence();
        if (!a) {
            return; // closed meanwhile, or still being read
        }
        const auto b =
            selection_.runB().isValid() ? data_.sequence(selection_.runB(), selection_.sequence()) : nullptr;
        const bool alike = b && b->tokens.id == a->tokens.id;
        const Attribution attribution = selection_.attribution();
        const std::vector<float> steps = token_values(Quantity::steps, *a, 0, attribution).values;
        const std::vector<float> nll = token_values(Quantity::nll, alike ? *b : *a, 0, attribution).values;
        qint64 best = view.firstVisibleToken();
        std::pair<float, float> most{-1, -1};
        const qint64 end =
            std::min(view.endVisibleToken(), static_cast<qint64>(std::min(steps.size(), nll.size())));
        for (qint64 token = best; token < end; ++token) {
            const auto place = static_cast<std::size_t>(token);
            const std::pair now{std::isnan(steps[place]) ? 0.0F : steps[place], nll[place]};
            if (!std::isnan(now.second) && now > most) {
                most = now;
                best = token;
            }
        }
        selection_.setToken(best);
    };
    const auto raise = [this](const char* panel) {
        return [this, panel] { raisePanel(QString::fromLatin1(panel)); };
    };
    const bool two = selection_.runB().isValid();
    std::vector<TourStop> stops{
        {tr("The text is coloured by surprise"),
         tr("Every token has the colour of its NLL: −ln p, in nats. White words were "
            "no surprise; deep ones were. "
            "The list above the text colours by something else."),
         [this] { text_->setQuantity(Quantity::nll); }, [this] { return static_cast<QWidget*>(text_); }},
        {tr("Ticks are pondering steps"),
         tr("Under each token stand the steps that could run; those that did are "
            "filled. Hover shows a token, a click "
            "pins it, arrows move. The word on the screen that took the most steps, and "
            "that %1 knew least of, is pinned now.")
             .arg(two ? QStringLiteral("B") : QStringLiteral("A")),
         told, [this] { return static_cast<QWidget*>(&text_->view()); }},
        {tr("Inside one token"),
         tr("What the model would have said after each step, and how NLL went. %1 "
            "These are answers read out early, not thoughts.")
             .arg(two ? tr("In teal run A, in orange run B.") : tr("In teal run A.")),
         raise("inspector"), [this] { return static_cast<QWidget*>(inspector_); }},
        {tr("Every token, every step"),
         tr("Tokens from left to right, steps from top to bottom. Wheel zooms, drag "
            "pans, a click selects in all views. "
            "Grey was not computed."),
         raise("heatmap"), [this] { return static_cast<QWidget*>(heatmap_); }},
        {tr("What if another rule had halted?"),
         tr("Choose a policy and move its threshold: the text shows the steps that "
            "each word would have had. This is "
            "a replay of the recording, not a rerun of the model."),
         raise("lab"), [this] { return static_cast<QWidget*>(lab_); }},
        {tr("Yours now"),
         tr("Drop a trace or a checkpoint folder on the window; Run → Record… "
            "records one. Ctrl+F finds words, "
            "/patterns/ and conditions such as steps = 3 and nll > 4. The ? of a "
            "panel, or F1, says what it shows and "
            "what must not be concluded."),
         raise("compare"), [this] { return static_cast<QWidget*>(top_); }}};
    tour_ = new Tour(std::move(stops), theme_, this);
    connect(tour_, &Tour::ended, this, [this] { tour_ = nullptr; });
}

} // namespace ponderscope
