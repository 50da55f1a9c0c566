// SPDX-License-Identifier: GPL-3.0-or-later
// Habits: undo and redo, sessions, the command palette, names for screen readers, several windows.
#include "app/desktop/command_palette.h"
#include "app/desktop/panels.h"
#include "app/desktop/top_bar.h"
#include "core/trace/reader.h"
#include "tests/app/desktop/desktop_stage.h"
#include "views/text/find_bar.h"
#include "views/text/legend.h"

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::is_any_of;
using testing::Stage;
using testing::write_sample_trace;

namespace {

/// What a screen reader would say of a control.
QString spoken(QWidget* widget) {
    QAccessibleInterface* interface = QAccessible::queryAccessibleInterface(widget);
    QString name = interface == nullptr ? QString() : interface->text(QAccessible::Name);
    return name.isEmpty() ? widget->accessibleName() : name;
}

} // namespace

class DesktopHabitsTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void undoGoesBackToWhatWasSelectedSearchedAndZoomed() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(u"undo.ponder"_s)));
        QTRY_VERIFY(!stage.window.session().canUndo());
        QSignalSpy recorded(&stage.window.session(), &SessionState::historyChanged);
        stage.window.selection().setToken(5);
        QVERIFY(recorded.wait());
        stage.window.text().findText(u"nll > 3"_s);
        const qint64 found = stage.window.selection().token();
        QVERIFY(recorded.wait());
        stage.window.text().setZoom(TextZoom::corpus);
        QVERIFY(recorded.wait());
        stage.window.selection().setSequence(1); // undone before it has settled
        QTest::keyClick(&stage.window, Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(stage.window.selection().sequence(), 0);
        QCOMPARE(stage.window.text().zoom(), TextZoom::corpus);
        stage.window.session().undo();
        QCOMPARE(stage.window.text().zoom(), TextZoom::text);
        QCOMPARE(stage.window.text().findBar().query(), u"nll > 3"_s);
        QCOMPARE(stage.window.selection().token(), found);
        stage.window.session().undo();
        QVERIFY(stage.window.text().findBar().query().isEmpty());
        QCOMPARE(stage.window.selection().token(), 5);
        stage.window.session().redo();
        QCOMPARE(stage.window.text().findBar().query(), u"nll > 3"_s);
        // A new view discards what was undone. The history does not grow for ever.
        QVERIFY(stage.window.session().canRedo());
        for (int view = 0; view < 210; ++view) {
            stage.window.selection().setToken(view);
            stage.window.session().undo(); // remembers it at once
            stage.window.session().redo();
        }
        QVERIFY(!stage.window.session().canRedo());
        int steps = 0;
        for (; stage.window.session().canUndo(); ++steps) {
            stage.window.session().undo();
        }
        QVERIFY(steps < 200);
    }

    void aSessionRemembers() {
        Stage stage;
        const QString path = stage.make(u"kept.ponder"_s, {.sequences = 3, .tokens = 200});
        const QString file = stage.folder.filePath(u"talk.ponder-session"_s);
        stage.window.show();
        QVERIFY(stage.window.data().traces().isEmpty());
        QVERIFY(stage.shows(path + u"#vanilla-1m"_s));
        stage.window.selection().setSequence(2);
        stage.window.selection().setToken(17);
        stage.window.text().setQuantity(Quantity::entropy);
        stage.window.text().setAnnotation(u"score"_s);
        stage.window.text().setBars(Quantity::rank);
        stage.window.text().view().ranges().hold(u"nll"_s, std::array{1.0, 4.5});
        stage.window.findChild<QDockWidget*>(u"compare"_s)->hide();
        QVERIFY(stage.window.session().saveSessionTo(file));
        const ViewState before = stage.window.session().viewState();

        Theme theme(Appearance::light);
        MainWindow other(theme, stage.settings);
        other.show();
        other.open(file);
        QTRY_COMPARE(other.selection().token(), 17);
        QTRY_VERIFY(!other.isBusy());
        QVERIFY(other.session().viewState() == before);
        QCOMPARE(other.text().view().annotation(), u"score"_s);
        QCOMPARE((*other.text().view().ranges().held(u"nll"_s))[1], 4.5);
        QVERIFY(!other.findChild<QDockWidget*>(u"compare"_s)->isVisible());
        // The file names its trace beside it: both can be moved together.
        QVERIFY(!Stage::read(file).contains(stage.folder.path().toUtf8()));
        // A session whose trace is gone says so, and shows what is left.
        QVERIFY(QFile::remove(path));
        MainWindow third(theme, stage.settings);
        third.show();
        third.open(file);
        QCOMPARE(third.errors().size(), 1);
    }

    void sessionsFromStrangersAreChecked() {
        Stage stage;
        const auto load = [&](const QByteArray& bytes, QString& problem) {
            return load_session(stage.write(u"s.ponder-session"_s, bytes), problem);
        };
        for (const QByteArray& wrong :
             {QByteArray(), QByteArray("words"), QByteArray("[]"), QByteArray("{\"ponderscope_session\":1}"),
              QByteArray("{\"ponderscope_session\":3}"), QByteArray("{}"), QByteArray(8 << 20, 'x')}) {
            QString problem;
            QVERIFY(!load(wrong, problem));
            QVERIFY(problem.contains(u"s.ponder-session"_s));
        }
        QString problem;
        const auto session =
            load("{\"ponderscope_session\":2,\"traces\":[1,\"\",\"a.ponder\"],\"sequence\":-7,\"token\":-9,"
                 "\"quantity\":99,\"bars\":-4,\"zoom\":77,\"text_size\":100000,\"annotation\":\"<b>\","
                 "\"layout\":\"!!!\"}",
                 problem);
        QVERIFY2(session.has_value(), qPrintable(problem));
        QCOMPARE(session->traces.size(), 1);
        QCOMPARE(session->view.sequence, 0);
        QCOMPARE(session->view.token, -1);
        QCOMPARE(session->view.look.quantity, Quantity::nll);
        QVERIFY(session->view.look.annotation.isEmpty());
        QCOMPARE(session->view.zoom, TextZoom::text);
        QCOMPARE(session->view.textSize, 19);
        stage.window.open(stage.folder.filePath(u"absent.ponder-session"_s));
        QCOMPARE(stage.window.errors().size(), 1);
        // One that cannot be written is said.
        QVERIFY(!stage.window.session().saveSessionTo(u"/no/such/folder/x.ponder-session"_s));
        QVERIFY(stage.window.messages().has("session.failed", u"/no/such/folder"_s));
        QVERIFY(!stage.window.session().saveSessionTo(stage.folder.path())); // a folder
    }

    void thePaletteFindsEveryAction() {
        QVERIFY(command_score(u"fnd"_s, u"Find a token"_s) > 0);
        QVERIFY(command_score(u"xyz"_s, u"Find a token"_s) < 0);
        QVERIFY(command_score(u"ft"_s, u"Find a token"_s) > command_score(u"ft"_s, u"Shifted"_s));
        Stage stage;
        QVERIFY(stage.shows(stage.make(u"box.ponder"_s)));
        const auto shown = [] { return qobject_cast<CommandPalette*>(QApplication::activePopupWidget()); };
        const auto type = [&](const QString& line) {
            stage.window.menu().showPalette();
            shown()->edit().setText(line);
            return shown();
        };
        QTest::keyClick(&stage.window, Qt::Key_K, Qt::ControlModifier);
        CommandPalette* palette = shown();
        QVERIFY(palette != nullptr);
        QVERIFY(palette->list().topLevelItemCount() > 40);
        QTest::keyClicks(&palette->edit(), u"map of all seq"_s);
        QCOMPARE(palette->list().topLevelItem(0)->text(2), u"Ctrl+3"_s);
        QVERIFY(!palette->grab().isNull());
        QTest::keyClick(&palette->edit(), Qt::Key_Down);
        QTest::keyClick(&palette->edit(), Qt::Key_Up);
        QTest::keyClick(&palette->edit(), Qt::Key_Return);
        QTRY_COMPARE(stage.window.text().zoom(), TextZoom::corpus);
        palette = type(u"colour by rank"_s);
        QTest::keyClick(&palette->edit(), Qt::Key_Return);
        QTRY_COMPARE(stage.window.text().view().quantity(), Quantity::rank);
        palette = type(u"show as a vanilla-1m"_s);
        QTest::keyClick(&palette->edit(), Qt::Key_Return);
        QTRY_COMPARE(stage.window.data().run(stage.window.selection().runA())->name, "vanilla-1m");
        // What is no command can be looked for: the last row.
        palette = type(u"nll > 3"_s);
        const int rows = palette->list().topLevelItemCount();
        QCOMPARE(palette->list().topLevelItem(rows - 1)->text(0), u"Find “nll > 3” in the text"_s);
        for (int row = 1; row < rows; ++row) {
            QTest::keyClick(&palette->edit(), Qt::Key_Down);
        }
        QTest::keyClick(&palette->edit(), Qt::Key_Return);
        QTRY_COMPARE(stage.window.text().findBar().query(), u"nll > 3"_s);
    }

    void noShortcutIsGivenTwice() {
        Stage stage;
        stage.window.show();
        QSet<QString> seen;
        for (const Command& command : commands_of(stage.window.topBar().menus().actions())) {
            for (const QKeySequence& keys : command.action->shortcuts()) {
                QVERIFY2(!seen.contains(keys.toString()), qPrintable(keys.toString() + u' ' + command.text));
                seen.insert(keys.toString());
            }
        }
        QVERIFY(seen.size() > 20);
        stage.window.menu().showShortcuts();
        QWidget* sheet = QApplication::activePopupWidget();
        QVERIFY(sheet != nullptr);
        const QString listed = sheet->findChild<QLabel*>()->text();
        QVERIFY(listed.count(u'\n') > 30 && listed.contains(u"| Ctrl+K |"_s));
        sheet->close();
    }

    void everyControlHasAName() {
        Stage stage;
        QVERIFY(
            stage.shows(stage.make(u"names.ponder"_s, {.sequences = 2, .tokens = 200, .withDepth = true})));
        stage.window.runs().showRecordDialog();
        stage.window.greeting().showWelcome();
        for (const Panel& panel : panels()) {
            stage.window.raisePanel(QString::fromLatin1(panel.name));
        }
        QStringList nameless;
        const QList<QWidget*> widgets = stage.window.findChildren<QWidget*>();
        for (QWidget* widget : widgets) {
            const bool control =
                is_any_of(*widget, {"QAbstractButton", "QComboBox", "QLineEdit", "QPlainTextEdit",
                                    "QAbstractSpinBox", "QAbstractItemView", "QSlider", "QDial"}) ||
                widget->focusPolicy() == Qt::StrongFocus;
            // Parts of a control, and what Qt makes for itself, are spoken of with the whole.
            bool part = widget->objectName().startsWith(QLatin1String("qt_"));
            for (QWidget* at = widget->parentWidget(); at != nullptr; at = at->parentWidget()) {
                part = part || is_any_of(*at, {"QComboBox", "QAbstractSpinBox", "QLineEdit",
                                               "QAbstractItemView", "QMenu", "QMenuBar", "QTabBar"});
            }
            if (control && !part && spoken(widget).isEmpty()) {
                nameless << u"%1 in %2"_s.arg(
                    QLatin1String(widget->metaObject()->className()),
                    QLatin1String(widget->parentWidget()->metaObject()->className()));
            }
        }
        QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(u"; "_s)));
    }

    void settingsKeepTheAppearance() {
        Stage stage;
        stage.settings.setAppearance(Appearance::contrast);
        QCOMPARE(stage.settings.appearance(), Appearance::contrast);
        stage.settings.setMagnitude(MagnitudeMap::magma);
        QCOMPARE(stage.settings.magnitude(), MagnitudeMap::magma);
    }

    void windowsStandBesideEachOther() {
        Stage stage;
        const QString path = stage.make(u"first.ponder"_s);
        QVERIFY(stage.shows(path));
        stage.window.newWindow();
        MainWindow* second = nullptr;
        for (QWidget* widget : QApplication::topLevelWidgets()) {
            if (auto* window = qobject_cast<MainWindow*>(widget);
                window != nullptr && window != &stage.window) {
                second = window;
            }
        }
        QVERIFY(second != nullptr);
        QVERIFY(second->data().traces().isEmpty()); // traces of its own
        second->open(path);
        QTRY_VERIFY(second->selection().runA().isValid());
        second->selection().setToken(3);
        QVERIFY(stage.window.selection().token() != 3);
        second->close();
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        QVERIFY(stage.window.selection().runA().isValid());
    }

    void presentsWhatWasKept() {
        Stage stage;
        stage.window.resize(1200, 800);
        stage.window.docks().arrange();
        stage.window.show();
        stage.window.session().present();
        QVERIFY2(!stage.window.session().isPresenting(), "there is nothing to present");
        QVERIFY(stage.shows(stage.make(u"talk.ponder"_s)));
        const QString trace = stage.window.selection().runA().trace;
        stage.window.selection().setRunA({trace, 1});
        stage.window.selection().setToken(7);
        stage.window.session().keepView();
        stage.window.text().setQuantity(Quantity::entropy);
        stage.window.selection().setRunA({trace, 2});
        stage.window.docks().maximise(stage.window.findChild<QDockWidget*>(u"heatmap"_s));
        stage.window.session().keepView();
        QCOMPARE(stage.window.session().views().size(), 2U);
        QCOMPARE(stage.window.session().views()[1].panel, u"heatmap"_s);
        stage.window.docks().maximise(nullptr);
        QVERIFY(stage.settle());
        const ViewState before = stage.window.session().viewState();
        const QByteArray layout = stage.window.saveState();
        const int letters = stage.theme.textSize();

        stage.window.session().present();
        QVERIFY(stage.window.session().isPresenting() && stage.window.isFullScreen());
        // What the first screen shows, in whole letters.
        const auto* caption = stage.window.findChild<QLabel*>(u"caption"_s);
        QTest::qWait(30);
        QVERIFY(caption->text().contains(u"A: vanilla-1m"_s) && caption->text().contains(u"Entropy"_s));
        QVERIFY2(caption->height() >= QFontMetrics(caption->font()).height(),
                 qPrintable(QString::number(caption->height())));
        QVERIFY(stage.window.statusBar()->height() >= caption->height());
        QVERIFY(stage.window.text().legend().height() > 34); // its letters have grown
        QVERIFY(stage.theme.textSize() >= 32);
        QVERIFY(!stage.window.topBar().isVisible());
        for (const QDockWidget* dock : stage.window.findChildren<QDockWidget*>()) {
            QVERIFY2(!dock->isVisible(), qPrintable(dock->objectName()));
        }
        QVERIFY(stage.window.text().isVisible());
        const auto press = [&](Qt::Key key) {
            QTest::keyClick(&stage.window, key);
            QVERIFY(stage.settle());
        };
        press(Qt::Key_PageDown);
        QCOMPARE(stage.window.selection().runA().run, qint64(1));
        QCOMPARE(stage.window.selection().token(), qint64(7));
        QCOMPARE(stage.window.text().view().quantity(), Quantity::nll);
        press(Qt::Key_PageDown);
        QCOMPARE(stage.window.selection().runA().run, qint64(2));
        QVERIFY(!stage.window.text().isVisible());
        QVERIFY(stage.window.findChild<QDockWidget*>(u"heatmap"_s)->isVisible());
        press(Qt::Key_PageDown); // there is no third
        QCOMPARE(stage.window.selection().runA().run, qint64(2));
        press(Qt::Key_PageUp);
        QVERIFY(stage.window.text().isVisible() && stage.theme.textSize() >= 32);
        press(Qt::Key_Escape);
        QVERIFY(!stage.window.session().isPresenting() && !stage.window.isFullScreen());
        QVERIFY(stage.window.session().viewState() == before);
        QCOMPARE(stage.theme.textSize(), letters);
        QCOMPARE(stage.settings.textSize(), letters);
        QTRY_COMPARE(stage.window.saveState(), layout);
        QVERIFY(stage.window.topBar().isVisible());

        // Sessions bring them back.
        const QString file = stage.folder.filePath(u"talk.ponder-session"_s);
        QVERIFY(stage.window.session().saveSessionTo(file));
        QString problem;
        const auto session = load_session(file, problem);
        QVERIFY2(session.has_value(), qPrintable(problem));
        QVERIFY(session->views == stage.window.session().views());
    }

    void whatLiesInScratchIsAskedFor() {
        Stage stage;
        stage.window.show();
        const QString scratch = stage.window.runs().scratch();
        QVERIFY(QDir().mkpath(QFileInfo(scratch).path()));
        write_sample_trace(scratch.toStdString(), {.sequences = 1, .tokens = 60});
        QVERIFY(stage.shows(scratch));
        QVERIFY(!stage.window.close());
        QVERIFY(stage.window.findChild<QMessageBox*>(u"scratchLeft"_s)->isVisible());
        // Not now.
        QVERIFY(stage.press(u"Cancel"_s));
        QVERIFY(stage.window.isVisible());
        // Kept, and closed once that is done.
        QVERIFY(!stage.window.close());
        QVERIFY(stage.press(u"Save to Trace…"_s));
        const QString kept = stage.folder.filePath(u"kept.ponder"_s);
        QVERIFY(stage.chooseFile(u"keep"_s, kept));
        QTRY_VERIFY(!stage.window.isVisible());
        QCOMPARE(TraceReader::open(kept.toStdString()).runs().size(),
                 TraceReader::open(scratch.toStdString()).runs().size());
        QFile::remove(scratch);
    }
};

QTEST_MAIN(DesktopHabitsTest)
#include "desktop_habits_test.moc"
