// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/record_dialog.h"
#include "app/desktop/top_bar.h"
#include "tests/app/desktop/desktop_stage.h"
#include "views/figure/export_dialog.h"
#include "views/figure/figure_file.h"
#include "views/figure/figure_panel.h"
#include "views/library/library_panel.h"
#include "views/policy/policy_lab.h"
#include "views/text/find_bar.h"
#include "views/text/span_bar.h"

using namespace Qt::StringLiterals;
using namespace ponderscope;

using testing::Stage;

namespace {

/// Runs the program; its exit code (-1: it crashed or did not end) and what it says on stderr.
std::pair<int, QByteArray>
run(const QStringList& arguments,
    const QProcessEnvironment& environment = QProcessEnvironment::systemEnvironment()) {
    QProcess process;
    process.setProcessEnvironment(environment);
    process.start(QStringLiteral(PONDERSCOPE_DESKTOP_PROGRAM), arguments);
    const bool ended = process.waitForFinished(60'000) && process.exitStatus() == QProcess::NormalExit;
    return {ended ? process.exitCode() : -1, process.readAllStandardError()};
}

} // namespace

class DesktopWindowTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void aDroppedTraceOpens() {
        Stage stage;
        stage.window.show();
        const QString path = stage.make(u"dropped.ponder"_s);
        stage.drop({QUrl::fromLocalFile(path)});
        QVERIFY(stage.settle());
        QCOMPARE(stage.window.selection().runA().trace, path);
        QVERIFY(stage.window.selection().runB().isValid()); // another run over the same text
        QVERIFY(stage.window.text().view().sequence());
        QVERIFY(stage.window.statusText().contains(u"400 tokens"_s));
        QVERIFY2(stage.window.statusText().contains(u" over 399 predicted"_s),
                 qPrintable(stage.window.statusText()));
        QCOMPARE(stage.window.windowTitle(), u"dropped.ponder"_s);
        QVERIFY(stage.settings.recent().contains(path));
        QVERIFY(stage.window.errors().isEmpty());
    }

    void aDroppedFolderOpensTheRunDialog() {
        Stage stage;
        stage.window.show();
        const QString folder = stage.folder.filePath(u"model"_s);
        QVERIFY(QDir().mkpath(folder));
        stage.drop({QUrl::fromLocalFile(folder)});
        QVERIFY(stage.window.runs().recordDialog() != nullptr);
        QCOMPARE(stage.window.runs().recordDialog()->request().checkpoint, folder);
        QVERIFY(stage.window.runs().recordDialog()->problem().contains(u"config.json"_s));
        // What the engine refuses can be changed and started again.
        stage.write(u"model/config.json"_s, {});
        stage.window.runs().recorder().setProgram(stage.program(
            u"engine.sh"_s, "echo 'ponderscope: it fits looped and pause. [input]' >&2\nexit 2\n"));
        RecordRequest request = stage.window.runs().recordDialog()->request();
        request.name = u"mine"_s;
        stage.window.runs().recordDialog()->setRequest(request);
        stage.window.runs().recordDialog()->accept();
        QVERIFY(testing::says(stage.window, "recording.refused", u"it fits looped and pause."_s));
        QTRY_VERIFY(stage.window.runs().recordDialog() != nullptr);
        QCOMPARE(stage.window.runs().recordDialog()->request().name, u"mine"_s);
        stage.window.runs().recordDialog()->reject();
    }

    void messagesMoveNothingAndSuccessGoesByItself() {
        Stage stage;
        stage.window.resize(1200, 800);
        QVERIFY(stage.shows(stage.make(u"said.ponder"_s)));
        MessageBar& bar = stage.window.messages();
        bar.clear();
        const auto place = [&] { return stage.window.text().mapTo(&stage.window, QPoint()); };
        const QPoint before = place();
        const QSize size = stage.window.text().size();
        bar.setSuccessTime(200);
        bar.show("one", u"Copied one"_s, MessageBar::Kind::success);
        bar.show("two", u"Copied two"_s, MessageBar::Kind::success);
        QCOMPARE(bar.ids(), QStringList{u"two"_s}); // one at a time
        QCOMPARE(bar.kind(), MessageBar::Kind::success);
        QVERIFY(bar.isVisible());
        QTest::qWait(30);
        QCOMPARE(place(), before);
        QCOMPARE(stage.window.text().size(), size);
        QTRY_VERIFY(!bar.isVisible());
        // An error stays, and keeps its colour when something else succeeds.
        bar.show("failed", u"It failed."_s);
        bar.show("three", u"Copied three"_s, MessageBar::Kind::success);
        QCOMPARE(bar.kind(), MessageBar::Kind::error);
        QTRY_COMPARE(bar.ids(), QStringList{u"failed"_s});
        QVERIFY(bar.isVisible());
        QVERIFY(stage.window.rect().contains(bar.geometry()));
        bar.clear();
        // Not under the pointer: a second click would meet its ×.
        QCursor::setPos(stage.window.mapToGlobal(QPoint(600, 740)));
        bar.show("four", u"Copied four"_s, MessageBar::Kind::success);
        if (stage.window.mapFromGlobal(QCursor::pos()) == QPoint(600, 740)) {
            QVERIFY(!bar.geometry().contains(600, 740));
        }
    }

    void theSizeOfTheTextIsKeptHoweverItIsChanged() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(u"size.ponder"_s)));
        stage.window.text().zoomIn();
        QCOMPARE(stage.settings.textSize(), stage.theme.textSize());
        const int before = stage.theme.textSize();
        QWidget* viewport = stage.window.text().view().viewport();
        QWheelEvent turn(QPointF(40, 40), viewport->mapToGlobal(QPointF(40, 40)), {}, QPoint(0, 240),
                         Qt::NoButton, Qt::ControlModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(viewport, &turn);
        QCOMPARE(stage.theme.textSize(), before + 2);
        QCOMPARE(stage.settings.textSize(), before + 2);
    }

    void aNoteIsWrittenByKeyboard() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(u"note.ponder"_s)));
        TextView& view = stage.window.text().view();
        SpanBar& bar = stage.window.text().spanBar();
        stage.window.selection().setToken(7);
        QTest::keyClick(&stage.window, Qt::Key_B, Qt::ControlModifier);
        QTRY_COMPARE(view.noteAt(7), u"bookmark"_s);
        stage.window.selection().setToken(5);
        const auto picture = [&] { return view.viewport()->grab().toImage(); };
        const QImage before = picture();
        const auto write = [&](const QString& text, Qt::Key key) {
            QTimer::singleShot(0, [&] {
                auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
                QVERIFY(dialog != nullptr);
                auto* edit = dialog->findChildren<QComboBox*>().at(1)->lineEdit();
                edit->setText(text);
                QTest::keyClick(edit, key);
            });
            bar.askForLabel(note_annotation);
        };
        write(u"hard without context"_s, Qt::Key_Return);
        QTRY_COMPARE(view.noteAt(5), u"hard without context"_s);
        QVERIFY(picture() != before); // a flag
        write(u"lost"_s, Qt::Key_Escape);
        bar.toggleBookmark(); // does not replace a note
        QVERIFY(!bar.isBusy());
        stage.window.text().listNotes();
        QCOMPARE(stage.window.text().findBar().hits(), (std::vector<qint64>{5, 7}));
        stage.window.selection().setToken(7);
        bar.toggleBookmark(); // takes it away
        QTRY_VERIFY(view.noteAt(7).isEmpty());
        QCOMPARE(view.noteAt(5), u"hard without context"_s);
    }

    void wrongPathsAreSentencesNotBoxes() {
        Stage stage;
        stage.window.show();
        stage.window.open(u"/no/such.ponder"_s);
        QCOMPARE(stage.window.messages().ids(), QStringList{u"trace.unreadable"_s});
        QVERIFY(stage.window.messages().isVisible());
        stage.window.open(stage.write(u"words.ponder"_s, "only words"));
        QTRY_COMPARE(stage.window.messages().sentences().size(), 2);
        QVERIFY(QApplication::activeModalWidget() == nullptr);
        stage.window.messages().clear();
        QVERIFY(!stage.window.messages().isVisible());
    }

    void oneSelectionForAll() {
        Stage stage;
        const QString path = stage.make(u"linked.ponder"_s, {.sequences = 3, .tokens = 500});
        stage.window.resize(1300, 850);
        QVERIFY(stage.shows(path));
        stage.window.selection().setSequence(2);
        QTRY_VERIFY(stage.window.text().view().sequence() &&
                    stage.window.text().view().sequence()->sequence == 2);
        QVERIFY(stage.settle());
        QTest::mouseClick(stage.window.text().view().viewport(), Qt::LeftButton, {},
                          stage.window.text().view().tokenRect(9).center().toPoint());
        QCOMPARE(stage.window.selection().token(), 9);
        // The selectors on top change A and B for all.
        const RunKey a = stage.window.selection().runA();
        const RunKey b = stage.window.selection().runB();
        QComboBox& box = stage.window.topBar().runA();
        QCOMPARE(box.currentData().value<RunKey>(), a);
        for (int i = 0; i < box.count(); ++i) {
            if (box.itemData(i).value<RunKey>() == b) {
                box.setCurrentIndex(i);
                Q_EMIT box.activated(i);
            }
        }
        QCOMPARE(stage.window.selection().runA(), b);
        QCOMPARE(stage.window.selection().runB(), a);
        QVERIFY(!stage.window.grab().isNull());
    }

    void theViewFillsWhileARecordingRuns() {
        Stage stage;
        const QString path =
            stage.make(u"growing.ponder"_s, {.sequences = 1, .tokens = 200, .secondRun = false});
        QVERIFY(stage.shows(path));
        const RunKey before = stage.window.selection().runA();
        // The engine's part: this process adds a run while a stand-in speaks the protocol.
        RecordRequest request;
        request.checkpoint = stage.folder.path();
        request.trace = path;
        Recorder& recorder = stage.window.runs().recorder();
        recorder.setProgram(stage.program(u"engine.sh"_s,
                                          "echo '{\"activity\":\"recording\",\"done\":5,\"total\":10}' >&2\n"
                                          "until [ -e \"$0.over\" ]; do sleep 0.05; done\n"));
        recorder.start(request);
        QTRY_VERIFY(recorder.progress().done == 5);
        testing::write_sample_trace(path.toStdString(), {.sequences = 1, .tokens = 200, .secondRun = false});
        QTRY_VERIFY(stage.window.selection().runA() != before);
        QCOMPARE(stage.window.selection().runB(), before); // the same text: compared at once
        QVERIFY(recorder.isRunning());
        stage.write(u"engine.sh.over"_s, {});
        QTRY_VERIFY(!recorder.isRunning());
    }

    void aFigureIsExportedFromTheMenu() {
        Stage stage;
        const QString path = stage.make(u"figure.ponder"_s);
        stage.window.show();
        stage.window.figures().exportFigure(figure::FigureKind::token_text);
        QVERIFY(stage.window.figures().dialog() == nullptr); // nothing is open
        QVERIFY(stage.shows(path));
        stage.window.text().setQuantity(Quantity::entropy);
        stage.window.figures().exportFigure(figure::FigureKind::token_text);
        ExportDialog* dialog = stage.window.figures().dialog();
        QVERIFY(dialog != nullptr && dialog->isVisible());
        QTRY_VERIFY(dialog->figure());
        QCOMPARE(dialog->spec().quantity, figure::TokenColour(Quantity::entropy));
        // What it begins with is what is on the screen.
        QVERIFY(dialog->spec().tokens.has_value());
        QCOMPARE((*dialog->spec().tokens)[1], stage.window.text().view().endVisibleToken());
        dialog->file()->setFile(stage.folder.filePath(u"words.svg"_s));
        auto* button = dialog->findChild<QDialogButtonBox*>();
        for (QAbstractButton* one : button->buttons()) {
            if (button->buttonRole(one) == QDialogButtonBox::AcceptRole) {
                QTest::mouseClick(one, Qt::LeftButton);
            }
        }
        for (const QString& name : {u"words.svg"_s, u"words.csv"_s, u"words.json"_s}) {
            QVERIFY2(QFile::exists(stage.folder.filePath(name)), qPrintable(name));
        }
        QVERIFY(
            stage.window.messages().has("figure.written", u"ponderscope figure words.json -o words.svg"_s));
        QVERIFY(dialog->isVisible()); // for the next one
        const auto panels = stage.window.findChildren<FigurePanel*>().size();
        Q_EMIT dialog->dockWanted(dialog->spec());
        const auto docked = stage.window.findChildren<FigurePanel*>();
        QCOMPARE(docked.size(), panels + 1);
        QCOMPARE(docked.last()->spec().kind, figure::FigureKind::token_text);
        dialog->close();
        QTRY_VERIFY(stage.window.figures().dialog() == nullptr);
    }

    void aMenuInsideASpanKeepsIt() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(u"span.ponder"_s)));
        TextView& view = stage.window.text().view();
        QTRY_VERIFY(view.sequence() != nullptr);
        view.setSpan({7, 20});
        for (const qint64 token : {9, 40}) {
            Q_EMIT view.menuWanted(token, view.mapToGlobal(QPoint(50, 50)));
            QVERIFY(QApplication::activePopupWidget() != nullptr);
            QApplication::activePopupWidget()->close();
            QCOMPARE(view.span().isEmpty(), token == 40);
        }
        QCOMPARE(stage.window.selection().token(), 40);
    }

    void theLabColoursTheTextWhileItIsOnTop() {
        Stage stage;
        const QString path = stage.make(u"lab.ponder"_s);
        stage.window.resize(1300, 900);
        QVERIFY(stage.shows(path));
        QVERIFY(!stage.window.text().view().showsReplay()); // Compare is on top
        QVERIFY(stage.window.raisePanel(u"lab"_s));
        QVERIFY(!stage.window.raisePanel(u"nothing"_s));
        QTRY_VERIFY(stage.window.text().view().showsReplay());
        QVERIFY(stage.window.text().view().values().replay.contains(u"learned"_s));
        stage.window.session().present(); // hides the panels, not the colours
        QVERIFY(stage.window.text().view().showsReplay());
        stage.window.session().present();
        QTRY_VERIFY(stage.window.text().view().showsReplay());
        // The box says what colours. Another choice, and the difference, take the place of the replay.
        PolicyLab& lab = stage.window.panel<PolicyLab>();
        QComboBox& box = stage.window.text().colourBox();
        QCOMPARE(box.currentText(), u"Steps (replay)"_s);
        box.setCurrentIndex(box.findText(u"NLL"_s));
        QVERIFY(!stage.window.text().view().showsReplay() && !lab.coloursText());
        QVERIFY(box.findText(u"Steps (replay)"_s) < 0);
        lab.setColoursText(true);
        QCOMPARE(box.currentText(), u"Steps (replay)"_s);
        stage.window.text().setDifference(true);
        QVERIFY(!lab.coloursText() && box.currentText() == u"NLL"_s);
        lab.setColoursText(true);
        QVERIFY(stage.window.raisePanel(u"halting"_s));
        QTRY_VERIFY(!stage.window.text().view().showsReplay());
        // A token type is found in the text.
        auto* halting = stage.window.findChild<QDockWidget*>(u"halting"_s)->findChild<FigurePanel*>();
        QVERIFY(halting != nullptr);
        const std::int32_t id = stage.window.text().view().sequence()->tokens.id.back();
        Q_EMIT halting->linkChosen(u"type:%1"_s.arg(id));
        QTRY_VERIFY(stage.window.selection().token() >= 0);
        const auto shown = stage.window.text().view().sequence();
        QCOMPARE(shown->tokens.id[static_cast<std::size_t>(stage.window.selection().token())], id);
    }

    void screenshotsNeedNoDisplay_data() {
        QTest::addColumn<QString>("theme");
        QTest::newRow("light") << u"light"_s;
        QTest::newRow("dark") << u"dark"_s;
    }
    void screenshotsNeedNoDisplay() {
        QFETCH(QString, theme);
        QTemporaryDir folder;
        const QString trace = folder.filePath(u"shot.ponder"_s);
        testing::write_sample_trace(trace.toStdString(), {.sequences = 2, .tokens = 400});
        const QString picture = folder.filePath(u"window.png"_s);
        const auto [code, said] = run({u"--screenshot"_s, picture, u"--size"_s, u"1200x800"_s, u"--theme"_s,
                                       theme, u"--select-token"_s, u"5"_s, trace});
        QVERIFY2(code == 0, said.constData());
        const QImage image(picture);
        QCOMPARE(image.size(), QSize(1200, 800));
        QCOMPARE(image.pixelColor(600, 4).lightness() > 128, theme == u"light"_s);
        // The selected token's outline is on it.
        const QRgb accent =
            (theme == u"light"_s ? Theme(Appearance::light) : Theme(Appearance::dark)).colours().a.rgb();
        int found = 0;
        for (int x = 260; x < 900; ++x) {
            for (int y = 90; y < 200; ++y) {
                found += image.pixel(x, y) == accent ? 1 : 0;
            }
        }
        QVERIFY2(found > 40, qPrintable(QString::number(found)));
    }

    void aScreenshotOfNothingSaysSo() {
        QTemporaryDir folder;
        const auto [code, said] = run({u"--screenshot"_s, folder.filePath(u"w.png"_s), u"/no/such.ponder"_s});
        QCOMPARE(code, 2);
        QCOMPARE(said.count("ponderscope-desktop: "), 1); // Qt may add what it thinks of the environment
        QVERIFY(said.contains("/no/such.ponder"));
        QVERIFY(!QFile::exists(folder.filePath(u"w.png"_s)));
    }

    void withoutADisplayItSaysSo_data() {
        QTest::addColumn<QString>("display");
        QTest::addColumn<QString>("platform");
        QTest::addColumn<QByteArray>("reason");
        QTest::newRow("none") << QString() << QString() << QByteArray("there is no display");
        QTest::newRow("one that does not answer") << u":4711"_s << u"xcb"_s << QByteArray("display :4711");
        QTest::newRow("a platform that is not there")
            << u":4711"_s << u"nosuch"_s << QByteArray("\"nosuch\"");
    }
    void withoutADisplayItSaysSo() {
        QFETCH(QString, display);
        QFETCH(QString, platform);
        QFETCH(QByteArray, reason);
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.remove(u"WAYLAND_DISPLAY"_s);
        environment.insert(u"DISPLAY"_s, display);
        environment.insert(u"QT_QPA_PLATFORM"_s, platform);
        const auto [code, said] = run({}, environment);
        QCOMPARE(code, 69); // `run` goes on without a window
        QVERIFY2(said.contains(reason), said.constData());
        QCOMPARE(said.count('\n'), 1);
    }
};

QTEST_MAIN(DesktopWindowTest)
#include "desktop_window_test.moc"
