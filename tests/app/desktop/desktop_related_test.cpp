// SPDX-License-Identifier: GPL-3.0-or-later
// The real program on checkpoints of the test's own, "Related?" above all, and programs that fail in every
// way.
#include "core/trace/reader.h" // has a function of a name that Qt makes a keyword: first

#include "app/desktop/message_bar.h"
#include "app/desktop/related_dialog.h"
#include "tests/app/desktop/desktop_stage.h"
#include "tests/support/tiny_checkpoint.h"
#include "views/figure/chart_view.h"
#include "views/library/library_model.h"
#include "views/library/library_panel.h"

#include <QAction>
#include <QDir>
#include <QLabel>
#include <QMenu>
#include <QProcess>
#include <QPushButton>

#include <algorithm>
#include <cmath>

using namespace ponderscope;
using testing::Stage;

namespace {

QString checkpoint(const Stage& stage, const QString& name, const testing::TinyCheckpoint& what) {
    const QString folder = stage.folder.filePath(name);
    what.write(folder.toStdString());
    return folder;
}

/// A dialog over two checkpoints, with a program of the test's.
struct Asked {
    explicit Asked(const QByteArray& script) : dialog(stage.theme) {
        dialog.engine().setProgram(stage.program(QStringLiteral("engine.sh"), script));
        dialog.setCheckpoints(checkpoint(stage, QStringLiteral("one"), {}),
                              checkpoint(stage, QStringLiteral("two"), {.seed = 2}));
        dialog.show();
    }
    [[nodiscard]] bool ended() {
        return testing::comes([this] { return !dialog.engine().isRunning(); });
    }
    Stage stage;
    RelatedDialog dialog;
};

QPushButton* button(const QDialog& dialog) {
    for (QPushButton* one : dialog.findChildren<QPushButton*>()) {
        if (one->isDefault()) {
            return one;
        }
    }
    return nullptr;
}

} // namespace

class DesktopRelatedTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        // The dialog looks for the program beside its own and on PATH.
        qputenv("PATH",
                QFileInfo(QStringLiteral(PONDERSCOPE_PROGRAM)).path().toUtf8() + ':' + qgetenv("PATH"));
    }

    void aFolderOfShardsIsOneRun() {
        Stage stage;
        const QString model = checkpoint(stage, QStringLiteral("model"), {});
        QVERIFY(QDir(stage.folder.path()).mkdir(QStringLiteral("shards")));
        const QString folder = stage.folder.filePath(QStringLiteral("shards"));
        qint64 tokens = 0;
        for (const char* rank : {"0", "1"}) {
            QProcessEnvironment world = QProcessEnvironment::systemEnvironment();
            world.insert(QStringLiteral("RANK"), QString::fromLatin1(rank));
            world.insert(QStringLiteral("LOCAL_RANK"), QString::fromLatin1(rank));
            world.insert(QStringLiteral("WORLD_SIZE"), QStringLiteral("2"));
            QProcess engine;
            engine.setProcessEnvironment(world);
            engine.start(QStringLiteral(PONDERSCOPE_PROGRAM),
                         {QStringLiteral("record"), model, QStringLiteral("--prompt"),
                          QStringLiteral("The ferry was late, and nobody had come to the shore."),
                          QStringLiteral("--context"), QStringLiteral("8"), QStringLiteral("--stride"),
                          QStringLiteral("4"), QStringLiteral("--batch"), QStringLiteral("1"),
                          QStringLiteral("-o"), folder + QStringLiteral("/whole.ponder")});
            QVERIFY(engine.waitForFinished(60'000));
            QVERIFY2(engine.exitCode() == 0, engine.readAllStandardError().constData());
        }
        const QStringList files = QDir(folder).entryList({QStringLiteral("*.ponder")}, QDir::Files);
        QCOMPARE(files.size(), 2);
        for (const QString& file : files) {
            tokens += TraceReader::open((folder + u'/' + file).toStdString()).runs().front().tokens;
        }
        stage.window.show();
        stage.window.open(folder);
        QVERIFY(stage.settle());
        QVERIFY(stage.window.data().isOpen(folder));
        QCOMPARE(stage.window.data().runs(folder).size(), 1U);
        QCOMPARE(stage.window.data().runs(folder).front().tokens, tokens);
    }

    void twoRunsOfTheLibrary() {
        Stage stage;
        const testing::TinyCheckpoint plain{
            .layers = 3, .hidden_size = 32, .heads = 4, .pondering_steps = 0, .seed = 5};
        testing::TinyCheckpoint pondering = plain;
        pondering.pondering_steps = 2;
        testing::TinyCheckpoint stranger = plain;
        stranger.seed = 6;
        const QStringList folders{checkpoint(stage, QStringLiteral("plain"), plain),
                                  checkpoint(stage, QStringLiteral("pondering"), pondering),
                                  checkpoint(stage, QStringLiteral("stranger"), stranger)};
        const QString trace = stage.folder.filePath(QStringLiteral("t.ponder"));
        for (const QString& folder : folders) {
            QProcess engine;
            engine.start(QStringLiteral(PONDERSCOPE_PROGRAM),
                         {QStringLiteral("record"), folder, QStringLiteral("--prompt"),
                          QStringLiteral("The ferry was late."), QStringLiteral("-o"), trace});
            QVERIFY(engine.waitForFinished(60'000));
            QCOMPARE(engine.exitCode(), 0);
        }
        stage.window.show();
        stage.window.open(trace);
        QVERIFY(stage.settle());
        stage.window.selection().setRunA({trace, 1});
        // The Library's menu of another run.
        LibraryPanel& library = stage.window.library();
        const auto ask = [&](qint64 run) {
            QMenu menu;
            library.fillMenu(menu, library.model().indexOf({trace, run}));
            const QList<QAction*> actions = menu.actions();
            const auto found = std::find_if(actions.begin(), actions.end(), [](const QAction* action) {
                return action->text().startsWith(QStringLiteral("Related"));
            });
            QVERIFY(found != actions.end());
            QCOMPARE((*found)->text(), QStringLiteral("Related to A?"));
            (*found)->trigger();
        };
        ask(2);
        RelatedDialog* dialog = stage.window.relatedDialog();
        QVERIFY(dialog != nullptr);
        QCOMPARE(dialog->commandLine(),
                 QStringLiteral("ponderscope lineage %1 %2").arg(folders[0], folders[1]));
        QTRY_VERIFY_WITH_TIMEOUT(!dialog->engine().isRunning(), 60'000);
        QVERIFY2(dialog->result().has_value(), qPrintable(dialog->words()));
        QCOMPARE(dialog->verdict(), QStringLiteral("Common origin"));
        QVERIFY(dialog->words().contains(QStringLiteral("same start")));
        const LineageResult& related = *dialog->result();
        QVERIFY2(related.similarity > 0.99, qPrintable(QString::number(related.similarity)));
        QCOMPARE(related.layers.size(), 3U);
        QVERIFY(related.relatedFrom > 0.02 && related.relatedFrom < 1);
        // The bars are the numbers.
        const auto charts = dialog->findChildren<ChartView*>();
        QCOMPARE(charts.size(), 2);
        const auto& bars = charts[0]->chart().series;
        QVERIFY(bars.size() >= 2);
        for (std::size_t i = 0; i < related.layers.size(); ++i) {
            QCOMPARE(bars[0].y[i], related.layers[i].query);
            QCOMPARE(bars[1].y[i], related.layers[i].key);
        }
        QVERIFY(!dialog->grab().isNull());
        // A stranger, in the same dialog.
        ask(3);
        QTRY_VERIFY_WITH_TIMEOUT(dialog->result().has_value(), 60'000);
        QCOMPARE(dialog->verdict(), QStringLiteral("No common origin found"));
        QVERIFY(dialog->result()->z < 3);
        // Other folders, and the result is gone with its figures.
        dialog->setCheckpoints(folders[0], folders[0]);
        QVERIFY(!dialog->result() && !charts[0]->isVisible());
        QVERIFY(dialog->problem().contains(QStringLiteral("same folder")));
        QVERIFY(!button(*dialog)->isEnabled());
        dialog->close();
        // A checkpoint that is gone keeps its name.
        QVERIFY(QDir().rename(folders[2], folders[2] + QStringLiteral("-gone")));
        ask(3);
        QVERIFY2(stage.window.relatedDialog()->problem().contains(QStringLiteral("stranger does not exist")),
                 qPrintable(stage.window.relatedDialog()->problem()));
    }

    void itCanBeStopped() {
        Asked asked(
            "echo '{\"activity\":\"comparing attention\",\"done\":3,\"total\":12,\"unit\":\"layers\"}' >&2\n"
            "exec sleep 600\n");
        button(asked.dialog)->click();
        QTRY_VERIFY2(asked.dialog.words().contains(QStringLiteral("comparing attention: 3 of 12 layers")),
                     qPrintable(asked.dialog.words()));
        QCOMPARE(button(asked.dialog)->text(), QStringLiteral("Stop"));
        button(asked.dialog)->click();
        QVERIFY(asked.ended());
        QTRY_COMPARE(asked.dialog.verdict(), QStringLiteral("Stopped"));
        QCOMPARE(button(asked.dialog)->text(), QStringLiteral("Related?"));
        QVERIFY(!asked.dialog.result());
    }

    void whatGoesWrongIsASentence_data() {
        QTest::addColumn<QByteArray>("script");
        QTest::addColumn<QString>("says");
        QTest::newRow("refused") << QByteArray(
                                        "echo 'ponderscope: two/model.safetensors: cut off.' >&2\nexit 2\n")
                                 << QStringLiteral("two/model.safetensors: cut off.");
        QTest::newRow("killed") << QByteArray("kill -9 $$\n") << QStringLiteral("ended unexpectedly");
        QTest::newRow("nothing") << QByteArray("exit 0\n") << QStringLiteral("ended without a result");
        QTest::newRow("half") << QByteArray("echo '{\"verdict\": \"common origin\", \"awm\": {\"z\": '\n")
                              << QStringLiteral("ended without a result");
        QTest::newRow("other") << QByteArray("echo '{\"verdict\": \"yes\", \"awm\": {\"z\": \"many\"}}'\n")
                               << QStringLiteral("ended without a result");
    }
    void whatGoesWrongIsASentence() {
        QFETCH(QByteArray, script);
        QFETCH(QString, says);
        Asked asked(script);
        QVERIFY2(asked.dialog.problem().isEmpty(), qPrintable(asked.dialog.problem()));
        asked.dialog.startOrStop();
        QVERIFY(asked.ended());
        QTRY_VERIFY2(asked.dialog.words().contains(says), qPrintable(asked.dialog.words()));
        QCOMPARE(asked.dialog.verdict(), QStringLiteral("Not compared"));
        QVERIFY(!asked.dialog.result());
        QVERIFY(button(asked.dialog)->isEnabled());
    }

    void numbersThatAreMissingAreNotShownAsZero() {
        Asked asked(
            "echo '{\"verdict\": \"undecided\", \"sentence\": \"More alike.\", \"basis\": \"b\", "
            "\"notices\": "
            "[\"few tokens\"], \"awm\": {\"z\": 4.5, \"similarity\": 0.02, \"layer_pairs\": [[0, 2], [1, "
            "3]], "
            "\"Wq\": {\"0\": -0.01}, \"Wk\": {\"0\": 0.5, \"1\": 0.25}}, \"huref\": null, \"why_no_huref\": "
            "\"no tokenizer\"}'\n");
        asked.dialog.startOrStop();
        QTRY_VERIFY(asked.dialog.result().has_value());
        QCOMPARE(asked.dialog.verdict(), QStringLiteral("Undecided"));
        QVERIFY(std::isnan(asked.dialog.result()->layers[1].query));
        QVERIFY(std::isnan(asked.dialog.result()->relatedFrom));
        const auto charts = asked.dialog.findChildren<ChartView*>();
        QCOMPARE(charts[0]->chart().x.names[1], QStringLiteral("1 – 3"));
        QVERIFY(!charts[1]->hint().isEmpty());
        QString all;
        for (const QLabel* label : asked.dialog.findChildren<QLabel*>()) {
            all += label->text() + u'\n';
        }
        QVERIFY(all.contains(QStringLiteral("no tokenizer")) && all.contains(QStringLiteral("few tokens")));
        QVERIFY(!asked.dialog.grab().isNull());
    }
};

QTEST_MAIN(DesktopRelatedTest)
#include "desktop_related_test.moc"
