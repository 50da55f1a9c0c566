// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/greeting.h"

#include "app/desktop/dock_layout.h"
#include "app/desktop/open_traces.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/run_controller.h"
#include "app/desktop/samples.h"

#include <QDir>
#include <QFileInfo>
#include <QKeyEvent>
#include <QStatusBar>
#include <QTextBrowser>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

Greeting::Greeting(const Shell& shell, OpenTraces& traces, DockLayout& docks, RunController& runs)
    : ShellPart(shell), traces_(traces), runs_(runs), welcome_(new QTextBrowser(window_)) {
    welcome_->setAccessibleName(u"Welcome"_s);
    welcome_->setFrameShape(QFrame::NoFrame);
    welcome_->setOpenLinks(false);
    welcome_->document()->setDocumentMargin(40);
    welcome_->installEventFilter(this);
    welcome_->hide();
    window_->menuWidget()->installEventFilter(this); // a new height of the menu bar moves the page
    connect(welcome_, &QTextBrowser::anchorClicked, this, [this](const QUrl& link) {
        if (const auto number = link.path().toUInt(); number < links_.size()) {
            const auto follow = links_[number]; // a copy, because the action may rewrite links_
            follow();
        }
    });
    connect(&theme_, &Theme::changed, this, &Greeting::write);
    connect(&docks, &DockLayout::restored, this, &Greeting::placeWelcome);
}

Greeting::~Greeting() {
    delete welcome_;
}

void Greeting::write() {
    links_.clear();
    const auto link = [this](const QString& text, std::function<void()> follow) {
        links_.push_back(std::move(follow));
        return u"<a href=\"do:%1\">%2</a>"_s.arg(links_.size() - 1).arg(text.toHtmlEscaped());
    };
    QString page =
        u"<h1>Ponderscope</h1><p>See which words cost a model another step, the answer after each step, "
        "and whether the step helped.</p><p>Drop a trace (.ponder) or a checkpoint folder here.</p>"_s;
    const auto line = [&page](const QString& of, const QString& about) {
        page += u"<p>%1<br>%2</p>"_s.arg(of, about.toHtmlEscaped());
    };
    line(link(u"Open a Trace…"_s, [this] { traces_.openFiles(); }), u"Ctrl+O"_s);
    line(link(u"Record a Checkpoint…"_s, [this] { runs_.showRecordDialog(); }),
         u"Run a checkpoint in Hugging Face layout over a text (Ctrl+R)"_s);
    line(link(u"Think Live…"_s, [this] { runs_.showThink(); }),
         u"Type a prompt and watch the model generate, token by token (Ctrl+T)"_s);
    const QString recorded = find_samples().recorded;
    if (!recorded.isEmpty()) {
        line(link(u"Open the Recorded Samples"_s, [this, recorded] { traces_.open(recorded); }),
             u"Stories and a passage, with all their steps"_s);
    }
    line(link(u"First Steps"_s, [this] { show_panel_help(*panel_help(u"First steps"_s), welcome_, theme_); }),
         u"Shows where to look in the recorded samples"_s);
    line(link(u"Show the Empty Window"_s, [this] { hideWelcome(); }), u"The Help menu shows this page "
                                                                      "again"_s);
    const QStringList recent = settings_.recent();
    page += recent.isEmpty() ? QString() : u"<h3>Open Again</h3>"_s;
    for (const QString& path : recent) {
        const QFileInfo info(path);
        line(link(info.fileName(), [this, path] { traces_.open(path); }),
             (info.isDir() ? u"checkpoint in %1"_s : u"%1"_s).arg(info.absolutePath()));
    }
    welcome_->setFont(theme_.body());
    welcome_->setHtml(page);
}

void Greeting::placeWelcome() {
    const int top = window_->menuWidget()->geometry().bottom() + 1;
    welcome_->setGeometry(0, top, window_->width(),
                          std::max(0, window_->statusBar()->geometry().top() - top));
    welcome_->raise(); // above panels that moved
}

void Greeting::showWelcome() {
    greeted_ = true;
    write();
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

bool Greeting::eventFilter(QObject* watched, QEvent* event) {
    if (watched == welcome_ && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        hideWelcome();
        return true;
    }
    if (watched != welcome_ && event->type() == QEvent::Resize) {
        QMetaObject::invokeMethod(this, &Greeting::placeWelcome, Qt::QueuedConnection);
    }
    return ShellPart::eventFilter(watched, event);
}

} // namespace ponderscope
