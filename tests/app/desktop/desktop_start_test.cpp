// SPDX-License-Identifier: GPL-3.0-or-later
// The first minutes: the welcome page, the samples, the tour, help on every panel.
#include "app/desktop/greeting.h"
#include "app/desktop/panel_frame.h"
#include "app/desktop/panel_help.h"
#include "app/desktop/panels.h"
#include "app/desktop/samples.h"
#include "app/desktop/welcome.h"
#include "core/trace/writer.h"
#include "tests/app/desktop/desktop_stage.h"
#include "views/chart/chart_plot.h"
#include "views/figure/figure_panel.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QDateTime>
#include <QDir>
#include <QDockWidget>
#include <QLabel>
#include <QMenu>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QToolButton>

#include <algorithm>

using namespace ponderscope;
using testing::Stage;

namespace {

void write(const QString& path, const QByteArray& text) {
    QFile file(path);
    QVERIFY(QDir().mkpath(QFileInfo(path).path()));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
}

} // namespace

class DesktopStartTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void nothingOpenShowsTheWelcomePage() {
        Stage stage;
        const QString path = stage.make(QStringLiteral("before.ponder"));
        stage.settings.addRecent(path);
        stage.window.show();
        QTRY_VERIFY(stage.window.greeting().welcome().isVisible());
        // What was open before is one click away.
        QPushButton* recent = nullptr;
        for (QPushButton* card : stage.window.greeting().welcome().findChildren<QPushButton*>()) {
            if (card->accessibleName() == QStringLiteral("before.ponder")) {
                recent = card;
            }
        }
        QVERIFY(recent != nullptr);
        QTest::mouseClick(recent, Qt::LeftButton);
        QVERIFY(!stage.window.greeting().welcome().isVisible());
        QVERIFY(stage.settle());
        QCOMPARE(stage.window.selection().runA().trace, path);
    }

    void aPathShowsNoWelcomePage() {
        Stage stage;
        const QString path = stage.make(QStringLiteral("named.ponder"));
        QVERIFY(stage.shows(path));
        QVERIFY(!stage.window.greeting().welcome().isVisible());
        stage.window.greeting().showWelcome(); // from the Help menu
        QVERIFY(stage.window.greeting().welcome().isVisible());
        QTest::keyClick(&stage.window.greeting().welcome(), Qt::Key_Escape);
        QVERIFY(!stage.window.greeting().welcome().isVisible());
    }

    void aWrongPathLeavesTheWelcomePageUsable() {
        Stage stage;
        stage.window.show();
        QTRY_VERIFY(stage.window.greeting().welcome().isVisible());
        stage.window.open(QStringLiteral("/no/such.ponder"));
        QVERIFY(stage.window.greeting().welcome().isVisible());
        QCOMPARE(stage.window.errors().size(), 1);
    }

    void theRecordedSampleIsOpenedAsACopy() {
        QTemporaryDir tree;
        Samples samples;
        samples.recorded = tree.filePath(QStringLiteral("shipped/samples.ponder"));
        QVERIFY(QDir(tree.path()).mkpath(QStringLiteral("shipped")));
        testing::write_sample_trace(samples.recorded.toStdString(), {.sequences = 1, .tokens = 60});
        const QStringList shipped = QDir(tree.filePath(QStringLiteral("shipped"))).entryList(QDir::Files);
        QVERIFY(QFile::setPermissions(samples.recorded, QFile::ReadOwner)); // as it is installed
        const QString own = tree.filePath(QStringLiteral("own"));
        QString problem;
        const QString copy = copy_of_recorded(samples, own, problem);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
        QVERIFY(QFileInfo(copy).dir() == QDir(own));
        Stage stage;
        QVERIFY(stage.shows(copy));
        // What a user does to it stays in the copy, which is found again.
        stage.window.text().setQuantity(Quantity::nll);
        write(copy + QStringLiteral(".annotations"), "x");
        QCOMPARE(QDir(tree.filePath(QStringLiteral("shipped"))).entryList(QDir::Files), shipped);
        QCOMPARE(copy_of_recorded(samples, own, problem), copy);
        QVERIFY(QFile::exists(copy + QStringLiteral(".annotations")));
        // A newer sample takes its place, without what belongs to the older one.
        QVERIFY(QFile::setPermissions(samples.recorded, QFile::ReadOwner | QFile::WriteOwner));
        QFile newer(samples.recorded);
        QVERIFY(newer.open(QIODevice::Append));
        QVERIFY(
            newer.setFileTime(QDateTime::currentDateTime().addSecs(60), QFileDevice::FileModificationTime));
        newer.close();
        QCOMPARE(copy_of_recorded(samples, own, problem), copy);
        QVERIFY(!QFile::exists(copy + QStringLiteral(".annotations")));
        // A folder that cannot be made is said.
        QVERIFY(copy_of_recorded(samples, copy + QStringLiteral("/below"), problem).isEmpty());
        QVERIFY(!problem.isEmpty());
    }

    void samplesAreFoundFromTheProgramUpwards() {
        QTemporaryDir tree;
        const QString root = tree.path();
        write(root + QStringLiteral("/sample_models/b-plain/config.json"), "{\"num_hidden_layers\":4}");
        write(root + QStringLiteral("/sample_models/c-ponder/config.json"),
              "{\"num_hidden_layers\":4,\"ponderinglm\":true,\"pondering_steps\":3}");
        write(root + QStringLiteral("/sample_models/d-gates/config.json"),
              "{\"pondering\":{\"method\":\"adaponderlm\",\"max_steps\":2}}");
        write(root + QStringLiteral("/sample_models/texts/passage.txt"), "words");
        write(root + QStringLiteral("/sample_models/broken/config.json"), "{\"num_hidden");
        write(root + QStringLiteral("/sample_models/cabinet/mhc/config.json"),
              "{\"baseline_mode\":\"mhc\",\"num_hidden_layers\":4}");
        // Without the stories, what reads them is of no use.
        write(root + QStringLiteral("/sample_models/chains/reset/config.json"), "{\"num_hidden_layers\":1}");
        QVERIFY(QDir(root).mkpath(QStringLiteral("build/release/bin")));
        Samples found = find_samples(root + QStringLiteral("/build/release/bin"));
        QCOMPARE(found.models.size(), std::size_t{5});
        QVERIFY(found.models.back().cabinet);
        QCOMPARE(found.models.back().summary, QStringLiteral("mhc · 4 layers"));
        found.models.pop_back();
        QVERIFY(found.models.front().summary.contains(QStringLiteral("pondering steps")));
        QVERIFY(found.models.back().summary.startsWith(QStringLiteral("vanilla")));
        QVERIFY(found.recorded.isEmpty());
        write(root + QStringLiteral("/build/samples/samples.ponder"), "x");
        found = find_samples(root + QStringLiteral("/build/release/bin"));
        QVERIFY(!found.recorded.isEmpty());
        const RecordRequest request = sample_request(found, found.models.front(), root);
        QVERIFY(problem_of(request).isEmpty());
        write(root + QStringLiteral("/sample_models/texts/stories.txt"), "a story");
        found = find_samples(root + QStringLiteral("/build/release/bin"));
        const auto story = std::find_if(found.models.begin(), found.models.end(),
                                        [](const SampleModel& model) { return model.stories; });
        QVERIFY(story != found.models.end() && found.models.front().name != story->name);
        const RecordRequest told = sample_request(found, *story, root);
        QCOMPARE(told.textFile, found.stories);
        QCOMPARE(told.context, 31); // a story a window
        QCOMPARE(told.stride, 31);
        QVERIFY(find_samples(QStringLiteral("/")).folder.isEmpty());
    }

    void oneClickRecordsASample() {
        Stage stage;
        stage.window.show();
        QTRY_VERIFY(stage.window.greeting().welcome().isVisible());
        const QString said = stage.folder.filePath(QStringLiteral("arguments"));
        stage.window.runs().recorder().setProgram(
            stage.program(QStringLiteral("engine.sh"), "echo \"$@\" > '" + said.toUtf8() + "'\nexit 2\n"));
        QPushButton* sample = nullptr;
        for (QPushButton* card : stage.window.greeting().welcome().findChildren<QPushButton*>()) {
            if (card->objectName().startsWith(QStringLiteral("sample "))) {
                sample = card;
                break;
            }
        }
        if (sample == nullptr) {
            QSKIP("no sample_models above this test program");
        }
        QTest::mouseClick(sample, Qt::LeftButton);
        QTRY_VERIFY(QFile::exists(said) && !stage.window.runs().recorder().isRunning());
        QFile file(said);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray words = file.readAll();
        QVERIFY(words.startsWith("record "));
        QVERIFY(words.contains("passage.txt"));
        QVERIFY(!stage.window.greeting().welcome().isVisible());
    }

    void aDroppedTrainingFolderShowsItsCurves() {
        Stage stage;
        stage.window.show();
        const QString folder = stage.folder.filePath(QStringLiteral("out"));
        // The checkpoint that lies there too is not what is asked about.
        write(folder + QStringLiteral("/config.json"), "{}");
        const QString trace = folder + QStringLiteral("/training.ponder");
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
        QVERIFY(stage.window.raisePanel(QStringLiteral("training")));
        const auto all = stage.window.findChildren<FigurePanel*>();
        const auto view = std::find_if(all.begin(), all.end(), [](const FigurePanel* one) {
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

    void theCabinetIsOneCardWithAMenu() {
        Theme theme(Appearance::light);
        WelcomePage page(theme, nullptr);
        page.setSamples(
            {QStringLiteral("/s"),
             {{QStringLiteral("one"), QStringLiteral("/s/one"), QStringLiteral("ponderlm"), false},
              {QStringLiteral("two"), QStringLiteral("/s/cabinet/two"), QStringLiteral("mhc"), true},
              {QStringLiteral("three"), QStringLiteral("/s/cabinet/three"), QStringLiteral("looped"), true}},
             QStringLiteral("/s/texts/passage.txt"),
             {}});
        QVERIFY(page.findChild<QPushButton*>(QStringLiteral("sample one")) != nullptr);
        QVERIFY(page.findChild<QPushButton*>(QStringLiteral("sample two")) == nullptr);
        auto* card = page.findChild<QPushButton*>(QStringLiteral("cabinet"));
        QVERIFY(card != nullptr && card->menu() != nullptr);
        QCOMPARE(card->menu()->actions().size(), 2);
        QSignalSpy chosen(&page, &WelcomePage::sampleChosen);
        card->menu()->actions()[1]->trigger();
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen[0][0].toInt(), 2);
    }

    void theTourHasSixStopsAndEnds() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(QStringLiteral("tour.ponder"))));
        stage.window.greeting().startTour();
        Tour* tour = stage.window.greeting().tour();
        QVERIFY(tour != nullptr);
        QCOMPARE(tour->stops(), 6);
        QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : tour, Qt::Key_Right);
        if (tour->stop() == 0) {
            tour->next(); // without a window manager nothing has the focus
        }
        QCOMPARE(tour->stop(), 1);
        // A word is pinned for the user: none on the screen took more steps.
        const qint64 pinned = stage.window.selection().token();
        QVERIFY(pinned >= 0);
        const TextView& view = stage.window.text().view();
        const std::vector<float> steps =
            token_values(Quantity::steps, *view.sequence(), 0, stage.window.selection().attribution()).values;
        for (qint64 token = view.firstVisibleToken(); token < view.endVisibleToken(); ++token) {
            QVERIFY(!(steps[static_cast<std::size_t>(token)] > steps[static_cast<std::size_t>(pinned)]));
        }
        tour->previous();
        QCOMPARE(tour->stop(), 0);
        for (int i = 0; i < 5; ++i) {
            tour->next();
            QVERIFY(!stage.window.grab().isNull());
        }
        QCOMPARE(tour->stop(), 5);
        tour->next();
        QVERIFY(stage.window.greeting().tour() == nullptr);
    }

    void theTourSpeaksOfRunBWhereThereIsOne() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(QStringLiteral("tour.ponder"))));
        Selection& selection = stage.window.selection();
        const RunKey a{selection.runA().trace, 1};
        selection.setRunA(a);
        QTRY_VERIFY(stage.window.text().view().sequence());
        static const QRegularExpression ofB(QStringLiteral("\\bB\\b"));
        for (const bool two : {false, true}) {
            selection.setRunB(two ? RunKey{a.trace, 2} : RunKey{});
            stage.window.greeting().startTour();
            Tour* tour = stage.window.greeting().tour();
            QVERIFY(tour != nullptr);
            QString said;
            for (int i = 0; i < 5; ++i) {
                for (const QWidget* one : stage.window.findChildren<QWidget*>()) {
                    said += one->accessibleName() == QStringLiteral("Tour") ? one->accessibleDescription()
                                                                            : QString();
                }
                tour->next();
            }
            QCOMPARE(said.contains(ofB), two);
            tour->end();
        }
    }

    void aTourOverNothingOpensSomethingFirst() {
        Stage stage;
        stage.window.show();
        stage.window.greeting().startTour();
        QVERIFY(stage.window.greeting().tour() == nullptr);
        stage.window.open(stage.make(QStringLiteral("later.ponder")));
        QTRY_VERIFY(stage.window.greeting().tour() != nullptr);
        stage.window.runs().recorder().cancel();
    }

    void everyPanelSaysWhatItShowsAndWhatItDoesNot() {
        QStringList titles{QStringLiteral("Text")};
        for (const Panel& panel : panels()) {
            titles << QString::fromUtf8(panel.title);
        }
        for (const QString& title : titles) {
            const PanelHelp* help = panel_help(title);
            QVERIFY2(help != nullptr, qPrintable(title));
            QVERIFY2(help->brief.size() > 10, qPrintable(title));
            QVERIFY2(help->text.count(QStringLiteral("\n\n**")) == 4, qPrintable(title));
            QVERIFY2(help->text.contains(QStringLiteral("**What must not be concluded.**")),
                     qPrintable(title));
        }
        QCOMPARE(all_panel_help().size(), static_cast<std::size_t>(titles.size()));
        // Weights are not causes; replay is not rerun: where they are read.
        QVERIFY(panel_help(QStringLiteral("Depth"))->brief.contains(QStringLiteral("not causes")));
        QVERIFY(panel_help(QStringLiteral("Policy lab"))->brief.contains(QStringLiteral("not rerun")));
    }

    void theQuestionMarkOfAPanelOpensItsHelp() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(QStringLiteral("help.ponder"))));
        auto* dock = stage.window.findChild<QDockWidget*>(QStringLiteral("compare"));
        auto* title = qobject_cast<DockTitle*>(dock->titleBarWidget());
        QVERIFY(title != nullptr);
        QTest::mouseClick(title->findChildren<QToolButton*>().front(), Qt::LeftButton);
        auto* sheet = QApplication::activePopupWidget();
        QVERIFY(sheet != nullptr);
        QVERIFY(sheet->findChild<QLabel*>()->text().contains(QStringLiteral("bootstrap")));
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
