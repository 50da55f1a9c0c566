// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/main_menu.h"

#include "app/desktop/command_palette.h"
#include "app/desktop/dock_layout.h"
#include "app/desktop/figure_export.h"
#include "app/desktop/greeting.h"
#include "app/desktop/launch.h"
#include "app/desktop/open_traces.h"
#include "app/desktop/panel_frame.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/run_controller.h"
#include "app/desktop/session_state.h"
#include "app/desktop/think_panel.h"
#include "app/desktop/top_bar.h"
#include "app/desktop/what_if.h"
#include "views/common/view_command.h"
#include "views/figure/spec.h"
#include "views/text/span_bar.h"

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

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr char keys_outside_of_menus[] = R"(
| in the text | |
| --- | --- |
| Token by token, line by line, page by page | Arrows, Page Up, Page Down |
| Beginning and end of the line | Home, End |
| Beginning and end of the sequence | Ctrl+Home, Ctrl+End |
| Deselect the token | Escape |
| Zoom, from one token per line to a map of all sequences | Ctrl+wheel, Ctrl+plus, Ctrl+minus |
| Larger or smaller cells of the map | Plus, Minus |
| Set the ends of the colour scale | Space on the scale |
| Menu of a token: what if, notes, search | Menu key, Shift+F10, right button |

| elsewhere | |
| --- | --- |
| Next or previous hit in the find bar | Enter, Shift+Enter |
| Close the find bar | Escape |
| Next or previous saved view while presenting (F5) | Page Down, Page Up |
| Leave the presentation | Escape, F5 |
| Generate text in the Think panel | Ctrl+Enter |
)";

QAction* add(QMenu* menu, const QString& text, const QKeySequence& keys, auto* receiver, auto slot) {
    return menu->addAction(text, keys, receiver, slot);
}

} // namespace

void empty_menu(QMenu& menu) {
    menu.clear();
    // clear() keeps submenus alive as children of the menu. One may be in use now.
    const QList<QMenu*> left = menu.findChildren<QMenu*>(Qt::FindDirectChildrenOnly);
    for (QMenu* one : left) {
        one->deleteLater();
    }
}

MainMenu::MainMenu(const Shell& shell, const WindowParts& parts, TopBar& top)
    : ShellPart(shell), parts_(parts), top_(top) {
    QMenuBar& bar = top_.menus();

    QMenu* file = bar.addMenu(u"&File"_s);
    add(file, u"&Open…"_s, QKeySequence::Open, &parts_.traces, &OpenTraces::openFiles);
    file->addAction(u"Open &Location…"_s, &parts_.traces, &OpenTraces::openLocation);
    QMenu* recent = file->addMenu(u"Open &Recent"_s);
    connect(recent, &QMenu::aboutToShow, this, [this, recent] { fillRecent(recent); });
    add(file, u"&Save Session As…"_s, u"Ctrl+Shift+S"_s, &parts_.session, &SessionState::saveSession);
    add(file, u"&New Window"_s, u"Ctrl+Shift+N"_s, this, &MainMenu::newWindowWanted);
    file->addSeparator();
    add(file, u"&Close Trace"_s, QKeySequence::Close, this, [this] {
        if (selection_.runA().isValid()) {
            data_.close(selection_.runA().trace);
        }
    });
    add(file, u"&Quit"_s, QKeySequence::Quit, this, [] { QApplication::closeAllWindows(); });

    QMenu* edit = bar.addMenu(u"&Edit"_s);
    undo_ = add(edit, u"&Undo View Change"_s, QKeySequence::Undo, &parts_.session, &SessionState::undo);
    redo_ = add(edit, u"&Redo View Change"_s, QKeySequence::Redo, &parts_.session, &SessionState::redo);
    edit->addSeparator();
    add(edit, u"&Find Token…"_s, QKeySequence::Find, text_, &TextPanel::find);
    add(edit, u"Find &Next"_s, QKeySequence::FindNext, text_, &TextPanel::findNext);
    add(edit, u"Find &Previous"_s, QKeySequence::FindPrevious, text_, &TextPanel::findPrevious);
    edit->addSeparator();
    add(edit, u"&Bookmark Token"_s, u"Ctrl+B"_s, &text_->spanBar(), &SpanBar::toggleBookmark);
    add(edit, u"Add &Note…"_s, u"Ctrl+M"_s, &text_->spanBar(),
        [this] { text_->spanBar().askForLabel(note_annotation); });
    add(edit, u"&List Notes"_s, u"Ctrl+Alt+M"_s, text_, &TextPanel::listNotes);
    edit->addSeparator();
    add(edit, u"Copy as Co&mmand"_s, u"Ctrl+Shift+C"_s, this, [this] { copyCommand(focusedPanel()); });
    add(edit, u"&Command Palette…"_s, u"Ctrl+K"_s, this, &MainMenu::showPalette);

    QMenu* run = bar.addMenu(u"&Run"_s);
    add(run, u"&Record…"_s, u"Ctrl+R"_s, this, [this] { parts_.runs.showRecordDialog(); });
    add(run, u"&Think…"_s, u"Ctrl+T"_s, &parts_.runs, &RunController::showThink);
    QAction* cancel = run->addAction(u"&Cancel Recording"_s, &parts_.runs, &RunController::cancelRecording);
    run->addSeparator();
    fillFrom(run->addMenu(u"Show as &A"_s), top_.runA());
    fillFrom(run->addMenu(u"Compare with &B"_s), top_.runB());
    add(run, u"&Swap A and B"_s, u"Ctrl+Shift+B"_s, this, [this] {
        if (selection_.runB().isValid()) {
            const RunKey a = selection_.runA();
            selection_.setRunA(selection_.runB());
            selection_.setRunB(a);
        }
    });
    run->addSeparator();
    QMenu* whatIf = run->addMenu(u"&What If"_s);
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

    buildViewMenu(bar.addMenu(u"&View"_s));

    QMenu* figures = bar.addMenu(u"F&igures"_s);
    QList<QAction*> makes;
    makes << add(figures, u"Figure &Workbench…"_s, u"Ctrl+E"_s, this,
                 [this] { parts_.figures.exportFigure(figure::FigureKind::token_text); });
    figures->addSeparator();
    for (const figure::KindInfo& info : figure::figure_kinds()) {
        makes << figures->addAction(u"%1…"_s.arg(QString::fromUtf8(info.title)), this,
                                    [this, kind = info.kind] { parts_.figures.exportFigure(kind); });
        makes.last()->setToolTip(QString::fromUtf8(info.shows));
    }
    connect(figures, &QMenu::aboutToShow, this, [this, makes] {
        for (QAction* action : makes) {
            action->setEnabled(selection_.runA().isValid());
        }
    });

    QMenu* help = bar.addMenu(u"&Help"_s);
    add(help, u"&Panel Help"_s, QKeySequence::HelpContents, this, &MainMenu::showHelp);
    add(help, u"&Keyboard Shortcuts"_s, u"Ctrl+/"_s, this, &MainMenu::showShortcuts);
    help->addAction(u"&First Steps"_s, this,
                    [this] { show_panel_help(*panel_help(u"First steps"_s), &top_, theme_); });
    help->addAction(u"&Welcome Page"_s, &parts_.greeting, &Greeting::showWelcome);
    help->addSeparator();
    help->addAction(u"&About Ponderscope"_s, this, &MainMenu::showAbout);
}

void MainMenu::buildViewMenu(QMenu* view) {
    const auto step = [this](int by) {
        const auto sequences = data_.sequences(selection_.runA());
        const qint64 wanted = selection_.sequence() + by;
        if (wanted >= 0 && wanted < static_cast<qint64>(sequences.size())) {
            selection_.setSequence(wanted);
        }
    };
    add(view, u"Next &Sequence"_s, u"Ctrl+PgDown"_s, this, [step] { step(1); });
    add(view, u"Pre&vious Sequence"_s, u"Ctrl+PgUp"_s, this, [step] { step(-1); });
    view->addSeparator();
    // A menu with one checked value.
    const auto choice = [this](QMenu* menu, auto now, const auto& values, auto choose) {
        auto* group = new QActionGroup(menu);
        for (const auto& [text, value] : values) {
            QAction* action =
                menu->addAction(QString::fromUtf8(text), this, [choose, wanted = value] { choose(wanted); });
            action->setCheckable(true);
            action->setChecked(value == now);
            group->addAction(action);
        }
    };
    choice(view->addMenu(u"Show &Values"_s), selection_.attribution(),
           std::array{std::pair("At the &Predicted Token", Attribution::predicted),
                      std::pair("At the P&redicting Token", Attribution::predicting)},
           [this](Attribution wanted) { selection_.setAttribution(wanted); });
    choice(view->addMenu(u"&Appearance"_s), theme_.appearance(),
           std::array{std::pair("As the &System", Appearance::system), std::pair("&Light", Appearance::light),
                      std::pair("&Dark", Appearance::dark),
                      std::pair("High &Contrast", Appearance::contrast)},
           [this](Appearance wanted) {
               theme_.setAppearance(wanted);
               settings_.setAppearance(wanted);
           });
    choice(view->addMenu(u"&Heatmap Colours"_s), theme_.magnitude(),
           std::array{std::pair("&Viridis", MagnitudeMap::viridis),
                      std::pair("&Cividis", MagnitudeMap::cividis), std::pair("&Magma", MagnitudeMap::magma),
                      std::pair("&Grey", MagnitudeMap::grey)},
           [this](MagnitudeMap wanted) {
               theme_.setMagnitude(wanted);
               settings_.setMagnitude(wanted);
           });
    add(view, u"Zoom &In"_s, QKeySequence::ZoomIn, text_, &TextPanel::zoomIn);
    add(view, u"Zoom &Out"_s, QKeySequence::ZoomOut, text_, &TextPanel::zoomOut);
    add(view, u"&Normal Size"_s, u"Ctrl+0"_s, this, [this] { theme_.setTextSize(19); });
    add(view, u"One Token per &Line"_s, u"Ctrl+1"_s, text_, [this] { text_->setZoom(TextZoom::tokens); });
    add(view, u"Running &Text"_s, u"Ctrl+2"_s, text_, [this] { text_->setZoom(TextZoom::text); });
    add(view, u"&Map of All Sequences"_s, u"Ctrl+3"_s, text_, [this] { text_->setZoom(TextZoom::corpus); });
    view->addSeparator();
    add(view, u"Colour by A − B"_s, u"Ctrl+D"_s, text_,
        [this] { text_->setDifference(!text_->view().values().difference); });
    fillFrom(view->addMenu(u"Colour &By"_s), text_->colourBox());
    fillFrom(view->addMenu(u"&Bars"_s), text_->barsBox());
    view->addSeparator();
    QMenu* shown = view->addMenu(u"&Panels"_s);
    for (QDockWidget* dock : parts_.docks.docks()) {
        shown->addAction(dock->toggleViewAction());
    }
    add(view, u"&Save View"_s, u"Ctrl+Shift+K"_s, &parts_.session, &SessionState::keepView);
    QMenu* kept = view->addMenu(u"Saved Vie&ws"_s);
    connect(kept, &QMenu::aboutToShow, this, [this, kept] { parts_.session.fillViews(kept); });
    add(view, u"P&resent"_s, u"F5"_s, &parts_.session, &SessionState::present);
    view->addSeparator();
    add(view, u"Ma&ximize Panel"_s, u"Ctrl+Shift+M"_s, this,
        [this] { parts_.docks.maximise(DockLayout::focusedDock()); });
    view->addAction(u"Restore &Default Layout"_s, &parts_.docks, &DockLayout::arrange);
}

void MainMenu::fillRecent(QMenu* menu) {
    menu->clear();
    const QStringList recent = settings_.recent();
    for (const QString& path : recent) {
        QString text = path;
        if (text.startsWith(QDir::homePath() + u'/')) {
            text = u'~' + text.mid(QDir::homePath().size());
        }
        menu->addAction(text.replace(u'&', u"&&"_s), this, [this, path] { parts_.traces.open(path); });
    }
    if (recent.isEmpty()) {
        menu->addAction(u"No Recent Files"_s)->setEnabled(false);
        return;
    }
    menu->addSeparator();
    menu->addAction(u"Clear List"_s, this, [this] { settings_.clearRecent(); });
}

void MainMenu::fillFrom(QMenu* menu, QComboBox& box) {
    connect(menu, &QMenu::aboutToShow, this, [this, menu, &box] {
        empty_menu(*menu);
        for (int i = 0; i < box.count(); ++i) {
            QAction* action = menu->addAction(box.itemText(i).replace(u'&', u"&&"_s), this, [&box, i] {
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
    connect(palette, &CommandPalette::findWanted, text_, &TextPanel::findText);
    palette->move(window_->mapToGlobal(QPoint((window_->width() - palette->width()) / 2, 60)));
    palette->show();
}

void MainMenu::showShortcuts() {
    QString text = u"### Keyboard Shortcuts\n\n| in the menus | |\n| --- | --- |\n"_s;
    for (const Command& command : commands_of(top_.menus().actions())) {
        if (command.action && !command.action->shortcut().isEmpty()) {
            text += u"| %1 | %2 |\n"_s.arg(command.text,
                                           command.action->shortcut().toString(QKeySequence::NativeText));
        }
    }
    show_panel_help({{}, {}, text + QString::fromUtf8(keys_outside_of_menus)}, &top_, theme_);
}

void MainMenu::showAbout() {
    QMessageBox::about(window_, u"About Ponderscope"_s,
                       u"<h3>Ponderscope</h3><p>An instrument for language models that decide how long to "
                       "think about each "
                       "token.</p><p>%1</p><p>Licence: GPL-3.0-or-later</p>"_s.arg(
                           version_text().toHtmlEscaped().replace(u'\n', u"<br>"_s)));
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
        show_panel_help(*panel_help(u"Text"_s), text_, theme_);
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
                        ? u"Copied the command: %1"_s.arg(command.text.section(u'\n', 0, 0))
                        : u"Copied Python code that reads these numbers (import ponderscope)."_s,
                    MessageBar::Kind::success);
}

void MainMenu::showTextMenu(qint64 token, const QPoint& place) {
    auto* menu = new QMenu(window_);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    const auto block = text_->view().sequence();
    if (block && token >= 0 && token < static_cast<qint64>(block->tokens.size())) {
        if (text_->view().span().contains(token)) { // a click in the span keeps the span
            text_->spanBar().addActions(*menu);
        } else {
            selection_.setToken(token);
            parts_.whatIf.fillWhatIf(*menu, token);
        }
        menu->addSeparator();
        const int id = block->tokens.id[static_cast<std::size_t>(token)];
        menu->addAction(u"Find All Occurrences of This Token"_s, this,
                        [this, id] { text_->findText(u"id = %1"_s.arg(id)); });
        menu->addAction(u"Bookmark"_s, &text_->spanBar(), &SpanBar::toggleBookmark);
        menu->addAction(u"Add Note…"_s, this, [this] { text_->spanBar().askForLabel(note_annotation); });
        menu->addAction(u"Copy Numbers"_s, this,
                        [this, token] { QApplication::clipboard()->setText(text_->view().describe(token)); });
    } else {
        menu->addAction(u"Find…"_s, text_, &TextPanel::find);
    }
    menu->addAction(u"Copy as Command"_s, this, [this] { copyCommand(text_); });
    menu->addSeparator();
    menu->addAction(u"Think from Here…"_s, this, [this, token, block] {
        // The text up to this token becomes the prompt.
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
