// SPDX-License-Identifier: GPL-3.0-or-later
// Live: lines of an engine become a run that all views show; time; what if; an engine that dies.
#include "app/desktop/message_bar.h"
#include "app/desktop/think_panel.h"
#include "app/desktop/thinker.h"
#include "app/desktop/top_bar.h"
#include "tests/app/desktop/desktop_stage.h"
#include "views/heatmap/heatmap_view.h"
#include "views/heatmap/step_map_canvas.h"
#include "views/inspector/inspector_view.h"
#include "views/text/text_panel.h"
#include "views/text/text_view.h"

#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMenu>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTimer>

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::Stage;

namespace {

const QByteArray start =
    "{\"event\":\"start\",\"checkpoint\":\"/models/"
    "tiny\",\"method\":\"ponderlm\",\"max_steps\":2,\"layers\":2,"
    "\"vocab_size\":256,\"device\":\"cpu\",\"dtype\":\"float32\",\"prompt_tokens\":2,\"title\":\"ab\","
    "\"signals\":[{\"name\":\"nll\",\"axes\":[\"token\",\"step\"],\"unit\":\"nats\",\"title\":\"NLL by "
    "step\"},"
    "{\"name\":\"candidate_ids\",\"dtype\":\"I32\",\"axes\":[\"token\",\"step\",\"candidate\"]}],"
    "\"token\":{\"id\":97,\"bytes\":\"61\"}}";

QByteArray token(int position, int id, const char* hex, const char* values = "[3.5,2.5,1.5]") {
    return "{\"event\":\"token\",\"position\":" + QByteArray::number(position) +
           ",\"token\":{\"id\":" + QByteArray::number(id) + ",\"bytes\":\"" + hex +
           "\"},\"nll\":1.5,\"entropy\":2.0,\"max_probability\":0.5,\"rank\":2,\"steps\":2,\"flops\":1000,"
           "\"names\":[{\"id\":98,\"bytes\":\"62\"}],\"signals\":{\"nll\":{\"shape\":[1,3],\"values\":" +
           values + "},\"candidate_ids\":{\"shape\":[1,3,1],\"values\":[98,98,98]}}}";
}

/// A stand-in for `ponderscope generate`.
QByteArray script(int tokens, const QByteArray& then) {
    QByteArray text = "echo '" + start + "'\n";
    for (int i = 1; i < tokens; ++i) {
        text += "echo '" + token(i, 98, "62") + "'\nsleep 0.03\n";
    }
    return text + then;
}

ThinkRequest request_in(const Stage& stage) {
    const QString folder = stage.folder.filePath(u"model"_s);
    QDir().mkpath(folder);
    QFile config(folder + u"/config.json"_s);
    if (config.open(QIODevice::WriteOnly)) {
        config.write("{}");
    }
    ThinkRequest request;
    request.checkpoint = folder;
    request.prompt = u"ab"_s;
    request.trace = stage.folder.filePath(u"thought.ponder"_s);
    return request;
}

} // namespace

class DesktopLiveTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void linesBecomeARun() {
        LiveRunBuilder builder(u"live:test"_s);
        QCOMPARE(builder.read(start), LiveRunBuilder::Event::started);
        QCOMPARE(builder.read(token(1, 98, "62")), LiveRunBuilder::Event::token);
        QCOMPARE(builder.read(token(2, 0xe2, "e2")), LiveRunBuilder::Event::token); // a part of a character
        const LiveRun run = builder.run();
        QCOMPARE(run.tokens->tokens.size(), std::size_t{3});
        QCOMPARE(run.tokens->text.size(), std::size_t{3});
        QCOMPARE(run.tokens->tokens.nll[0], 1.5F); // with the token that computed it
        QVERIFY(std::isnan(run.tokens->tokens.nll[2]));
        QCOMPARE(run.info.max_steps, std::int64_t{2});
        QCOMPARE(run.sequence.scored_tokens, std::int64_t{2});
        const auto nll = run.chunks.at(u"nll"_s);
        QCOMPARE(nll->shape, (std::vector<std::int64_t>{3, 3}));
        QCOMPARE(nll->data.size(), std::size_t{36});
        QCOMPARE(run.labels.value(98), u"b"_s);
        QCOMPARE(builder.promptTokens(), 2);
        QCOMPARE(builder.read("{\"event\":\"recorded\",\"trace\":\"/t.ponder\",\"run\":\"r\"}"),
                 LiveRunBuilder::Event::recorded);
        QCOMPARE(builder.recordedRun(), u"r"_s);
    }

    void linesThatDoNotFitAreLeftOut() {
        LiveRunBuilder builder(u"live:test"_s);
        QCOMPARE(builder.read(token(1, 98, "62")), LiveRunBuilder::Event::nothing); // before the start
        QCOMPARE(builder.read("not json at all"), LiveRunBuilder::Event::nothing);
        QCOMPARE(builder.read("{\"event\":\"token\"}"), LiveRunBuilder::Event::nothing);
        QCOMPARE(builder.read(start), LiveRunBuilder::Event::started);
        QCOMPARE(builder.read(token(7, 98, "62")), LiveRunBuilder::Event::nothing); // a gap
        QCOMPARE(builder.read(token(1, 98, "62")), LiveRunBuilder::Event::token);
        QCOMPARE(builder.read(token(2, 98, "62", "[1,2]")),
                 LiveRunBuilder::Event::token); // a shape that changed
        QCOMPARE(builder.read(token(3, 98, "zz", "\"many\"")), LiveRunBuilder::Event::token);
        const LiveRun run = builder.run();
        QCOMPARE(run.chunks.at(u"nll"_s)->shape, (std::vector<std::int64_t>{4, 3}));
        // Shapes that would need all memory are not believed.
        LiveRunBuilder other(u"live:other"_s);
        QCOMPARE(other.read(start), LiveRunBuilder::Event::started);
        QByteArray absurd = token(1, 98, "62");
        absurd.replace("[1,3]", "[1,4000000000000]");
        QCOMPARE(other.read(absurd), LiveRunBuilder::Event::token);
        QVERIFY(!other.run().chunks.contains(u"nll"_s));
    }

    void everyViewShowsWhatIsThought() {
        Stage stage;
        stage.window.resize(1200, 850);
        stage.window.show();
        stage.window.runs().thinker().setProgram(
            stage.program(u"engine.sh"_s, script(12, "exec sleep 600\n")));
        stage.window.runs().think(request_in(stage));
        QTRY_VERIFY(stage.window.runs().thinker().tokens() >= 4);
        QTRY_VERIFY(stage.window.text().view().sequence());
        QCOMPARE(stage.window.selection().runA(), stage.window.runs().thinker().key());
        QTRY_COMPARE(stage.window.runs().thinker().tokens(), 12);
        QTRY_COMPARE(static_cast<int>(stage.window.text().view().sequence()->tokens.size()), 12);
        QVERIFY(stage.window.topBar().runA().currentText().contains(u"thinking"_s));
        QTRY_COMPARE(stage.window.selection().token(), 11); // the newest
        // Views that read files say why they wait; nothing asks for a file of that name.
        stage.window.raisePanel(u"halting"_s);
        stage.window.raisePanel(u"lab"_s);
        QTest::qWait(50);
        QVERIFY2(stage.window.errors().isEmpty(), qPrintable(stage.window.errors().join(u' ')));
        stage.window.runs().thinker().cancel();
        QTRY_VERIFY(!stage.window.runs().thinker().isRunning());
        QVERIFY(stage.window.text().view().sequence()); // what was said stays
    }

    void theMeanSaysHowManyPredictionsItIsOver() {
        Stage stage;
        stage.window.show();
        // Of the last two tokens, drawn from outside the candidates, nothing is known before the end.
        QByteArray drawn = script(5, {});
        for (int i = 5; i < 7; ++i) {
            drawn += "echo '" + token(i, 98, "62").replace("\"nll\":1.5,", "\"nll\":null,") + "'\n";
        }
        stage.window.runs().thinker().setProgram(stage.program(u"engine.sh"_s, drawn + "exec sleep 600\n"));
        stage.window.runs().think(request_in(stage));
        QTRY_COMPARE(stage.window.runs().thinker().tokens(), 7);
        QTRY_VERIFY2(stage.window.statusText().contains(u"7 tokens · NLL 1.500 over 4 of 6 predicted"_s),
                     qPrintable(stage.window.statusText()));
        QVERIFY2(stage.window.statusText().contains(u"sequence 1 of 1"_s),
                 qPrintable(stage.window.statusText()));
        stage.window.runs().thinker().cancel();
        QTRY_VERIFY(!stage.window.runs().thinker().isRunning());
    }

    void anEngineThatDiesLeavesWhatItSaid() {
        Stage stage;
        stage.window.show();
        stage.window.runs().thinker().setProgram(stage.program(u"engine.sh"_s, script(5, "kill -9 $$\n")));
        stage.window.runs().think(request_in(stage));
        QVERIFY(testing::says(stage.window, "generation.died"));
        QCOMPARE(static_cast<int>(stage.window.text().view().sequence()->tokens.size()), 5);
        // And it can be asked again.
        stage.window.runs().thinker().setProgram(stage.program(u"again.sh"_s, script(3, "")));
        stage.window.runs().think(request_in(stage));
        QTRY_COMPARE(stage.window.runs().thinker().tokens(), 3);
        QTRY_VERIFY(!stage.window.runs().thinker().isRunning());
    }

    void aRefusalIsTheEnginesSentence() {
        Stage stage;
        stage.window.show();
        stage.window.runs().thinker().setProgram(
            stage.program(u"engine.sh"_s, "echo 'ponderscope: no tokenizer here.' >&2\nexit 2\n"));
        stage.window.runs().think(request_in(stage));
        QTRY_COMPARE(stage.window.runs().thinkPanel().status(), u"no tokenizer here."_s);
        stage.window.runs().think({});
        QVERIFY(stage.window.runs().thinkPanel().status().contains(u"checkpoint"_s));
        ThinkRequest silent = request_in(stage);
        silent.prompt = u"  "_s;
        stage.window.runs().think(silent);
        QVERIFY(stage.window.runs().thinkPanel().status().contains(u"prompt"_s));
    }

    void theRecordedRunTakesItsPlace() {
        Stage stage;
        const QString trace = stage.make(u"kept.ponder"_s, {.sequences = 1, .tokens = 50});
        stage.window.show();
        stage.window.runs().thinker().setProgram(
            stage.program(u"engine.sh"_s, script(4, "echo '{\"event\":\"recorded\",\"trace\":\"" +
                                                        trace.toUtf8() + "\",\"run\":\"vanilla-1m\"}'\n")));
        stage.window.runs().think(request_in(stage));
        QTRY_COMPARE(stage.window.selection().runA().trace, trace);
        QVERIFY(!stage.window.data().isLive(Thinker::name()));
        QCOMPARE(stage.window.data().run(stage.window.selection().runA())->name, std::string("vanilla-1m"));
    }

    void whoReadsAnotherRunIsLeftThere() {
        Stage stage;
        MainWindow& window = stage.window;
        window.resize(1200, 850);
        const QString trace = stage.make(u"read.ponder"_s);
        QVERIFY(stage.shows(trace));
        const RunKey a = window.selection().runA();
        const RunKey b = window.selection().runB();
        QVERIFY(b.isValid());
        const QString go = stage.folder.filePath(u"go"_s);
        window.runs().thinker().setProgram(stage.program(
            u"engine.sh"_s, script(30, "while [ ! -e '" + go.toUtf8() + "' ]; do sleep 0.05; done\n" +
                                           "echo '{\"event\":\"recorded\",\"trace\":\"" + trace.toUtf8() +
                                           "\",\"run\":\"vanilla-1m\"}'\n")));
        window.runs().think(request_in(stage));
        QTRY_COMPARE(window.selection().runA(), window.runs().thinker().key());
        // A word that is clicked stays pinned; the newest one is followed again.
        QTRY_VERIFY(window.selection().token() > 6); // shown, not only heard
        window.selection().setToken(3);
        QTRY_VERIFY(window.runs().thinker().tokens() > 9);
        QCOMPARE(window.selection().token(), 3);
        QTest::keyClick(&window.text().view(), Qt::Key_End, Qt::ControlModifier);
        QTRY_VERIFY(window.selection().token() > 10);
        // Another run, and a word in it.
        window.selection().setRunA(a);
        window.selection().setSequence(1);
        window.selection().setToken(5);
        window.raisePanel(u"think"_s);
        const ViewState state = window.session().viewState();
        QTRY_COMPARE(window.runs().thinker().tokens(), 30);
        QVERIFY(window.session().viewState() == state);
        QVERIFY(window.data().isLive(Thinker::name()));
        // The way back is in the list of runs.
        QVERIFY(window.topBar().runA().findText(u"thinking"_s, Qt::MatchContains) >= 0);
        QFile sign(go);
        QVERIFY(sign.open(QIODevice::WriteOnly));
        QTRY_VERIFY(!window.data().isLive(Thinker::name()));
        QTRY_VERIFY(!window.runs().thinker().isRunning());
        QVERIFY(window.session().viewState() == state);
        QCOMPARE(window.selection().runB(), b);
    }

    void aModelThatBeginsLateTakesNobodyAway() {
        // Its weights take a while; meanwhile the user has gone to another run.
        Stage stage;
        MainWindow& window = stage.window;
        QVERIFY(stage.shows(stage.make(u"read.ponder"_s)));
        const RunKey b = window.selection().runB();
        window.runs().thinker().setProgram(
            stage.program(u"engine.sh"_s, "sleep 0.3\n" + script(4, "exec sleep 600\n")));
        window.runs().think(request_in(stage));
        window.selection().setRunA(b);
        QTRY_VERIFY(window.runs().thinker().tokens() >= 3);
        QCOMPARE(window.selection().runA(), b);
    }

    void closingWhileAModelGeneratesAsks() {
        Stage stage;
        MainWindow& window = stage.window;
        window.show();
        window.runs().thinker().setProgram(stage.program(u"engine.sh"_s, script(4, "exec sleep 600\n")));
        window.runs().think(request_in(stage));
        QTRY_VERIFY(window.runs().thinker().tokens() >= 3);
        int asked = 0;
        const auto answer = [&](QMessageBox::StandardButton button) {
            QTimer::singleShot(0, &window, [&asked, button] {
                auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
                QVERIFY(box != nullptr);
                ++asked;
                box->button(button)->click();
            });
        };
        answer(QMessageBox::No);
        QVERIFY(!window.close());
        QVERIFY(window.isVisible() && window.runs().thinker().isRunning());
        answer(QMessageBox::Yes);
        QVERIFY(window.close());
        QCOMPARE(asked, 2);
    }

    void aRunWithoutItsFirstStepIsWaitedFor() {
        // The panels say that something comes, not that the run has to be recorded again.
        Stage stage;
        MainWindow& window = stage.window;
        window.resize(1200, 850);
        window.show();
        window.runs().thinker().setProgram(
            stage.program(u"engine.sh"_s, "echo '" + start + "'\nexec sleep 600\n"));
        window.runs().think(request_in(stage));
        QTRY_COMPARE(window.selection().runA(), window.runs().thinker().key());
        QVERIFY(window.data().signalsOf(window.runs().thinker().key()).empty());
        QVERIFY(window.data().isBeginning(window.runs().thinker().key()));
        window.raisePanel(u"heatmap"_s);
        const QString waiting = window.panel<HeatmapView>().canvas()->hint();
        const QString trace =
            stage.make(u"basic.ponder"_s, {.sequences = 1, .tokens = 50, .withSignals = false});
        window.open(trace);
        QTRY_VERIFY(window.data().isOpen(trace));
        window.selection().setRunA({trace, 1});
        QVERIFY(!window.data().isBeginning({trace, 1}));
        QVERIFY(window.panel<HeatmapView>().canvas()->hint() != waiting);
    }

    void thePanelMakesTheRequest() {
        Stage stage;
        stage.window.show();
        stage.window.runs().showThink();
        ThinkPanel& panel = stage.window.runs().thinkPanel();
        ThinkRequest wanted = request_in(stage);
        wanted.tokens = 7;
        wanted.temperature = 0.5;
        wanted.topK = 9;
        wanted.topP = 0.5;
        wanted.seed = 3;
        panel.setRequest(wanted);
        QSignalSpy asked(&panel, &ThinkPanel::thinkRequested);
        stage.window.runs().thinker().setProgram(stage.program(u"engine.sh"_s, "exit 2\n"));
        QTest::keyClick(panel.findChild<QPlainTextEdit*>(), Qt::Key_Return, Qt::ControlModifier);
        QCOMPARE(asked.size(), 1);
        const auto made = asked[0][0].value<ThinkRequest>();
        const QStringList arguments = generate_arguments(made);
        QCOMPARE(arguments.mid(0, 2), (QStringList{u"generate"_s, wanted.checkpoint}));
        for (const char* one : {"--prompt=ab", "--tokens=7", "--temperature=0.5", "--top-k=9", "--top-p=0.5",
                                "--seed=3", "--json"}) {
            QVERIFY2(arguments.contains(QLatin1String(one)), one);
        }
        wanted.prompt = u"--help"_s;
        QVERIFY(generate_arguments(wanted).contains(u"--prompt=--help"_s));
        QTRY_VERIFY(!stage.window.runs().thinker().isRunning());
    }

    void thinkingBeginsWithTheModelOfRunA() {
        Stage stage;
        stage.window.show();
        ThinkPanel& panel = stage.window.runs().thinkPanel();
        const QString model = stage.folder.filePath(u"made/up/adaponderlm-1m"_s);
        QVERIFY(QDir().mkpath(model));
        stage.window.open(stage.make(u"story.ponder"_s));
        QVERIFY(stage.settle());
        stage.window.selection().setRunA({stage.window.selection().runA().trace, 1});
        QCOMPARE(panel.request().checkpoint, model); // a click on its tab shows it, too
        stage.window.runs().showThink();
        QCOMPARE(panel.request().checkpoint, model);
        // What was chosen stays.
        panel.setRequest(request_in(stage));
        stage.window.runs().showThink();
        QCOMPARE(panel.request().checkpoint, request_in(stage).checkpoint);
    }

    void furtherOptionsArePassedOn() {
        Stage stage;
        stage.window.show();
        ThinkPanel& panel = stage.window.runs().thinkPanel();
        stage.window.runs().thinker().setProgram(stage.program(u"engine.sh"_s, "exit 2\n"));
        ThinkRequest wanted = request_in(stage);
        wanted.more = QStringList{u"--steps=3"_s, u"--kv=skip"_s, u"--initial-state=zero"_s};
        panel.setRequest(wanted);
        QSignalSpy asked(&panel, &ThinkPanel::thinkRequested);
        QTest::keyClick(panel.findChild<QPlainTextEdit*>(), Qt::Key_Return, Qt::ControlModifier);
        QCOMPARE(asked.size(), 1);
        const QStringList arguments = generate_arguments(asked[0][0].value<ThinkRequest>());
        for (const QString& one : wanted.more) {
            QVERIFY2(arguments.contains(one), qPrintable(one));
        }
        QTRY_VERIFY(!stage.window.runs().thinker().isRunning());
        // Remembered by the next window.
        MainWindow next(stage.theme, stage.settings);
        QCOMPARE(next.runs().thinkPanel().request().more, wanted.more);
    }

    void whatIfRunsTheSameTokensAgain() {
        Stage stage;
        const QString path = stage.make(u"asked.ponder"_s, {.sequences = 2, .tokens = 60});
        QVERIFY(stage.shows(path));
        const QString said = stage.folder.filePath(u"arguments"_s);
        // What it says to have recorded is a run that is there.
        const QByteArray answer = "echo '{\"trace\":\"" + path.toUtf8() + "\",\"run\":\"" +
                                  QByteArray::fromStdString(stage.window.data().runs(path).back().name) +
                                  "\"}'\n";
        stage.window.runs().recorder().setProgram(
            stage.program(u"engine.sh"_s, "printf '%s\\n' \"$@\" > '" + said.toUtf8() + "'\n" + answer));
        // Without the checkpoint it cannot be asked, and the window says so.
        stage.window.whatIf().giveSteps(9, 3);
        QVERIFY(stage.window.messages().has("checkpoint.missing"));
        const RunInfo run = *stage.window.data().run(stage.window.selection().runA());
        const QString model = stage.folder.filePath(QString::fromStdString(run.checkpoint));
        if (QFileInfo(QString::fromStdString(run.checkpoint)).isAbsolute()) {
            QSKIP("the sample trace names an absolute checkpoint");
        }
        QVERIFY(QDir().mkpath(model));
        QFile config(model + u"/config.json"_s);
        QVERIFY(config.open(QIODevice::WriteOnly));
        config.write("{}");
        config.close();
        stage.window.selection().setSequence(1);
        stage.window.whatIf().giveSteps(9, 3);
        QTRY_VERIFY(QFile::exists(said) && !stage.window.runs().recorder().isRunning());
        QFile file(said);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QList<QByteArray> arguments = file.readAll().split('\n');
        QVERIFY(arguments.contains("--force-steps=1/8:3")); // token 9 was predicted at token 8
        QVERIFY(arguments.contains("--from=" + path.toUtf8() + '#' + QByteArray::fromStdString(run.name)));
        QVERIFY(arguments.contains("--output=" + stage.window.runs().scratch().trace().toUtf8()));
        QTRY_VERIFY(stage.window.text().view().showsDifference());
        const auto back = [&] { // to the run that the questions are about
            QTRY_VERIFY(!(stage.window.selection().runA() == RunKey{path, run.id}));
            stage.window.selection().setRunA({path, run.id});
            stage.window.selection().setSequence(1);
        };
        back();

        // A state of another word in the place of this one's.
        QVERIFY(QFile::remove(said));
        stage.window.whatIf().putState(9, 2);
        QVERIFY2(!stage.window.runs().recorder().isRunning(), "none was taken");
        stage.window.whatIf().takeState(4, 1, 5);
        stage.window.whatIf().putState(9, 2);
        QTRY_VERIFY(QFile::exists(said) && !stage.window.runs().recorder().isRunning());
        QFile again(said);
        QVERIFY(again.open(QIODevice::ReadOnly));
        const QList<QByteArray> carried = again.readAll().split('\n');
        QVERIFY(carried.contains("--patched-only"));
        const auto patch = std::find_if(carried.begin(), carried.end(),
                                        [](const QByteArray& one) { return one.startsWith("--patch="); });
        QVERIFY(patch != carried.end());
        QFile patches(QString::fromUtf8(patch->mid(8)));
        QVERIFY(patches.open(QIODevice::ReadOnly));
        const QJsonArray all = QJsonDocument::fromJson(patches.readAll()).object()[u"patches"_s].toArray();
        QCOMPARE(all.size(), 1);
        const QJsonObject only = all.at(0).toObject();
        const auto place = [](int token, int step) {
            return QJsonObject{{u"sequence"_s, 1}, {u"token"_s, token}, {u"step"_s, step}, {u"layer"_s, 5}};
        };
        QCOMPARE(only[u"to"_s].toObject(), place(8, 2));
        QCOMPARE(only[u"from"_s].toObject(), place(3, 1));

        back();

        // The same from the menu: two steps for one word, then one for another.
        const auto choose = [&](qint64 word, const QString& begin, int item) {
            stage.window.selection().setToken(word);
            for (QMenu* menu : stage.window.findChildren<QMenu*>()) {
                if (menu->title().startsWith(u"&What If"_s)) {
                    Q_EMIT menu->aboutToShow();
                    for (QAction* action : menu->actions()) {
                        if (action->menu() != nullptr && action->text().startsWith(begin)) {
                            action->menu()->actions().at(item)->trigger();
                            return true;
                        }
                    }
                }
            }
            return false;
        };
        QVERIFY(choose(6, u"Copy the State of"_s, 0));
        QVERIFY(QFile::remove(said));
        QVERIFY(choose(11, u"Paste the State of"_s, 0));
        QTRY_VERIFY(QFile::exists(said) && !stage.window.runs().recorder().isRunning());
        QFile third(said);
        QVERIFY(third.open(QIODevice::ReadOnly));
        const QByteArray name = third.readAll();
        QVERIFY2(name.contains("with the state of 5 (0) at 10 (0)"), name.constData());

        back();

        // A second question while the first is computed leaves the file that it reads.
        QVERIFY(QFile::remove(said));
        stage.window.runs().recorder().setProgram(
            stage.program(u"slow.sh"_s, "printf '%s\\n' \"$@\" > '" + said.toUtf8() + "'\nexec sleep 600\n"));
        stage.window.whatIf().putState(9, 2);
        QTRY_VERIFY(QFile::exists(said) && QFileInfo(said).size() > 0);
        QFile fourth(said);
        QVERIFY(fourth.open(QIODevice::ReadOnly));
        QString read;
        for (const QByteArray& one : fourth.readAll().split('\n')) {
            read = one.startsWith("--patch=") ? QString::fromUtf8(one.mid(8)) : read;
        }
        QVERIFY(QFile::exists(read));
        stage.window.whatIf().putState(11, 2);
        QVERIFY(QFile::exists(read));
        QVERIFY(stage.window.messages().has("recording.running"));
        stage.window.runs().recorder().cancel();
        QTRY_VERIFY(!stage.window.runs().recorder().isRunning());
    }

    void statesAreTakenOfLayersThatTheRunHas() {
        Stage stage;
        const QString path = stage.make(u"layers.ponder"_s, {.sequences = 1, .tokens = 60});
        QVERIFY(stage.shows(path));
        const RunInfo run = *stage.window.data().run(stage.window.selection().runA());
        stage.window.selection().setToken(9);
        const auto offered = [&] {
            QStringList items;
            for (QMenu* menu : stage.window.findChildren<QMenu*>()) {
                if (menu->title().startsWith(u"&What If"_s)) {
                    Q_EMIT menu->aboutToShow();
                    for (QAction* action : menu->actions()) {
                        if (action->menu() != nullptr && action->text().startsWith(u"Copy the State"_s)) {
                            for (QAction* item : action->menu()->actions()) {
                                items << item->text();
                            }
                        }
                    }
                }
            }
            return items.join(u'\n');
        };
        stage.window.selection().setLayer(static_cast<int>(run.layers) - 1);
        QVERIFY2(offered().contains(u"layer %1"_s.arg(run.layers - 1)), qPrintable(offered()));
        stage.window.selection().setLayer(static_cast<int>(run.layers)); // left by another run
        QVERIFY2(!offered().contains(u"layer"_s), qPrintable(offered()));
    }
};

QTEST_MAIN(DesktopLiveTest)
#include "desktop_live_test.moc"
