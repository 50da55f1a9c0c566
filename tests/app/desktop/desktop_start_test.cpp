// SPDX-License-Identifier: GPL-3.0-or-later
// The first minutes: the welcome page, the samples, help on every panel.
#include "app/desktop/panel_frame.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/panels.h"
#include "app/desktop/record_dialog.h"
#include "app/desktop/samples.h"
#include "core/trace/writer.h"
#include "tests/app/desktop/desktop_stage.h"
#include "views/chart/chart_plot.h"
#include "views/figure/figure_panel.h"

#include <algorithm>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::Stage;

class DesktopStartTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void nothingOpenShowsTheWelcomePage() {
        Stage stage;
        const QString path = stage.make(u"before.ponder"_s);
        stage.settings.addRecent(path);
        stage.window.show();
        QTRY_VERIFY(stage.window.greeting().welcome().isVisible());
        // What was open before is one click away, also by keyboard.
        QTextBrowser& page = stage.window.greeting().welcome();
        QTextCursor recent = page.document()->find(u"before.ponder"_s);
        QVERIFY(recent.charFormat().isAnchor());
        page.setTextCursor(recent);
        QTest::keyClick(&page, Qt::Key_Return);
        QVERIFY(!stage.window.greeting().welcome().isVisible());
        QVERIFY(stage.settle());
        QCOMPARE(stage.window.selection().runA().trace, path);
        stage.window.greeting().showWelcome(); // from the Help menu
        QVERIFY(stage.window.greeting().welcome().isVisible());
        QTest::keyClick(&stage.window.greeting().welcome(), Qt::Key_Escape);
        QVERIFY(!stage.window.greeting().welcome().isVisible());
    }

    void theRecordedSampleIsOpenedAsACopy() {
        Stage stage;
        QVERIFY(QDir(stage.folder.path()).mkpath(u"shipped"_s));
        const QString recorded = stage.make(u"shipped/samples.ponder"_s, {.sequences = 1, .tokens = 60});
        const QDir program = QFileInfo(recorded).dir();
        const QStringList shipped = program.entryList(QDir::Files);
        QVERIFY(QFile::setPermissions(recorded, QFile::ReadOwner)); // as it is installed
        const QString own = stage.folder.filePath(u"own"_s);
        QString problem;
        const QString copy = copy_of_recorded(recorded, own, problem);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
        QVERIFY(QFileInfo(copy).dir() == QDir(own));
        QVERIFY(stage.shows(copy));
        // What a user does to it stays in the copy, which is found again.
        stage.window.text().setQuantity(Quantity::nll);
        stage.write(copy + u".annotations"_s, "x");
        QCOMPARE(program.entryList(QDir::Files), shipped);
        QCOMPARE(copy_of_recorded(recorded, own, problem), copy);
        QVERIFY(QFile::exists(copy + u".annotations"_s));
        // A newer sample takes its place, without what belongs to the older one.
        QVERIFY(QFile::setPermissions(recorded, QFile::ReadOwner | QFile::WriteOwner));
        QFile newer(recorded);
        QVERIFY(newer.open(QIODevice::Append));
        QVERIFY(
            newer.setFileTime(QDateTime::currentDateTime().addSecs(60), QFileDevice::FileModificationTime));
        newer.close();
        QCOMPARE(copy_of_recorded(recorded, own, problem), copy);
        QVERIFY(!QFile::exists(copy + u".annotations"_s));
        // A folder that cannot be made is said.
        QVERIFY(copy_of_recorded(recorded, copy + u"/below"_s, problem).isEmpty());
        QVERIFY(!problem.isEmpty());
    }

    void samplesAreFoundFromTheProgramUpwards() {
        const Stage stage;
        for (const QString& name : {u"b-plain"_s, u"broken"_s, u"cabinet/mhc"_s, u"chains/reset"_s}) {
            stage.write(u"sample_models/"_s + name + u"/config.json"_s, "{\"num_hidden");
        }
        stage.write(u"sample_models/texts/passage.txt"_s, "words");
        const QString bin = QFileInfo(stage.write(u"build/release/bin/program"_s, {})).path();
        Samples found = find_samples(bin);
        QCOMPARE(found.checkpoints.size(), 4);
        QVERIFY(found.checkpoints.back().endsWith(u"/sample_models/cabinet/mhc"_s));
        QVERIFY(QFile::exists(found.text) && found.recorded.isEmpty());
        stage.write(u"build/samples/samples.ponder"_s, "x");
        found = find_samples(bin);
        QVERIFY(QFile::exists(found.recorded));
        QVERIFY(find_samples(u"/"_s).checkpoints.isEmpty());
    }

    void whatTheProgramBringsCanBeRecordedAtOnce() {
        Stage stage;
        stage.window.show();
        QTRY_VERIFY(stage.window.greeting().welcome().isVisible());
        if (find_samples().text.isEmpty()) {
            QSKIP("no sample_models above this test program");
        }
        stage.window.runs().showRecordDialog();
        QCOMPARE(stage.window.runs().recordDialog()->request().textFile, find_samples().text);
        stage.window.runs().recordDialog()->close();
    }

    void aDroppedTrainingFolderShowsItsCurves() {
        Stage stage;
        stage.window.show();
        // The checkpoint that lies there too is not what is asked about.
        const QString folder = QFileInfo(stage.write(u"out/config.json"_s, "{}")).path();
        const QString trace = folder + u"/training.ponder"_s;
        {
            TraceWriter writer(trace.toStdString());
            TrainingInfo info;
            info.name = "one";
            const std::int64_t id = writer.begin_training(info, {{"loss", "", "nats", "Loss", ""}});
            writer.put_points(id, {1, 64, 0.5}, {{"loss", 0, 7.5}});
            writer.put_points(id, {2, 128, 1.0}, {{"loss", 0, 7.0}});
            writer.finish();
        }
        stage.drop({QUrl::fromLocalFile(folder)});
        QTRY_VERIFY(stage.window.data().isOpen(trace));
        QVERIFY(stage.window.runs().recordDialog() == nullptr);
        QVERIFY(stage.window.raisePanel(u"training"_s));
        const auto all = stage.window.findChildren<FigurePanel*>();
        const auto view = std::ranges::find_if(all, [](const FigurePanel* one) {
            const figure::FigureSpec spec = one->spec();
            return spec.kind == figure::FigureKind::panels &&
                   spec.panels.front().kind == figure::FigureKind::training_curves;
        });
        QVERIFY(view != all.end());
        QTRY_VERIFY(!(*view)->chart()->chart().empty());
        QCOMPARE((*view)->chart()->chart().series[0].y, (std::vector<double>{7.5, 7.0}));
        QVERIFY(stage.window.errors().isEmpty());
        // A trace without runs is whole for every other view too.
        for (const Panel& panel : panels()) {
            QVERIFY(stage.window.raisePanel(QString::fromLatin1(panel.name)));
            QCoreApplication::processEvents();
        }
        QVERIFY(QTest::qWaitFor([&] { return !stage.window.isBusy(); }, 15'000));
        QVERIFY(stage.window.errors().isEmpty());
    }

    void everyPanelSaysWhatItShowsAndWhatItDoesNot() {
        QStringList titles{u"Text"_s};
        for (const Panel& panel : panels()) {
            titles << QString::fromUtf8(panel.title);
        }
        for (const QString& title : titles) {
            const PanelHelp* help = panel_help(title);
            QVERIFY2(help != nullptr, qPrintable(title));
            QVERIFY2(help->brief.size() > 10, qPrintable(title));
            QVERIFY2(help->text.count(u"\n\n**"_s) == 4, qPrintable(title));
        }
        QCOMPARE(all_panel_help().size(), static_cast<std::size_t>(titles.size()) + 1);
        QVERIFY(panel_help(u"First steps"_s) != nullptr);
    }

    void theQuestionMarkOfAPanelOpensItsHelp() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(u"help.ponder"_s)));
        auto* dock = stage.window.findChild<QDockWidget*>(u"compare"_s);
        auto* title = qobject_cast<DockTitle*>(dock->titleBarWidget());
        QVERIFY(title != nullptr);
        QTest::mouseClick(title->findChildren<QToolButton*>().front(), Qt::LeftButton);
        auto* sheet = QApplication::activePopupWidget();
        QVERIFY(sheet != nullptr);
        QVERIFY(sheet->findChild<QLabel*>()->text().contains(u"bootstrap"_s));
        sheet->close();
        // Float, put back, close, bring back.
        const QList<QToolButton*> buttons = title->findChildren<QToolButton*>();
        QTest::mouseClick(buttons[3], Qt::LeftButton);
        QVERIFY(dock->isFloating());
        QTest::mouseClick(buttons[3], Qt::LeftButton);
        QVERIFY(!dock->isFloating());
        QTest::mouseClick(buttons[4], Qt::LeftButton);
        QVERIFY(dock->isHidden());
        stage.window.docks().arrange();
        QVERIFY(!dock->isHidden());
        stage.window.menu().showHelp(); // of the text, as nothing else has the focus
        QTRY_VERIFY(QApplication::activePopupWidget() != nullptr);
        QApplication::activePopupWidget()->close();
    }
};

QTEST_MAIN(DesktopStartTest)
#include "desktop_start_test.moc"
