// SPDX-License-Identifier: GPL-3.0-or-later
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/reader.h"

#include "app/desktop/main_window.h"

#include "app/desktop/message_bar.h"
#include "app/desktop/recording_status.h"
#include "app/desktop/settings.h"
#include "app/desktop/top_bar.h"
#include "views/compare/compare_view.h"
#include "views/figure/export_dialog.h"
#include "views/heatmap/heatmap_view.h"
#include "views/inspector/inspector_view.h"
#include "views/library/library_panel.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QActionGroup>
#include <QApplication>
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
#include <QThread>
#include <QVBoxLayout>

#include <algorithm>

namespace ponderscope {

namespace {

/// Below this height of the window heatmap and comparison share one place.
constexpr int lowest_for_both = 820;

} // namespace

QDockWidget* MainWindow::addPanel(const QString& name, const QString& title, QWidget* widget,
                                  Qt::DockWidgetArea area, bool header) {
    auto* dock = new QDockWidget(title, this);
    dock->setObjectName(name);
    dock->setWidget(widget);
    dock->setFeatures(QDockWidget::DockWidgetMovable | QDockWidget::DockWidgetFloatable |
                      QDockWidget::DockWidgetClosable);
    if (!header) {
        // The panel names itself; it is moved and closed through the View menu.
        auto* nothing = new QWidget(dock);
        nothing->setFixedHeight(0);
        dock->setTitleBarWidget(nothing);
    }
    addDockWidget(area, dock);
    docks_.push_back(dock);
    dockByName_[name] = dock;
    return dock;
}

void MainWindow::buildPanels() {
    const ViewContext context{data_, selection_, theme_};
    setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
    setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);

    auto* centre = new QWidget(this);
    auto* column = new QVBoxLayout(centre);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    messages_ = new MessageBar(theme_, centre);
    text_ = new TextPanel(context, centre);
    column->addWidget(messages_);
    column->addWidget(text_, 1);
    setCentralWidget(centre);

    library_ = new LibraryPanel(context, this);
    addPanel(QStringLiteral("library"), tr("Library"), library_, Qt::LeftDockWidgetArea, true);
    inspector_ = new InspectorView(context, this);
    addPanel(QStringLiteral("inspector"), tr("Inspector"), inspector_, Qt::RightDockWidgetArea, false);
    heatmap_ = new HeatmapView(context, this);
    addPanel(QStringLiteral("heatmap"), tr("Steps"), heatmap_, Qt::BottomDockWidgetArea, false);
    compare_ = new CompareView(context, this);
    addPanel(QStringLiteral("compare"), tr("Compare"), compare_, Qt::BottomDockWidgetArea, true);
    status_ = new QLabel(this);
    status_->setTextFormat(Qt::PlainText);
    status_->setForegroundRole(QPalette::PlaceholderText);
    status_->setContentsMargins(10, 0, 0, 0);
    recording_ = new RecordingStatus(theme_, this);
    statusBar()->addWidget(status_, 1);
    statusBar()->addPermanentWidget(recording_);
    statusBar()->setSizeGripEnabled(false);
    statusBar()->setMinimumHeight(30);

    top_ = new TopBar(context, this);
    setMenuWidget(top_);
    connect(top_, &TopBar::findRequested, text_, &TextPanel::find);
}

void MainWindow::buildMenus() {
    QMenuBar& bar = top_->menus();

    QMenu* file = bar.addMenu(tr("&File"));
    file->addAction(tr("&Open…"), QKeySequence::Open, this, &MainWindow::openFiles);
    QMenu* recent = file->addMenu(tr("Open &recent"));
    connect(recent, &QMenu::aboutToShow, this, [this, recent] { fillRecent(recent); });
    file->addSeparator();
    file->addAction(tr("&Close trace"), QKeySequence::Close, this, [this] {
        if (selection_.runA().isValid()) {
            data_.close(selection_.runA().trace);
        }
    });
    file->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);

    QMenu* run = bar.addMenu(tr("&Run"));
    run->addAction(tr("&Record…"), QKeySequence(Qt::CTRL | Qt::Key_R), this, [this] { showRecordDialog(); });
    QAction* cancel = run->addAction(tr("&Cancel the recording"), this, [this] {
        recording_->cancelling();
        recorder_.cancel();
    });
    run->addSeparator();
    run->addAction(tr("&Swap A and B"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_B), this, [this] {
        if (selection_.runB().isValid()) {
            const RunKey a = selection_.runA();
            selection_.setRunA(selection_.runB());
            selection_.setRunB(a);
        }
    });
    connect(run, &QMenu::aboutToShow, this, [this, cancel] { cancel->setEnabled(recorder_.isRunning()); });

    QMenu* view = bar.addMenu(tr("&View"));
    view->addAction(tr("&Find a token"), QKeySequence::Find, text_, &TextPanel::find);
    view->addAction(tr("Find &next"), QKeySequence::FindNext, text_, &TextPanel::findNext);
    view->addAction(tr("Find &previous"), QKeySequence::FindPrevious, text_, &TextPanel::findPrevious);
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
    QMenu* values = view->addMenu(tr("&Values are shown"));
    auto* valueGroup = new QActionGroup(values);
    choice(values, valueGroup, tr("at the token that was &predicted"), true,
           [this] { selection_.setAttribution(Attribution::predicted); });
    choice(values, valueGroup, tr("at the token that &computed"), false,
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
    const auto size = [this](int pixels) {
        theme_.setTextSize(pixels);
        settings_.setTextSize(theme_.textSize());
    };
    view->addAction(tr("&Larger text"), QKeySequence::ZoomIn, this,
                    [this, size] { size(theme_.textSize() + 1); });
    view->addAction(tr("S&maller text"), QKeySequence::ZoomOut, this,
                    [this, size] { size(theme_.textSize() - 1); });
    view->addAction(tr("&Normal text"), QKeySequence(Qt::CTRL | Qt::Key_0), this, [size] { size(19); });
    view->addSeparator();
    for (QDockWidget* dock : docks_) {
        view->addAction(dock->toggleViewAction());
    }
    view->addAction(tr("Restore &default layout"), this, &MainWindow::restoreDefaultLayout);

    QMenu* figures = bar.addMenu(tr("F&igures"));
    QList<QAction*> makes;
    makes << figures->addAction(tr("&Text overlay…"), this,
                                [this] { exportFigure(figure::FigureKind::token_text); });
    makes << figures->addAction(tr("&Step heatmap…"), this,
                                [this] { exportFigure(figure::FigureKind::step_heatmap); });
    makes << figures->addAction(tr("&NLL comparison…"), this,
                                [this] { exportFigure(figure::FigureKind::nll_comparison); });
    connect(figures, &QMenu::aboutToShow, this, [this, makes] {
        for (QAction* action : makes) {
            action->setEnabled(selection_.runA().isValid());
        }
    });

    QMenu* help = bar.addMenu(tr("&Help"));
    help->addAction(tr("&About Ponderscope"), this, &MainWindow::showAbout);
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

void MainWindow::openFiles() {
    const QStringList files =
        QFileDialog::getOpenFileNames(this, tr("Open traces"), {}, tr("Traces (*.ponder);;All files (*)"));
    for (const QString& file : files) {
        open(file);
    }
}

void MainWindow::restoreDefaultLayout() {
    arrange(height());
}

void MainWindow::arrange(int height) {
    QDockWidget* left = dockByName_.at(QStringLiteral("library"));
    QDockWidget* right = dockByName_.at(QStringLiteral("inspector"));
    QDockWidget* below = dockByName_.at(QStringLiteral("heatmap"));
    QDockWidget* bottom = dockByName_.at(QStringLiteral("compare"));
    for (QDockWidget* dock : docks_) {
        dock->setFloating(false);
        removeDockWidget(dock); // out of tabs and splits
    }
    addDockWidget(Qt::LeftDockWidgetArea, left);
    addDockWidget(Qt::RightDockWidgetArea, right);
    addDockWidget(Qt::BottomDockWidgetArea, below);
    addDockWidget(Qt::BottomDockWidgetArea, bottom);
    for (QDockWidget* dock : docks_) {
        dock->show();
    }
    // The text is what the window is for: it keeps half of the height.
    if (height < lowest_for_both) {
        tabifyDockWidget(below, bottom);
        below->raise();
        resizeDocks({below}, {std::max(160, height * 3 / 10)}, Qt::Vertical);
    } else {
        splitDockWidget(below, bottom, Qt::Vertical);
        const int room = height * 44 / 100;
        resizeDocks({below, bottom}, {room * 48 / 100, room * 52 / 100}, Qt::Vertical);
    }
    resizeDocks({left, right}, {252, 312}, Qt::Horizontal);
}

void MainWindow::showAbout() {
    QMessageBox::about(this, tr("About Ponderscope"),
                       tr("<h3>Ponderscope</h3><p>An instrument for language models that decide how long to "
                          "think about each "
                          "token.</p><p>%1</p><p>Licence: GPL-3.0-or-later</p>")
                           .arg(version_text().toHtmlEscaped().replace(u'\n', QStringLiteral("<br>"))));
}

figure::FigureSpec MainWindow::figureSpec(figure::FigureKind kind) const {
    figure::FigureSpec spec;
    spec.kind = kind;
    const auto name = [this](const RunKey& key) {
        const RunInfo* run = data_.run(key);
        return figure::RunName{std::filesystem::path(key.trace.toStdU16String()),
                               run == nullptr ? std::string() : run->name};
    };
    spec.runs.push_back(name(selection_.runA()));
    const bool difference = text_->view().showsDifference();
    if (selection_.runB().isValid() && (kind == figure::FigureKind::nll_comparison || difference)) {
        spec.runs.push_back(name(selection_.runB()));
    }
    spec.attribution = selection_.attribution();
    if (kind == figure::FigureKind::step_heatmap && !heatmap_->signalName().isEmpty()) {
        spec.signal = heatmap_->signalName().toStdString();
    }
    if (kind == figure::FigureKind::nll_comparison) {
        spec.width_mm = figure::double_column_mm;
        return spec;
    }
    spec.sequence = selection_.sequence();
    spec.width_mm = figure::double_column_mm;
    // What is on the screen: a figure of a whole book helps nobody.
    const TextView& view = text_->view();
    const qint64 first = view.firstVisibleToken();
    const qint64 end = view.endVisibleToken();
    if (end > first) {
        spec.tokens = std::array<std::int64_t, 2>{first, end};
    }
    switch (view.quantity()) {
    case Quantity::nll:
        spec.quantity = difference ? figure::TokenQuantity::nll_difference : figure::TokenQuantity::nll;
        break;
    case Quantity::entropy:
        spec.quantity = figure::TokenQuantity::entropy;
        break;
    case Quantity::rank:
        spec.quantity = figure::TokenQuantity::rank;
        break;
    case Quantity::steps:
        spec.quantity = figure::TokenQuantity::steps;
        break;
    case Quantity::maxProbability:
        spec.quantity = figure::TokenQuantity::max_probability;
        break;
    case Quantity::flops:
        spec.quantity = figure::TokenQuantity::flops;
        break;
    }
    if (spec.quantity != figure::TokenQuantity::nll_difference && spec.runs.size() > 1) {
        spec.runs.resize(1);
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
    connect(exportDialog_, &QObject::destroyed, this, [this] { exportDialog_ = nullptr; });
    connect(exportDialog_, &ExportDialog::exported, this, [this](const QStringList& files) {
        QStringList names;
        for (const QString& file : files) {
            names << QFileInfo(file).fileName();
        }
        const QString spec = names.takeLast();
        messages_->show(
            tr("Wrote %1 to %2. The same again: ponderscope figure %3 -o %4")
                .arg(names.join(tr(" and ")), QFileInfo(files.first()).absolutePath(), spec, names.first()),
            MessageBar::Kind::notice);
    });
    exportDialog_->show();
}

void MainWindow::checkTrace(const QString& path) {
    messages_->show(tr("Checking every page of %1…").arg(QFileInfo(path).fileName()),
                    MessageBar::Kind::notice);
    // A pass over the whole file: a thread of its own, with a reader of its own.
    auto* thread = QThread::create([this, path] {
        QString sentence;
        try {
            sentence = QString::fromStdString(
                TraceReader::open(std::filesystem::path(path.toStdU16String())).check());
        } catch (const std::exception& error) {
            sentence = QString::fromUtf8(error.what());
        }
        QMetaObject::invokeMethod(
            this,
            [this, path, sentence] {
                messages_->clear();
                if (sentence.isEmpty()) {
                    messages_->show(tr("%1 is sound: every page was read.").arg(QFileInfo(path).fileName()),
                                    MessageBar::Kind::notice);
                } else {
                    messages_->show(sentence);
                }
            },
            Qt::QueuedConnection);
    });
    thread->setParent(this);
    connect(thread, &QThread::finished, thread, &QObject::deleteLater);
    thread->start();
}

} // namespace ponderscope
