// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/greeting.h"

#include "app/desktop/dock_layout.h"
#include "app/desktop/message_bar.h"
#include "app/desktop/run_controller.h"
#include "app/desktop/settings.h"
#include "app/desktop/welcome.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QDir>
#include <QEvent>
#include <QStandardPaths>
#include <QStatusBar>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

Greeting::Greeting(const Shell& shell, DockLayout& docks, RunController& runs)
    : ShellPart(shell), docks_(docks), runs_(runs) {
    welcome_ = new WelcomePage(theme_, window_);
    welcome_->hide();
    window_->menuWidget()->installEventFilter(this); // a message moves the page down
    connect(welcome_, &WelcomePage::openRequested, this, &Greeting::openFilesWanted);
    connect(welcome_, &WelcomePage::pathChosen, this, &Greeting::openWanted);
    connect(welcome_, &WelcomePage::thinkRequested, &runs_, &RunController::showThink);
    connect(welcome_, &WelcomePage::recordedChosen, this, &Greeting::openSample);
    connect(welcome_, &WelcomePage::sampleChosen, this, &Greeting::recordSample);
    connect(welcome_, &WelcomePage::recordRequested, this, [this] { runs_.showRecordDialog(); });
    connect(welcome_, &WelcomePage::closed, this, &Greeting::hideWelcome);
    connect(&docks_, &DockLayout::restored, this, &Greeting::placeWelcome);
}

void Greeting::placeWelcome() {
    const int top = window_->menuWidget()->geometry().bottom() + 1;
    welcome_->setGeometry(0, top, window_->width(),
                          std::max(0, window_->statusBar()->geometry().top() - top));
    welcome_->raise(); // over panels that were placed anew
}

void Greeting::showWelcome() {
    greeted_ = true;
    welcome_->setSamples(samples_.refresh());
    welcome_->setRecent(settings_.recent());
    placeWelcome();
    welcome_->show();
    welcome_->setFocus();
}

void Greeting::hideWelcome() {
    greeted_ = true;
    if (welcome_->isVisible()) {
        welcome_->hide();
        text_->view().setFocus();
    }
}

void Greeting::openSample() {
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
    QString problem;
    const QString copy = copy_of_recorded(samples_.get(), folder + u"/recorded"_s, problem);
    copy.isEmpty() ? Q_EMIT failed(problem) : Q_EMIT openWanted(copy);
}

void Greeting::recordSample(int model) {
    if (model < 0 || model >= static_cast<int>(samples_.get().models.size())) {
        return;
    }
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation);
    if (!QDir().mkpath(folder)) {
        messages_->show("sample.no-folder",
                        u"The folder %1 for the sample's trace could not be made. "
                        "Record the sample with Run → Record… into another folder."_s.arg(folder));
        return;
    }
    runs_.recorder().start(
        sample_request(samples_.get(), samples_.get().models[static_cast<std::size_t>(model)], folder));
}

Greeting::~Greeting() {
    delete welcome_;
}

bool Greeting::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize) {
        QMetaObject::invokeMethod(this, &Greeting::placeWelcome, Qt::QueuedConnection);
    }
    return ShellPart::eventFilter(watched, event);
}

} // namespace ponderscope
