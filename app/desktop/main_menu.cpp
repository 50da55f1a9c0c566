// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/main_menu.h"

#include "app/desktop/command_palette.h"
#include "app/desktop/dock_layout.h"
#include "app/desktop/figure_export.h"
#include "app/desktop/greeting.h"
#include "app/desktop/launch.h"
#include "app/desktop/message_bar.h"
#include "app/desktop/panel_frame.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/run_controller.h"
#include "app/desktop/session_state.h"
#include "app/desktop/settings.h"
#include "app/desktop/think_panel.h"
#include "app/desktop/top_bar.h"
#include "app/desktop/what_if.h"
#include "views/common/view_command.h"
#include "views/figure/spec.h"
#include "views/text/span_bar.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QDockWidget>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>

#include <array>
#include <utility>

namespace ponderscope {

namespace {

constexpr char keys_outside_of_menus[] = R"(
| in the text | |
| --- | --- |
| Token by token, line by line, page by page | Arrows, Page Up, Page Down |
| Beginning and end of the line | Home, End |
| Beginning and end of the sequence | Ctrl+Home, Ctrl+End |
| Deselect the token | Escape |
| Zoom, from one token per line to a map of all sequences | Ctrl+wheel |
| What if, notes, search for this token | Menu key, Shift+F10, right button |

| elsewhere | |
| --- | --- |
| Next, previous in the find bar | Enter, Shift+Enter |
| Close the find bar | Escape |
| Next, previous saved view while presenting (F5) | Page Down, Page Up |
| End of presenting | Escape, F5 |
| Generate in Think | Ctrl+Enter |
)";

} // namespace

void empty_menu(QMenu& menu) {
    menu.clear();
    // clear() removes submenus but keeps them alive as children of the menu. Whoever holds one now may still
    // use it.
    const QList<QMenu*> left = menu.findChildren<QMenu*>(Qt::FindDirectChildrenOnly);
    for (QMenu* one : left) {
        one->deleteLater();
    }
}

MainMenu::MainMenu(const Shell& shell, const WindowParts& parts, TopBar& top)
    : ShellPart(shell), parts_(parts), top_(top) {
    QMenuBar& bar = top_.menus();

    QMenu* file = bar.addMenu(tr("&File"));
    file->addAction(tr("&Open…"), QKeySequence::Open, this, &MainMenu::openFilesWanted);
    file->addAction(tr("Co&nnect…"), this, [this] { Q_EMIT connectWanted(); });
    QMenu* recent = file->addMenu(tr("Open &Recent"));
    connect(recent, &QMenu::aboutToShow, this, [this, recent] { fillRecent(recent); });
    file->addAction(tr("&Save Session As…"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S), &parts_.session,
                    &SessionState::saveSession);
    file->addAction(tr("&New Window"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_N), this,
                    &MainMenu::newWindowWanted);
    file->addSeparator();
    file->addAction(tr("&Close Trace"), QKeySequence::Close, this, [this] {
        if (selection_.runA().isValid()) {
            data_.close(selection_.runA().trace);
        }
    });
    file->addAction(tr("&Quit"), QKeySequence::Quit, this, [] { QApplication::closeAllWindows(); });

    QMenu* edit = bar.addMenu(tr("&Edit"));
    undo_ =
        edit->addAction(tr("&Undo View Change"), QKeySequence::Undo, &parts_.session, &SessionState::undo);
    redo_ =
        edit->addAction(tr("&Redo View Change"), QKeySequence::Redo, &parts_.session, &SessionState::redo);
    edit->addSeparator();
    edit->addAction(tr("&Find Token…"), QKeySequence::Find, text_, &TextPanel::find);
    edit->addAction(tr("Find &Next"), QKeySequence::FindNext, text_, &TextPanel::findNext);
    edit->addAction(tr("Find &Previous"), QKeySequence::FindPrevious, text_, &TextPanel::findPrevious);
    edit->addSeparator();
    edit->addAction(tr("&Bookmark Token"), QKeySequence(Qt::CTRL | Qt::Key_B), &text_->spanBar(),
                    &SpanBar::toggleBookmark);
    edit->addAction(tr("Add &Note…"), QKeySequence(Qt::CTRL | Qt::Key_M), &text_->spanBar(),
                    [this] { text_->spanBar().askForLabel(note_annotation); });
    edit->addAction(tr("&List Notes"), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_M), text_,
                    &TextPanel::listNotes);
    edit->addSeparator();
    edit->addAction(tr("Copy as Co&mmand"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_C), this,
                    [this] { copyCommand(focusedPanel()); });
    edit->addAction(tr("&Command Palette…"), QKeySequence(Qt::CTRL | Qt::Key_K), this,
                    &MainMenu::showPalette);

    QMenu* run = bar.addMenu(tr("&Run"));
    run->addAction(tr("&Record…"), QKeySequence(Qt::CTRL | Qt::Key_R), this,
                   [this] { parts_.runs.showRecordDialog(); });
    run->addAction(tr("&Think…"), QKeySequence(Qt::CTRL | Qt::Key_T), &parts_.runs,
                   &RunController::showThink);
    QAction* cancel = run->addAction(tr("&Cancel Recording"), &parts_.runs, &RunController::cancelRecording);
    run->addSeparator();
    fillFrom(run->addMenu(tr("Show as &A")), top_.runA());
    fillFrom(run->addMenu(tr("Compare with &B")), top_.runB());
    run->addAction(tr("&Swap A and B"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_B), this, [this] {
        if (selection_.runB().isValid()) {
            const RunKey a = selection_.runA();
            selection_.setRunA(selection_.runB());
            selection_.setRunB(a);
        }
    });
    run->addSeparator();
    QMenu* whatIf = run->addMenu(tr("&What If"));
    connect(whatIf, &QMenu::aboutToShow, this, [this, whatIf] {
        empty_menu(*whatIf);
        parts_.whatIf.fillWhatIf(*whatIf, selection_.token());
    });
    connect(run, &QMenu::aboutToShow, this,
            [this, cancel] { cancel->setEnabled(parts_.runs.recorder().isRunning()); });

    const auto tell = [this] {
        undo_->setEnabled(parts_.session.canUndo());
        redo_->setEnabled(parts_.session.canRedo());
    };
    connect(&parts_.session, &SessionState::historyChanged, this, tell);
    tell();

    buildViewMenu(bar.addMenu(tr("&View")));

    QMenu* figures = bar.addMenu(tr("F&igures"));
    QList<QAction*> makes;
    makes << figures->addAction(tr("Figure &Workbench…"), QKeySequence(Qt::CTRL | Qt::Key_E), this,
                                [this] { parts_.figures.exportFigure(figure::FigureKind::token_text); });
    figures->addSeparator();
    for (const figure::KindInfo& info : figure::figure_kinds()) {
        makes << figures->addAction(tr("%1…").arg(QString::fromUtf8(info.title)), this,
                                    [this, kind = info.kind] { parts_.figures.exportFigure(kind); });
        makes.last()->setToolTip(QString::fromUtf8(info.shows));
    }
    connect(figures, &QMenu::aboutToShow, this, [this, makes] {
        for (QAction* action : makes) {
            action->setEnabled(selection_.runA().isValid());
        }
    });

    QMenu* help = bar.addMenu(tr("&Help"));
    help->addAction(tr("&Panel Help"), QKeySequence::HelpContents, this, &MainMenu::showHelp);
    help->addAction(tr("&Keyboard Shortcuts"), QKeySequence(Qt::CTRL | Qt::Key_Slash), this,
                    &MainMenu::showShortcuts);
    help->addAction(tr("&Tour"), &parts_.greeting, &Greeting::startTour);
    help->addAction(tr("&Welcome Page"), &parts_.greeting, &Greeting::showWelcome);
    help->addSeparator();
    help->addAction(tr("&About Ponderscope"), this, &MainMenu::showAbout);
}

void MainMenu::buildViewMenu(QMenu* view) {
    const auto step = [this](int by) {
        const auto sequences = data_.sequences(selection_.runA());
        const qint64 wanted = selection_.sequence() + by;
        if (wanted >= 0 && wanted < static_cast<qint64>(sequences.size())) {
            selection_.setSequence(wanted);
        }
    };
    view->addAction(tr("Next &Sequence"), QKeySequence(Qt::CTRL | Qt::Key_PageDown), this,
                    [step] { step(1); });
    view->addAction(tr("Pre&vious Sequence"), QKeySequence(Qt::CTRL | Qt::Key_PageUp), this,
                    [step] { step(-1); });
    view->addSeparator();
    // A menu of values of which one is chosen.
    const auto choice = [this](QMenu* menu, auto now, const auto& values, auto choose) {
        auto* group = new QActionGroup(menu);
        for (const auto& [text, value] : values) {
            QAction* action = menu->addAction(tr(text), this, [choose, wanted = value] { choose(wanted); });
            action->setCheckable(true);
            action->setChecked(value == now);
            group->addAction(action);
        }
    };
    choice(view->addMenu(tr("Show &Values")), selection_.attribution(),
           std::array{std::pair("At the &Predicted Token", Attribution::predicted),
                      std::pair("At the P&redicting Token", Attribution::predicting)},
           [this](Attribution wanted) { selection_.setAttribution(wanted); });
    choice(view->addMenu(tr("&Appearance")), theme_.appearance(),
           std::array{std::pair("As the &System", Appearance::system), std::pair("&Light", Appearance::light),
                      std::pair("&Dark", Appearance::dark),
                      std::pair("High &Contrast", Appearance::contrast)},
           [this](Appearance wanted) {
               theme_.setAppearance(wanted);
               settings_.setAppearance(wanted);
           });
    choice(view->addMenu(tr("&Heatmap Colours")), theme_.magnitude(),
           std::array{std::pair("&Viridis", MagnitudeMap::viridis),
                      std::pair("&Cividis", MagnitudeMap::cividis), std::pair("&Magma", MagnitudeMap::magma),
                      std::pair("&Grey", MagnitudeMap::grey)},
           [this](MagnitudeMap wanted) {
               theme_.setMagnitude(wanted);
               settings_.setMagnitude(wanted);
           });
    view->addAction(tr("Zoom &In"), QKeySequence::ZoomIn, text_, &TextPanel::zoomIn);
    view->addAction(tr("Zoom &Out"), QKeySequence::ZoomOut, text_, &TextPanel::zoomOut);
    view->addAction(tr("&Normal Size"), QKeySequence(Qt::CTRL | Qt::Key_0), this,
                    [this] { theme_.setTextSize(19); });
    view->addAction(tr("One Token per &Line"), QKeySequence(Qt::CTRL | Qt::Key_1), text_,
                    [this] { text_->setZoom(TextZoom::tokens); });
    view->addAction(tr("Running &Text"), QKeySequence(Qt::CTRL | Qt::Key_2), text_,
                    [this] { text_->setZoom(TextZoom::text); });
    view->addAction(tr("&Map of All Sequences"), QKeySequence(Qt::CTRL | Qt::Key_3), text_,
                    [this] { text_->setZoom(TextZoom::corpus); });
    view->addSeparator();
    view->addAction(tr("Colour by A − B"), QKeySequence(Qt::CTRL | Qt::Key_D), text_,
                    [this] { text_->setDifference(!text_->view().values().difference); });
    fillFrom(view->addMenu(tr("Colour &By")), text_->colourBox());
    fillFrom(view->addMenu(tr("&Bars")), text_->barsBox());
    view->addSeparator();
    QMenu* shown = view->addMenu(tr("&Panels"));
    for (QDockWidget* dock : parts_.docks.docks()) {
        shown->addAction(dock->toggleViewAction());
    }
    view->addAction(tr("&Save View"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_K), &parts_.session,
                    &SessionState::keepView);
    QMenu* kept = view->addMenu(tr("Saved Vie&ws"));
    connect(kept, &QMenu::aboutToShow, this, [this, kept] { parts_.session.fillViews(kept); });
    view->addAction(tr("P&resent"), QKeySequence(Qt::Key_F5), &parts_.session, &SessionState::present);
    view->addSeparator();
    view->addAction(tr("Ma&ximize Panel"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_M), this,
                    [this] { parts_.docks.maximise(DockLayout::focusedDock()); });
    view->addAction(tr("Restore &Default Layout"), &parts_.docks, &DockLayout::arrange);
}

void MainMenu::fillRecent(QMenu* menu) {
    menu->clear();
    const QStringList recent = settings_.recent();
    for (const QString& path : recent) {
        QString text = path;
        if (text.startsWith(QDir::homePath() + u'/')) {
            text = u'~' + text.mid(QDir::homePath().size());
        }
        menu->addAction(text.replace(u'&', QStringLiteral("&&")), this,
                        [this, path] { Q_EMIT openWanted(path); });
    }
    if (recent.isEmpty()) {
        menu->addAction(tr("No Recent Files"))->setEnabled(false);
        return;
    }
    menu->addSeparator();
    menu->addAction(tr("Clear List"), this, [this] { settings_.clearRecent(); });
}

void MainMenu::fillFrom(QMenu* menu, QComboBox& box) {
    connect(menu, &QMenu::aboutToShow, this, [this, menu, &box] {
        empty_menu(*menu);
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

void MainMenu::showPalette() {
    auto* palette = new CommandPalette(commands_of(top_.menus().actions()), theme_, window_);
    // The action outlives the palette, which is gone when it is triggered.
    auto* found = new QAction(this);
    connect(palette, &QObject::destroyed, found, &QObject::deleteLater);
    connect(found, &QAction::triggered, this, [this, found] { text_->findText(found->data().toString()); });
    palette->model().setTyped([found](const QString& line) {
        found->setData(line);
        return CommandModel::Command{found, {}, tr("Find “%1” in the text").arg(line)};
    });
    palette->move(window_->mapToGlobal(QPoint((window_->width() - palette->width()) / 2, 60)));
    palette->show();
}

void MainMenu::showShortcuts() {
    QString text = QStringLiteral("### Keyboard Shortcuts\n\n| in the menus | |\n| --- | --- |\n");
    for (const CommandModel::Command& command : commands_of(top_.menus().actions())) {
        if (command.action && !command.action->shortcut().isEmpty()) {
            text += QStringLiteral("| %1 | %2 |\n")
                        .arg(command.text, command.action->shortcut().toString(QKeySequence::NativeText));
        }
    }
    show_panel_help({{}, {}, text + QString::fromUtf8(keys_outside_of_menus)}, &top_, theme_);
}

void MainMenu::showAbout() {
    QMessageBox::about(window_, tr("About Ponderscope"),
                       tr("<h3>Ponderscope</h3><p>An instrument for language models that decide how long to "
                          "think about each "
                          "token.</p><p>%1</p><p>Licence: GPL-3.0-or-later</p>")
                           .arg(version_text().toHtmlEscaped().replace(u'\n', QStringLiteral("<br>"))));
}

QWidget* MainMenu::focusedPanel() const {
    const QDockWidget* dock = DockLayout::focusedDock();
    return dock == nullptr ? text_ : panel_of(*dock);
}

void MainMenu::showHelp() {
    const QDockWidget* dock = DockLayout::focusedDock();
    const PanelHelp* help = dock == nullptr ? nullptr : panel_help(dock->windowTitle());
    if (help != nullptr) {
        show_panel_help(*help, dock->titleBarWidget(), theme_);
    } else {
        show_panel_help(*panel_help(QStringLiteral("Text")), text_, theme_);
    }
}

void MainMenu::copyCommand(QWidget* panel) {
    const auto* view = dynamic_cast<ShowsCommand*>(panel);
    const ViewCommand command = view == nullptr ? ViewCommand() : view->viewCommand();
    if (command.kind == ViewCommand::Kind::none) {
        messages_->show("command.none", command.text, MessageBar::Kind::notice);
        return;
    }
    QApplication::clipboard()->setText(command.text);
    messages_->show("command.copied",
                    command.kind == ViewCommand::Kind::shell
                        ? tr("Copied as a command: %1").arg(command.text.section(u'\n', 0, 0))
                        : tr("Copied Python code that reads these numbers (import ponderscope)."),
                    MessageBar::Kind::success);
}

void MainMenu::showTextMenu(qint64 token, const QPoint& place) {
    auto* menu = new QMenu(window_);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    const auto block = text_->view().sequence();
    if (block && token >= 0 && token < static_cast<qint64>(block->tokens.size())) {
        if (text_->view().span().contains(token)) { // a span stays, and the menu is about it
            text_->spanBar().addActions(*menu);
        } else {
            selection_.setToken(token);
            parts_.whatIf.fillWhatIf(*menu, token);
        }
        menu->addSeparator();
        const int id = block->tokens.id[static_cast<std::size_t>(token)];
        menu->addAction(tr("Find All of This Token"), this,
                        [this, id] { text_->findText(QStringLiteral("#%1").arg(id)); });
        menu->addAction(tr("Bookmark"), &text_->spanBar(), &SpanBar::toggleBookmark);
        menu->addAction(tr("Add Note…"), this, [this] { text_->spanBar().askForLabel(note_annotation); });
        menu->addAction(tr("Copy Numbers"), this,
                        [this, token] { QApplication::clipboard()->setText(text_->view().describe(token)); });
    } else {
        menu->addAction(tr("Find…"), text_, &TextPanel::find);
    }
    menu->addAction(tr("Copy as Command"), this, [this] { copyCommand(text_); });
    menu->addSeparator();
    menu->addAction(tr("Think from Here…"), this, [this, token, block] {
        // The text up to here, for the model to go on with.
        ThinkRequest request = parts_.runs.thinkPanel().request();
        if (block && token >= 0) {
            const auto end =
                std::min<std::size_t>(block->tokens.end[static_cast<std::size_t>(token)], block->text.size());
            request.prompt = QString::fromUtf8(block->text.data(), static_cast<qsizetype>(end));
        }
        parts_.runs.showThink();
        request.checkpoint = parts_.runs.thinkPanel().request().checkpoint;
        parts_.runs.thinkPanel().setRequest(request);
    });
    menu->popup(place);
}

} // namespace ponderscope
