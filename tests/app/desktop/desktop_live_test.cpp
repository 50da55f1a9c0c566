// SPDX-License-Identifier: GPL-3.0-or-later
// Live: lines of an engine become a run that all views show; time; what if; an engine that dies.
#include "app/desktop/think_panel.h"
#include "app/desktop/top_bar.h"
#include "tests/app/desktop/desktop_stage.h"
#include "views/heatmap/heatmap_view.h"
#include "views/heatmap/step_map_canvas.h"
#include "views/inspector/inspector_view.h"

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

const QByteArray start =
    R"({"event":"start","checkpoint":"/models/tiny","method":"ponderlm","max_steps":2,"layers":2,)"
    R"("vocab_size":256,"device":"cpu","dtype":"float32","prompt_tokens":2,"title":"ab","signals":[)"
    R"({"name":"nll","axes":["token","step"],"unit":"nats","title":"NLL by step"},)"
    R"({"name":"candidate_ids","dtype":"I32","axes":["token","step","candidate"]}],)"
    R"("token":{"id":97,"bytes":"61"}})";

QByteArray token(int position, int id, const char* hex, const char* values = "[3.5,2.5,1.5]") {
    return R"({"event":"token","position":)" + QByteArray::number(position) + R"(,"token":{"id":)" +
           QByteArray::number(id) + R"(,"bytes":")" + hex +
           R"("},"nll":1.5,"entropy":2.0,"max_probability":0.5,"rank":2,"steps":2,"flops":1000,)"
           R"("names":[{"id":98,"bytes":"62"}],"signals":{"nll":{"shape":[1,3],"values":)" +
           values + R"(},"candidate_ids":{"shape":[1,3,1],"values":[98,98,98]}}})";
}

/// A stand-in for `ponderscope generate`.
QByteArray script(int tokens, const QByteArray& then) {
    QByteArray text = "echo '" + start + "'\n";
    for (int i = 1; i < tokens; ++i) {
        text += "echo '" + token(i, 98, "62") + "'\nsleep 0.03\n";
    }
    return text + then;
}

/// The engine goes on until the test ends it.
const QByteArray no_end = "exec sleep 600\n";

struct Stage : testing::Stage {
    Stage() {
        window.resize(1200, 850);
        window.show();
    }
    [[nodiscard]] ThinkRequest request() const {
        write(u"model/config.json"_s, "{}");
        ThinkRequest request;
        request.checkpoint = folder.filePath(u"model"_s);
        request.prompt = u"ab"_s;
        request.trace = folder.filePath(u"thought.ponder"_s);
        return request;
    }
    /// Generates with a program that says \p script.
    void think(const QByteArray& script) {
        thinker.setProgram(program(u"engine.sh"_s, script));
        window.runs().think(request());
    }
    [[nodiscard]] QString status() const { return window.runs().thinkPanel().status(); }
    /// The items of the submenu of "What If" that begins so.
    [[nodiscard]] QList<QAction*> whatIf(const QString& begin) const {
        for (QMenu* menu : window.findChildren<QMenu*>()) {
            if (menu->title().startsWith(u"&What If"_s)) {
                Q_EMIT menu->aboutToShow();
                for (const QAction* action : menu->actions()) {
                    if (action->menu() != nullptr && action->text().startsWith(begin)) {
                        return action->menu()->actions();
                    }
                }
            }
        }
        return {};
    }

    Thinker& thinker = window.runs().thinker();
};

QByteArray recorded(const QString& trace) {
    return "echo '{\"event\":\"recorded\",\"trace\":\"" + trace.toUtf8() + "\",\"run\":\"vanilla-1m\"}'\n";
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
        stage.think(script(12, no_end));
        QTRY_VERIFY(stage.thinker.tokens() >= 4);
        QTRY_VERIFY(stage.window.text().view().sequence());
        QCOMPARE(stage.window.selection().runA(), stage.thinker.key());
        QTRY_COMPARE(stage.thinker.tokens(), 12);
        QTRY_COMPARE(static_cast<int>(stage.window.text().view().sequence()->tokens.size()), 12);
        QVERIFY(stage.window.topBar().runA().currentText().contains(u"thinking"_s));
        QTRY_COMPARE(stage.window.selection().token(), 11); // the newest
        // Views that read files say why they wait; nothing asks for a file of that name.
        stage.window.raisePanel(u"halting"_s);
        stage.window.raisePanel(u"lab"_s);
        QTest::qWait(50);
        QVERIFY2(stage.window.errors().isEmpty(), qPrintable(stage.window.errors().join(u' ')));
        stage.thinker.cancel();
        QTRY_VERIFY(!stage.thinker.isRunning());
        QVERIFY(stage.window.text().view().sequence()); // what was said stays
    }

    void theMeanSaysHowManyPredictionsItIsOver() {
        Stage stage;
        // Of the last two tokens, drawn from outside the candidates, nothing is known before the end.
        QByteArray drawn = script(5, {});
        for (int i = 5; i < 7; ++i) {
            drawn += "echo '" + token(i, 98, "62").replace("\"nll\":1.5,", "\"nll\":null,") + "'\n";
        }
        stage.think(drawn + no_end);
        QTRY_COMPARE(stage.thinker.tokens(), 7);
        QTRY_VERIFY2(stage.window.statusText().contains(u"7 tokens · NLL 1.500 over 4 of 6 predicted"_s),
                     qPrintable(stage.window.statusText()));
        QVERIFY2(stage.window.statusText().contains(u"sequence 1 of 1"_s),
                 qPrintable(stage.window.statusText()));
    }

    void anEngineThatDiesLeavesWhatItSaid() {
        Stage stage;
        stage.think(script(5, "kill -9 $$\n"));
        QVERIFY(testing::says(stage.window, "generation.died"));
        QCOMPARE(static_cast<int>(stage.window.text().view().sequence()->tokens.size()), 5);
        // And it can be asked again.
        stage.think(script(3, ""));
        QTRY_COMPARE(stage.thinker.tokens(), 3);
        QTRY_VERIFY(!stage.thinker.isRunning());
    }

    void aRefusalIsTheEnginesSentence() {
        Stage stage;
        stage.think("echo 'ponderscope: no tokenizer here. [checkpoint.tokenizer]' >&2\nexit 2\n");
        QTRY_COMPARE(stage.status(), u"no tokenizer here."_s);
        stage.window.runs().think({});
        QVERIFY(stage.status().contains(u"checkpoint"_s));
        ThinkRequest silent = stage.request();
        silent.prompt = u"  "_s;
        stage.window.runs().think(silent);
        QVERIFY(stage.status().contains(u"prompt"_s));
    }

    void whoReadsAnotherRunIsLeftThere() {
        Stage stage;
        MainWindow& window = stage.window;
        const QString trace = stage.make(u"read.ponder"_s);
        QVERIFY(stage.shows(trace));
        const RunKey a = window.selection().runA();
        const RunKey b = window.selection().runB();
        QVERIFY(b.isValid());
        const QString go = stage.folder.filePath(u"go"_s);
        stage.think(
            script(30, "while [ ! -e '" + go.toUtf8() + "' ]; do sleep 0.05; done\n" + recorded(trace)));
        QTRY_COMPARE(window.selection().runA(), stage.thinker.key());
        // A word that is clicked stays pinned; the newest one is followed again.
        QTRY_VERIFY(window.selection().token() > 6); // shown, not only heard
        window.selection().setToken(3);
        QTRY_VERIFY(stage.thinker.tokens() > 9);
        QCOMPARE(window.selection().token(), 3);
        QTest::keyClick(&window.text().view(), Qt::Key_End, Qt::ControlModifier);
        QTRY_VERIFY(window.selection().token() > 10);
        // Another run, and a word in it.
        window.selection().setRunA(a);
        window.selection().setSequence(1);
        window.selection().setToken(5);
        window.raisePanel(u"think"_s);
        const ViewState state = window.session().viewState();
        QTRY_COMPARE(stage.thinker.tokens(), 30);
        QVERIFY(window.session().viewState() == state);
        QVERIFY(window.data().isLive(Thinker::name()));
        // The way back is in the list of runs.
        QVERIFY(window.topBar().runA().findText(u"thinking"_s, Qt::MatchContains) >= 0);
        stage.write(go, {});
        QTRY_VERIFY(!window.data().isLive(Thinker::name()));
        QTRY_VERIFY(!stage.thinker.isRunning());
        QVERIFY(window.session().viewState() == state);
        QCOMPARE(window.selection().runB(), b);
    }

    void aModelThatBeginsLateTakesNobodyAway() {
        // Its weights take a while; meanwhile the user has gone to another run.
        Stage stage;
        MainWindow& window = stage.window;
        QVERIFY(stage.shows(stage.make(u"read.ponder"_s)));
        const RunKey b = window.selection().runB();
        stage.think("sleep 0.3\n" + script(4, no_end));
        window.selection().setRunA(b);
        QTRY_VERIFY(stage.thinker.tokens() >= 3);
        QCOMPARE(window.selection().runA(), b);
    }

    void closingWhileAModelGeneratesAsks() {
        Stage stage;
        MainWindow& window = stage.window;
        stage.think(script(4, no_end));
        QTRY_VERIFY(stage.thinker.tokens() >= 3);
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
        QVERIFY(window.isVisible() && stage.thinker.isRunning());
        answer(QMessageBox::Yes);
        QVERIFY(window.close());
        QCOMPARE(asked, 2);
    }

    void aRunWithoutItsFirstStepIsWaitedFor() {
        // The panels say that something comes, not that the run has to be recorded again.
        Stage stage;
        MainWindow& window = stage.window;
        stage.think("echo '" + start + "'\n" + no_end);
        QTRY_COMPARE(window.selection().runA(), stage.thinker.key());
        QVERIFY(window.data().signalsOf(stage.thinker.key()).empty());
        QVERIFY(window.data().isBeginning(stage.thinker.key()));
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
        stage.window.runs().showThink();
        ThinkPanel& panel = stage.window.runs().thinkPanel();
        ThinkRequest wanted = stage.request();
        wanted.tokens = 7;
        wanted.temperature = 0.5;
        wanted.topK = 9;
        wanted.topP = 0.5;
        wanted.seed = 3;
        wanted.more = QStringList{u"--steps=3"_s, u"--kv=skip"_s, u"--initial-state=zero"_s};
        panel.setRequest(wanted);
        QSignalSpy asked(&panel, &ThinkPanel::thinkRequested);
        stage.thinker.setProgram(stage.program(u"engine.sh"_s, "exit 2\n"));
        QTest::keyClick(panel.findChild<QPlainTextEdit*>(), Qt::Key_Return, Qt::ControlModifier);
        QCOMPARE(asked.size(), 1);
        const auto made = asked[0][0].value<ThinkRequest>();
        const QStringList arguments = generate_arguments(made);
        QCOMPARE(arguments.mid(0, 2), (QStringList{u"generate"_s, wanted.checkpoint}));
        for (const char* one : {"--prompt=ab", "--tokens=7", "--temperature=0.5", "--top-k=9", "--top-p=0.5",
                                "--seed=3", "--json", "--steps=3", "--kv=skip", "--initial-state=zero"}) {
            QVERIFY2(arguments.contains(QLatin1String(one)), one);
        }
        wanted.prompt = u"--help"_s;
        QVERIFY(generate_arguments(wanted).contains(u"--prompt=--help"_s));
        QTRY_VERIFY(!stage.thinker.isRunning());
        // The further options are remembered by the next window.
        MainWindow next(stage.theme, stage.settings);
        QCOMPARE(next.runs().thinkPanel().request().more, wanted.more);
    }

    void thinkingBeginsWithTheModelOfRunA() {
        Stage stage;
        ThinkPanel& panel = stage.window.runs().thinkPanel();
        const QString model = stage.folder.filePath(u"made/up/adaponderlm-1m"_s);
        QVERIFY(QDir().mkpath(model));
        QVERIFY(stage.shows(stage.make(u"story.ponder"_s)));
        stage.window.selection().setRunA({stage.window.selection().runA().trace, 1});
        QCOMPARE(panel.request().checkpoint, model); // a click on its tab shows it, too
        stage.window.runs().showThink();
        QCOMPARE(panel.request().checkpoint, model);
        // What was chosen stays.
        panel.setRequest(stage.request());
        stage.window.runs().showThink();
        QCOMPARE(panel.request().checkpoint, stage.request().checkpoint);
    }

    void whatIfRunsTheSameTokensAgain() {
        Stage stage;
        const QString path = stage.make(u"asked.ponder"_s, {.sequences = 2, .tokens = 60});
        QVERIFY(stage.shows(path));
        Recorder& recorder = stage.window.runs().recorder();
        WhatIf& whatIf = stage.window.whatIf();
        const QString said = stage.folder.filePath(u"arguments"_s);
        const QByteArray say = "printf '%s\\n' \"$@\" > '" + said.toUtf8() + "'\n";
        // What it says to have recorded is a run that is there.
        const QByteArray answer = "echo '{\"trace\":\"" + path.toUtf8() + "\",\"run\":\"" +
                                  QByteArray::fromStdString(stage.window.data().runs(path).back().name) +
                                  "\"}'\n";
        recorder.setProgram(stage.program(u"engine.sh"_s, say + answer));
        // Without the checkpoint it cannot be asked, and the window says so.
        whatIf.giveSteps(9, 3);
        QVERIFY(stage.window.messages().has("checkpoint.missing"));
        const RunInfo run = *stage.window.data().run(stage.window.selection().runA());
        stage.write(QString::fromStdString(run.checkpoint) + u"/config.json"_s, "{}");
        stage.window.selection().setSequence(1);
        // The arguments of the next call of the engine, and the value of one.
        QList<QByteArray> arguments;
        const auto waitForArguments = [&] {
            QTRY_VERIFY(QFile::exists(said) && !recorder.isRunning());
            arguments = Stage::read(said).split('\n');
            QVERIFY(QFile::remove(said));
        };
        const auto value = [&](const QByteArray& option) {
            const auto found = std::ranges::find_if(
                arguments, [&](const QByteArray& one) { return one.startsWith(option); });
            return found == arguments.end() ? QByteArray() : found->mid(option.size());
        };
        const auto back = [&] { // to the run that the questions are about
            QTRY_VERIFY(!(stage.window.selection().runA() == RunKey{path, run.id}));
            stage.window.selection().setRunA({path, run.id});
            stage.window.selection().setSequence(1);
        };
        whatIf.giveSteps(9, 3);
        waitForArguments();
        QCOMPARE(value("--force-steps="), "1/8:3"); // token 9 was predicted at token 8
        QCOMPARE(value("--from="), path.toUtf8() + '#' + QByteArray::fromStdString(run.name));
        QCOMPARE(value("--output="), stage.window.runs().scratch().toUtf8());
        QTRY_VERIFY(stage.window.text().view().showsDifference());
        back();

        // A state of another word in the place of this one's.
        whatIf.putState(9, 2);
        QVERIFY2(!recorder.isRunning(), "none was taken");
        whatIf.takeState(4, 1, 5);
        whatIf.putState(9, 2);
        waitForArguments();
        QVERIFY(arguments.contains("--patched-only"));
        const QJsonArray patches =
            QJsonDocument::fromJson(Stage::read(QString::fromUtf8(value("--patch="))))[u"patches"_s]
                .toArray();
        QCOMPARE(patches.size(), 1);
        const auto place = [](int token, int step) {
            return QJsonObject{{u"sequence"_s, 1}, {u"token"_s, token}, {u"step"_s, step}, {u"layer"_s, 5}};
        };
        QCOMPARE(patches[0][u"to"_s].toObject(), place(8, 2));
        QCOMPARE(patches[0][u"from"_s].toObject(), place(3, 1));
        back();

        // The same from the menu: the first step of one word, then of another.
        stage.window.selection().setToken(6);
        stage.whatIf(u"Copy the State of"_s).at(0)->trigger();
        stage.window.selection().setToken(11);
        stage.whatIf(u"Paste the State of"_s).at(0)->trigger();
        waitForArguments();
        QVERIFY2(value("--name=").contains("token 5 step 0") && value("--name=").contains("token 10 step 0"),
                 value("--name=").constData());
        back();

        // A second question while the first is computed leaves the file that it reads.
        recorder.setProgram(stage.program(u"slow.sh"_s, say + no_end));
        whatIf.putState(9, 2);
        QTRY_VERIFY(Stage::read(said).contains("--patch="));
        arguments = Stage::read(said).split('\n');
        whatIf.putState(11, 2);
        QVERIFY(QFile::exists(QString::fromUtf8(value("--patch="))));
        QVERIFY(stage.window.messages().has("recording.running"));
        recorder.cancel();
        QTRY_VERIFY(!recorder.isRunning());
    }

    void statesAreTakenOfLayersThatTheRunHas() {
        Stage stage;
        QVERIFY(stage.shows(stage.make(u"layers.ponder"_s, {.sequences = 1, .tokens = 60})));
        const auto layers =
            static_cast<int>(stage.window.data().run(stage.window.selection().runA())->layers);
        stage.window.selection().setToken(9);
        const auto offered = [&](const QString& state) {
            const QList<QAction*> items = stage.whatIf(u"Copy the State of"_s);
            return std::ranges::any_of(items,
                                       [&](const QAction* item) { return item->text().contains(state); });
        };
        stage.window.selection().setLayer(layers - 1);
        QVERIFY(offered(u"layer %1"_s.arg(layers - 1)));
        stage.window.selection().setLayer(layers); // left by another run
        QVERIFY(offered(u"step"_s) && !offered(u"layer"_s));
    }
};

QTEST_MAIN(DesktopLiveTest)
#include "desktop_live_test.moc"
