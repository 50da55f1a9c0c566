// SPDX-License-Identifier: GPL-3.0-or-later
// The first minutes: the welcome page, the samples, help on every panel.
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
#include <QSignalSpy>
#include <QToolButton>

#include <algorithm>

using namespace Qt::StringLiterals;
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
        const QString path = stage.make(u"before.ponder"_s);
        stage.settings.addRecent(path);
        stage.window.show();
        QTRY_VERIFY(stage.window.greeting().welcome().isVisible());
        // What was open before is one click away.
        QPushButton* recent = nullptr;
        for (QPushButton* card : stage.window.greeting().welcome().findChildren<QPushButton*>()) {
            if (card->accessibleName() == u"before.ponder"_s) {
                recent = card;
            }
        }
        QVERIFY(recent != nullptr);
        QTest::mouseClick(recent, Qt::LeftButton);
        QVERIFY(!stage.window.greeting().welcome().isVisible());
        QVERIFY(stage.settle());
        QCOMPARE(stage.window.selection().runA().trace, path);
        stage.window.greeting().showWelcome(); // from the Help menu
        QVERIFY(stage.window.greeting().welcome().isVisible());
        QTest::keyClick(&stage.window.greeting().welcome(), Qt::Key_Escape);
        QVERIFY(!stage.window.greeting().welcome().isVisible());
    }

    void theRecordedSampleIsOpenedAsACopy() {
        QTemporaryDir tree;
        Samples samples;
        samples.recorded = tree.filePath(u"shipped/samples.ponder"_s);
        QVERIFY(QDir(tree.path()).mkpath(u"shipped"_s));
        testing::write_sample_trace(samples.recorded.toStdString(), {.sequences = 1, .tokens = 60});
        const QStringList shipped = QDir(tree.filePath(u"shipped"_s)).entryList(QDir::Files);
        QVERIFY(QFile::setPermissions(samples.recorded, QFile::ReadOwner)); // as it is installed
        const QString own = tree.filePath(u"own"_s);
        QString problem;
        const QString copy = copy_of_recorded(samples, own, problem);
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
        QVERIFY(QFileInfo(copy).dir() == QDir(own));
        Stage stage;
        QVERIFY(stage.shows(copy));
        // What a user does to it stays in the copy, which is found again.
        stage.window.text().setQuantity(Quantity::nll);
        write(copy + u".annotations"_s, "x");
        QCOMPARE(QDir(tree.filePath(u"shipped"_s)).entryList(QDir::Files), shipped);
        QCOMPARE(copy_of_recorded(samples, own, problem), copy);
        QVERIFY(QFile::exists(copy + u".annotations"_s));
        // A newer sample takes its place, without what belongs to the older one.
        QVERIFY(QFile::setPermissions(samples.recorded, QFile::ReadOwner | QFile::WriteOwner));
        QFile newer(samples.recorded);
        QVERIFY(newer.open(QIODevice::Append));
        QVERIFY(
            newer.setFileTime(QDateTime::currentDateTime().addSecs(60), QFileDevice::FileModificationTime));
        newer.close();
        QCOMPARE(copy_of_recorded(samples, own, problem), copy);
        QVERIFY(!QFile::exists(copy + u".annotations"_s));
        // A folder that cannot be made is said.
        QVERIFY(copy_of_recorded(samples, copy + u"/below"_s, problem).isEmpty());
        QVERIFY(!problem.isEmpty());
    }

    void samplesAreFoundFromTheProgramUpwards() {
        QTemporaryDir tree;
        const QString root = tree.path();
        write(root + u"/sample_models/b-plain/config.json"_s, "{\"num_hidden_layers\":4}");
        write(root + u"/sample_models/c-ponder/config.json"_s,
              "{\"num_hidden_layers\":4,\"ponderinglm\":true,\"pondering_steps\":3}");
        write(root + u"/sample_models/d-gates/config.json"_s,
              "{\"pondering\":{\"method\":\"adaponderlm\",\"max_steps\":2}}");
        write(root + u"/sample_models/texts/passage.txt"_s, "words");
        write(root + u"/sample_models/broken/config.json"_s, "{\"num_hidden");
        write(root + u"/sample_models/cabinet/mhc/config.json"_s,
              "{\"baseline_mode\":\"mhc\",\"num_hidden_layers\":4}");
        // Without the stories, what reads them is of no use.
        write(root + u"/sample_models/chains/reset/config.json"_s, "{\"num_hidden_layers\":1}");
        QVERIFY(QDir(root).mkpath(u"build/release/bin"_s));
        Samples found = find_samples(root + u"/build/release/bin"_s);
        QCOMPARE(found.models.size(), std::size_t{5});
        QCOMPARE(found.models.back().name, u"cabinet/mhc"_s);
        QVERIFY(found.recorded.isEmpty());
        write(root + u"/build/samples/samples.ponder"_s, "x");
        found = find_samples(root + u"/build/release/bin"_s);
        QVERIFY(!found.recorded.isEmpty());
        const RecordRequest request = sample_request(found, found.models.front(), root);
        QVERIFY(problem_of(request).isEmpty());
        write(root + u"/sample_models/texts/stories.txt"_s, "a story");
        found = find_samples(root + u"/build/release/bin"_s);
        const auto story = std::find_if(found.models.begin(), found.models.end(),
                                        [](const SampleModel& model) { return model.stories; });
        QVERIFY(story != found.models.end() && found.models.front().name != story->name);
        const RecordRequest told = sample_request(found, *story, root);
        QCOMPARE(told.textFile, found.stories);
        QCOMPARE(told.context, 31); // a story a window
        QCOMPARE(told.stride, 31);
        QVERIFY(find_samples(u"/"_s).folder.isEmpty());
    }

    void aSampleModelIsRecordedFromItsMenu() {
        Stage stage;
        stage.window.show();
        QTRY_VERIFY(stage.window.greeting().welcome().isVisible());
        const QString said = stage.folder.filePath(u"arguments"_s);
        stage.window.runs().recorder().setProgram(
            stage.program(u"engine.sh"_s, "echo \"$@\" > '" + said.toUtf8() + "'\nexit 2\n"));
        const auto* models = stage.window.greeting().welcome().findChild<QPushButton*>(u"sampleModels"_s);
        if (models == nullptr) {
            QSKIP("no sample_models above this test program");
        }
        models->menu()->actions().front()->trigger();
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
        const QString folder = stage.folder.filePath(u"out"_s);
        // The checkpoint that lies there too is not what is asked about.
        write(folder + u"/config.json"_s, "{}");
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

    void sampleModelsAreOneCardWithAMenu() {
        Theme theme(Appearance::light);
        WelcomePage page(theme, nullptr);
        page.setSamples({u"/s"_s,
                         {{u"one"_s, u"/s/one"_s}, {u"cabinet/two"_s, u"/s/cabinet/two"_s}},
                         u"/s/texts/passage.txt"_s,
                         {}});
        const auto* card = page.findChild<QPushButton*>(u"sampleModels"_s);
        QVERIFY(card != nullptr && card->menu() != nullptr);
        QCOMPARE(card->menu()->actions().size(), 2);
        QSignalSpy chosen(&page, &WelcomePage::sampleChosen);
        card->menu()->actions()[1]->trigger();
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen[0][0].toInt(), 1);
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
            QVERIFY2(help->text.contains(u"**Do not conclude**"_s), qPrintable(title));
        }
        QCOMPARE(all_panel_help().size(), static_cast<std::size_t>(titles.size()) + 1);
        QVERIFY(panel_help(u"First steps"_s) != nullptr);
        // Weights are not causes; replay is not rerun: where they are read.
        QVERIFY(panel_help(u"Depth"_s)->brief.contains(u"not causes"_s));
        QVERIFY(panel_help(u"Policy lab"_s)->brief.contains(u"not rerun"_s));
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
