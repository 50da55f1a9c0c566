// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/main_window.h"

#include "app/desktop/message_bar.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/panels.h"
#include "app/desktop/recording_status.h"
#include "app/desktop/settings.h"
#include "app/desktop/think_panel.h"
#include "app/desktop/top_bar.h"
#include "views/compare/compare_view.h"
#include "views/figure/export_dialog.h"
#include "views/halting/halting_view.h"
#include "views/heatmap/heatmap_view.h"
#include "views/inspector/inspector_view.h"
#include "views/library/library_panel.h"
#include "views/policy/policy_lab.h"
#include "views/text/find_bar.h"
#include "views/text/span_bar.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QActionGroup>
#include <QApplication>
#include <QComboBox>
#include <QCoreApplication>
#include <QDir>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>
#include <QStandardPaths>
#include <QStatusBar>
#include <QVBoxLayout>

#include <algorithm>

namespace ponderscope {

void MainWindow::buildPanels() {
    const ViewContext context{data_, selection_, theme_};
    // Not animated: while a panel glides into its place, Qt 6 keeps paths into a layout that may be another
    // by then. Not dragged in groups: the windows of groups that Qt 6.4 makes for that crash when what they
    // hold is dragged out, shown elsewhere or goes.
    setDockOptions(AllowNestedDocks | AllowTabbedDocks);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);

    auto* centre = new QWidget(this);
    auto* column = new QVBoxLayout(centre);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    text_ = new TextPanel(context, centre);
    column->addWidget(text_, 1);
    setCentralWidget(centre);

    for (const Panel& panel : panels()) {
        QWidget* view = panel.make(context, this);
        addPanel(panel, view);
        library_ = library_ != nullptr ? library_ : qobject_cast<LibraryPanel*>(view);
        inspector_ = inspector_ != nullptr ? inspector_ : qobject_cast<InspectorView*>(view);
        heatmap_ = heatmap_ != nullptr ? heatmap_ : qobject_cast<HeatmapView*>(view);
        compare_ = compare_ != nullptr ? compare_ : qobject_cast<CompareView*>(view);
        lab_ = lab_ != nullptr ? lab_ : qobject_cast<PolicyLab*>(view);
        halting_ = halting_ != nullptr ? halting_ : qobject_cast<HaltingView*>(view);
        think_ = think_ != nullptr ? think_ : qobject_cast<ThinkPanel*>(view);
        if (auto* live = dynamic_cast<LiveView*>(view)) {
            live_.push_back(live);
            live->setOnScreen(false); // until its dock says otherwise
            connect(docks_.back(), &QDockWidget::visibilityChanged, this,
                    [live](bool visible) { live->setOnScreen(visible); });
        }
    }
    // Views know each other through the selection only; these two speak of the text in words of their own.
    connect(lab_, &PolicyLab::replayed, this, [this](const std::shared_ptr<const ReplayedSteps>& steps) {
        if (steps) {
            text_->view().setReplay(
                {steps->run, steps->sequence, steps->policy, steps->maxSteps, steps->steps});
        } else {
            text_->view().setReplay({});
        }
    });
    connect(text_, &TextPanel::replayDismissed, this, [this] { lab_->setColoursText(false); });
    connect(halting_, &HaltingView::tokenTypeChosen, this,
            [this](int id) { text_->findText(QStringLiteral("#%1").arg(id)); });
    connect(&text_->findBar(), &FindBar::sent, this, [this](const QString& panel, const TokenSubset& subset) {
        if (panel == QLatin1String("halting")) {
            halting_->setSubset(subset);
        } else {
            compare_->setSubset(subset);
        }
        raisePanel(panel);
    });
    status_ = new QLabel(this);
    status_->setTextFormat(Qt::PlainText);
    status_->setForegroundRole(QPalette::PlaceholderText);
    status_->setContentsMargins(10, 0, 0, 0);
    recording_ = new RecordingStatus(theme_, this);
    caption_ = new QLabel(this);
    caption_->setTextFormat(Qt::PlainText);
    caption_->setObjectName(QStringLiteral("caption"));
    caption_->setContentsMargins(24, 0, 0, 0);
    caption_->hide();
    statusBar()->addWidget(status_, 1);
    statusBar()->addWidget(caption_, 1);
    statusBar()->addPermanentWidget(recording_);
    statusBar()->setSizeGripEnabled(false);
    statusBar()->setMinimumHeight(30);

    top_ = new TopBar(context, this);
    setMenuWidget(top_);
    messages_ = new MessageBar(theme_, this);
    connect(top_, &TopBar::findRequested, text_, &TextPanel::find);
    connect(text_, &TextPanel::helpRequested, this,
            [this] { show_panel_help(*panel_help(QStringLiteral("text")), text_, theme_); });
}

void MainWindow::buildMenus() {
    QMenuBar& bar = top_->menus();

    QMenu* file = bar.addMenu(tr("&File"));
    file->addAction(tr("&Open…"), QKeySequence::Open, this, &MainWindow::openFiles);
    file->addAction(tr("Co&nnect…"), this, [this] { connectTo(); });
    QMenu* recent = file->addMenu(tr("Open &recent"));
    connect(recent, &QMenu::aboutToShow, this, [this, recent] { fillRecent(recent); });
    file->addAction(tr("&Save the session…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S), this,
                    &MainWindow::saveSession);
    file->addAction(tr("&New window"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_N), this,
                    &MainWindow::newWindow);
    file->addSeparator();
    file->addAction(tr("&Close trace"), QKeySequence::Close, this, [this] {
        if (selection_.runA().isValid()) {
            data_.close(selection_.runA().trace);
        }
    });
    file->addAction(tr("&Quit"), QKeySequence::Quit, this, [] { QApplication::closeAllWindows(); });

    QMenu* edit = bar.addMenu(tr("&Edit"));
    undo_ = edit->addAction(tr("&Undo View Change"), QKeySequence::Undo, this, &MainWindow::undo);
    redo_ = edit->addAction(tr("&Redo the change of view"), QKeySequence::Redo, this, &MainWindow::redo);
    edit->addSeparator();
    edit->addAction(tr("&Find a token"), QKeySequence::Find, text_, &TextPanel::find);
    edit->addAction(tr("Find &next"), QKeySequence::FindNext, text_, &TextPanel::findNext);
    edit->addAction(tr("Find &previous"), QKeySequence::FindPrevious, text_, &TextPanel::findPrevious);
    edit->addSeparator();
    edit->addAction(tr("&Bookmark Token"), QKeySequence(Qt::CTRL | Qt::Key_B), &text_->spanBar(),
                    &SpanBar::toggleBookmark);
    edit->addAction(tr("Add &Note…"), QKeySequence(Qt::CTRL | Qt::Key_M), &text_->spanBar(),
                    [this] { text_->spanBar().askForLabel(note_annotation); });
    edit->addAction(tr("&List Notes"), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_M), text_,
                    &TextPanel::listNotes);
    edit->addSeparator();
    edit->addAction(tr("Copy as co&mmand"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C), this,
                    [this] { copyCommand(focusedPanel()); });
    edit->addAction(tr("&Command palette…"), QKeySequence(Qt::CTRL | Qt::Key_K), this,
                    &MainWindow::showPalette);

    QMenu* run = bar.addMenu(tr("&Run"));
    run->addAction(tr("&Record…"), QKeySequence(Qt::CTRL | Qt::Key_R), this, [this] { showRecordDialog(); });
    run->addAction(tr("&Think…"), QKeySequence(Qt::CTRL | Qt::Key_T), this, &MainWindow::showThink);
    QAction* cancel = run->addAction(tr("&Cancel the recording"), this, [this] {
        recording_->cancelling();
        recorder_.cancel();
    });
    run->addSeparator();
    fillFrom(run->addMenu(tr("Show as &A")), top_->runA());
    fillFrom(run->addMenu(tr("Compare with &B")), top_->runB());
    run->addAction(tr("&Swap A and B"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_B), this, [this] {
        if (selection_.runB().isValid()) {
            const RunKey a = selection_.runA();
            selection_.setRunA(selection_.runB());
            selection_.setRunB(a);
        }
    });
    run->addSeparator();
    QMenu* whatIf = run->addMenu(tr("&What if, for the selected token"));
    connect(whatIf, &QMenu::aboutToShow, this, [this, whatIf] {
        emptyMenu(*whatIf);
        fillWhatIf(*whatIf, selection_.token());
    });
    connect(run, &QMenu::aboutToShow, this, [this, cancel] { cancel->setEnabled(recorder_.isRunning()); });

    buildViewMenu(bar.addMenu(tr("&View")));

    QMenu* figures = bar.addMenu(tr("F&igures"));
    QList<QAction*> makes;
    makes << figures->addAction(tr("Figure &workbench…"), QKeySequence(Qt::CTRL | Qt::Key_E), this,
                                [this] { exportFigure(figure::FigureKind::token_text); });
    figures->addSeparator();
    for (const figure::KindInfo& info : figure::figure_kinds()) {
        makes << figures->addAction(tr("%1…").arg(QCoreApplication::translate("Figure", info.title)), this,
                                    [this, kind = info.kind] { exportFigure(kind); });
        makes.last()->setToolTip(QCoreApplication::translate("Figure", info.shows));
    }
    connect(figures, &QMenu::aboutToShow, this, [this, makes] {
        for (QAction* action : makes) {
            action->setEnabled(selection_.runA().isValid());
        }
    });

    QMenu* help = bar.addMenu(tr("&Help"));
    help->addAction(tr("What this &panel shows"), QKeySequence::HelpContents, this, &MainWindow::showHelp);
    help->addAction(tr("&Keyboard shortcuts"), QKeySequence(Qt::CTRL | Qt::Key_Slash), this,
                    &MainWindow::showShortcuts);
    help->addAction(tr("&Tour"), this, &MainWindow::startTour);
    help->addAction(tr("&Welcome page"), this, &MainWindow::showWelcome);
    help->addSeparator();
    help->addAction(tr("&About Ponderscope"), this, &MainWindow::showAbout);
}

void MainWindow::buildViewMenu(QMenu* view) {
    const auto step = [this](int by) {
        const auto sequences = data_.sequences(selection_.runA());
        const qint64 wanted = selection_.sequence() + by;
        if (wanted >= 0 && wanted < static_cast<qint64>(sequences.size())) {
            selection_.setSequence(wanted);
        }
    };
    view->addAction(tr("Next &sequence"), QKeySequence(Qt::CTRL | Qt::Key_PageDown), this,
                    [step] { step(1); });
    view->addAction(tr("Pre&vious sequence"), QKeySequence(Qt::CTRL | Qt::Key_PageUp), this,
                    [step] { step(-1); });
    view->addSeparator();
    const auto choice = [this](QMenu* menu, QActionGroup* group, const QString& text, bool checked,
                               auto chosen) {
        QAction* action = menu->addAction(text, this, chosen);
        action->setCheckable(true);
        action->setChecked(checked);
        group->addAction(action);
    };
    QMenu* values = view->addMenu(tr("Show &values"));
    auto* valueGroup = new QActionGroup(values);
    choice(values, valueGroup, tr("at the &predicted token"), true,
           [this] { selection_.setAttribution(Attribution::predicted); });
    choice(values, valueGroup, tr("at the token that pr&edicted it"), false,
           [this] { selection_.setAttribution(Attribution::predicting); });
    QMenu* appearance = view->addMenu(tr("&Appearance"));
    auto* appearanceGroup = new QActionGroup(appearance);
    const auto dress = [this](Appearance wanted) {
        theme_.setAppearance(wanted);
        settings_.setAppearance(wanted);
    };
    choice(appearance, appearanceGroup, tr("As the &system"), theme_.appearance() == Appearance::system,
           [dress] { dress(Appearance::system); });
    choice(appearance, appearanceGroup, tr("&Light"), theme_.appearance() == Appearance::light,
           [dress] { dress(Appearance::light); });
    choice(appearance, appearanceGroup, tr("&Dark"), theme_.appearance() == Appearance::dark,
           [dress] { dress(Appearance::dark); });
    choice(appearance, appearanceGroup, tr("High &contrast"), theme_.appearance() == Appearance::contrast,
           [dress] { dress(Appearance::contrast); });
    QMenu* maps = view->addMenu(tr("&Colour map of heatmaps"));
    auto* mapGroup = new QActionGroup(maps);
    const auto map = [this](MagnitudeMap wanted) {
        theme_.setMagnitude(wanted);
        settings_.setMagnitude(wanted);
    };
    choice(maps, mapGroup, tr("&Viridis"), theme_.magnitude() == MagnitudeMap::viridis,
           [map] { map(MagnitudeMap::viridis); });
    choice(maps, mapGroup, tr("&Cividis"), theme_.magnitude() == MagnitudeMap::cividis,
           [map] { map(MagnitudeMap::cividis); });
    choice(maps, mapGroup, tr("&Magma"), theme_.magnitude() == MagnitudeMap::magma,
           [map] { map(MagnitudeMap::magma); });
    choice(maps, mapGroup, tr("&Grey"), theme_.magnitude() == MagnitudeMap::grey,
           [map] { map(MagnitudeMap::grey); });
    connect(&theme_, &Theme::changed, this, [this] {
        if (!presenting_) { // the size of a slide is not the user's choice
            settings_.setTextSize(theme_.textSize());
        }
    });
    view->addAction(tr("Zoom &in"), QKeySequence::ZoomIn, text_, &TextPanel::zoomIn);
    view->addAction(tr("Zoom &out"), QKeySequence::ZoomOut, text_, &TextPanel::zoomOut);
    view->addAction(tr("&Normal size"), QKeySequence(Qt::CTRL | Qt::Key_0), this,
                    [this] { theme_.setTextSize(19); });
    view->addAction(tr("One token per &line"), QKeySequence(Qt::CTRL | Qt::Key_1), text_,
                    [this] { text_->setZoom(TextZoom::tokens); });
    view->addAction(tr("Running &text"), QKeySequence(Qt::CTRL | Qt::Key_2), text_,
                    [this] { text_->setZoom(TextZoom::text); });
    view->addAction(tr("&Map of all sequences"), QKeySequence(Qt::CTRL | Qt::Key_3), text_,
                    [this] { text_->setZoom(TextZoom::corpus); });
    view->addSeparator();
    view->addAction(tr("Colour by A − B"), QKeySequence(Qt::CTRL | Qt::Key_D), text_,
                    [this] { text_->setDifference(!text_->view().values().difference); });
    fillFrom(view->addMenu(tr("Colour &By")), text_->colourBox());
    fillFrom(view->addMenu(tr("&Bars")), text_->barsBox());
    view->addSeparator();
    QMenu* shown = view->addMenu(tr("&Panels"));
    for (QDockWidget* dock : docks_) {
        shown->addAction(dock->toggleViewAction());
    }
    view->addAction(tr("&Keep this view"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_K), this,
                    &MainWindow::keepView);
    QMenu* kept = view->addMenu(tr("Kept vie&ws"));
    connect(kept, &QMenu::aboutToShow, this, [this, kept] { fillViews(kept); });
    view->addAction(tr("P&resent"), QKeySequence(Qt::Key_F5), this, &MainWindow::present);
    view->addSeparator();
    view->addAction(tr("Fi&ll the window with the panel"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_M),
                    this, [this] { maximise(focusedDock()); });
    view->addAction(tr("Restore &default layout"), this, &MainWindow::restoreDefaultLayout);
}

void MainWindow::emptyMenu(QMenu& menu) {
    menu.clear();
    // That takes submenus out and leaves them alive, as children of the menu. Who holds one now may use it.
    const QList<QMenu*> left = menu.findChildren<QMenu*>(Qt::FindDirectChildrenOnly);
    for (QMenu* one : left) {
        one->deleteLater();
    }
}

void MainWindow::fillRecent(QMenu* menu) {
    menu->clear();
    const QStringList recent = settings_.recent();
    for (const QString& path : recent) {
        QString text = path;
        if (text.startsWith(QDir::homePath() + u'/')) {
            text = u'~' + text.mid(QDir::homePath().size());
        }
        menu->addAction(text.replace(u'&', QStringLiteral("&&")), this, [this, path] { open(path); });
    }
    if (recent.isEmpty()) {
        menu->addAction(tr("Nothing yet"))->setEnabled(false);
        return;
    }
    menu->addSeparator();
    menu->addAction(tr("Clear the list"), this, [this] { settings_.clearRecent(); });
}

void MainWindow::fillFrom(QMenu* menu, QComboBox& box) {
    connect(menu, &QMenu::aboutToShow, this, [this, menu, &box] {
        emptyMenu(*menu);
        for (int i = 0; i < box.count(); ++i) {
            QAction* action =
                menu->addAction(box.itemText(i).replace(u'&', QStringLiteral("&&")), this, [&box, i] {
                    box.setCurrentIndex(i);
                    Q_EMIT box.activated(i);
                });
            action->setCheckable(true);
            action->setChecked(i == box.currentIndex());
        }
    });
}

void MainWindow::openFiles() {
    const QStringList files = QFileDialog::getOpenFileNames(
        this, tr("Open traces"), {}, tr("Traces and sessions (*.ponder *.ponder-session);;All files (*)"));
    for (const QString& file : files) {
        open(file);
    }
}

void MainWindow::showAbout() {
    QMessageBox::about(this, tr("About Ponderscope"),
                       tr("<h3>Ponderscope</h3><p>An instrument for language models that decide how long to "
                          "think about each "
                          "token.</p><p>%1</p><p>Licence: GPL-3.0-or-later</p>")
                           .arg(version_text().toHtmlEscaped().replace(u'\n', QStringLiteral("<br>"))));
}

figure::FigureSpec MainWindow::figureSpec(figure::FigureKind kind) const {
    figure::FigureSpec spec = text_->figureSpec(kind);
    const std::string signal = heatmap_->signalName().toStdString();
    const auto known = data_.signalsOf(selection_.runA()); // hidden, it may still show one of another run
    if (kind == figure::FigureKind::step_heatmap &&
        std::any_of(known.begin(), known.end(), [&](const SignalInfo& one) { return one.name == signal; })) {
        spec.signal = signal;
    }
    if (kind == figure::FigureKind::policy_table || kind == figure::FigureKind::policy_front) {
        lab_->fillFigure(spec);
    }
    return spec;
}

void MainWindow::exportFigure(figure::FigureKind kind) {
    if (!selection_.runA().isValid()) {
        return;
    }
    delete exportDialog_; // one at a time, and always of what the window shows now
    exportDialog_ = new ExportDialog({data_, selection_, theme_}, figureSpec(kind), this);
    exportDialog_->setAttribute(Qt::WA_DeleteOnClose);
    connect(exportDialog_, &ExportDialog::exported, this, [this](const QStringList& files) {
        QStringList names;
        for (const QString& file : files) {
            names << QFileInfo(file).fileName();
        }
        const QString spec = names.takeLast();
        messages_->show(
            tr("Wrote %1 to %2. The same again: ponderscope figure %3 -o %4")
                .arg(names.join(tr(" and ")), QFileInfo(files.first()).absolutePath(), spec, names.first()),
            MessageBar::Kind::success);
    });
    exportDialog_->show();
}

} // namespace ponderscope
