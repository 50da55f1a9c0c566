// SPDX-License-Identifier: GPL-3.0-or-later
// The window on traces and checkpoints of "another machine": another process, behind a line that can be cut
// (tests/support/far_shell.py). With the real program.
#include "app/desktop/engine_process.h"
#include "app/desktop/record_dialog.h"
#include "core/remote/address.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/writer.h"
#include "tests/app/desktop/desktop_stage.h"
#include "tests/core/trace/sample.h"
#include "tests/support/tiny_checkpoint.h"
#include "views/library/library_model.h"
#include "views/library/library_panel.h"
#include "views/text/span_bar.h"

#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::comes;

namespace {

struct Stage : testing::Stage {
    /// Each test has a machine of its own: connections stay for as long as the process lives.
    explicit Stage(const QString& name, QJsonObject line = {}) : machine(u"ssh://"_s + name) {
        line[u"cut"_s] = cut;
        remote::settings() = {PONDERSCOPE_FAR_SHELL, PONDERSCOPE_PROGRAM, 0.5, false};
        qputenv("FAR_SHELL", QJsonDocument(line).toJson(QJsonDocument::Compact));
        window.runs().recorder().setProgram(QStringLiteral(PONDERSCOPE_PROGRAM));
        window.show();
    }
    [[nodiscard]] QString there(const QString& name) const { return machine + folder.filePath(name); }
    void makeModel(std::int64_t positions = 64) const {
        testing::TinyCheckpoint{.max_positions = positions, .pondering_steps = 3}.write(
            folder.filePath(u"model"_s).toStdString());
    }
    [[nodiscard]] bool says(const char* id, const QString& part = {}) {
        return testing::says(window, id, part);
    }
    QString machine;
    QString cut = folder.filePath(u"cut"_s); ///< the line is cut while there is such a file
};

} // namespace

class DesktopRemoteTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void aTraceThereOpensAndGrows() {
        Stage stage(u"grows"_s, {{u"greeting"_s, u"echo Welcome;"_s}});
        const QString path = stage.folder.filePath(u"a trace.ponder"_s);
        TraceWriter writer(path.toStdString());
        testing::write_sample_run(writer, "first", 1, {300, 200}, 100);
        const QString url = stage.there(u"a trace.ponder"_s);
        QVERIFY(stage.shows(url + u"#first"_s));
        QCOMPARE(stage.window.data().traces(), QStringList{url});
        QCOMPARE(stage.window.selection().runA().trace, url);
        QVERIFY(stage.window.windowTitle().contains(u"a trace.ponder"_s));
        QVERIFY(stage.window.windowTitle().contains(u"grows"_s));
        QVERIFY(stage.window.statusText().contains(u"grows"_s));
        QCOMPARE(stage.window.text().view().sequence()->tokens.size(), std::size_t{300});
        QVERIFY(stage.window.messages().sentences().isEmpty());
        testing::write_sample_run(writer, "second", 2, {400}, 100);
        QVERIFY(comes([&] { return stage.window.data().runs(url).size() == 2; }));
        writer.finish();
        // What lies there is read, and fetched; not changed.
        QMenu menu;
        stage.window.panel<LibraryPanel>().fillMenu(
            menu, stage.window.panel<LibraryPanel>().model().indexOf(stage.window.selection().runA()));
        QStringList open;
        for (const QAction* action : menu.actions()) {
            open << (action->isEnabled() ? action->text() : QString());
        }
        QVERIFY(open.contains(u"Copy to This Machine…"_s));
        QVERIFY(!open.contains(u"Rename"_s));
        QVERIFY(
            !(stage.window.panel<LibraryPanel>().model().indexOf(stage.window.selection().runA()).flags() &
              Qt::ItemIsEditable)); // by F2
        QVERIFY(!open.contains(u"Remove from Trace…"_s));
        QVERIFY(QFile::remove(path));
        QVERIFY(stage.says("trace.removed", url));
    }

    void aCutConnectionIsSaidAndGoesOn() {
        Stage stage(u"cuts"_s);
        stage.make(u"t.ponder"_s, {.sequences = 12, .tokens = 3000});
        QVERIFY(stage.shows(stage.there(u"t.ponder"_s)));
        stage.write(stage.cut, {});
        QVERIFY(stage.says("connection.cut", u"ssh://cuts: "_s));
        stage.window.selection().setSequence(11); // cannot be had now; the window goes on
        QVERIFY(comes([&] { return !stage.window.isBusy(); }));
        QVERIFY(!stage.window.grab().isNull());
        QVERIFY(QFile::remove(stage.cut));
        QVERIFY(stage.says("connection.back", u"cuts"_s));
        QVERIFY(comes([&] {
            const auto shown = stage.window.text().view().sequence();
            return shown && shown->sequence == 11;
        }));
    }

    void shardsThereAreOneRunHere() {
        Stage stage(u"cluster"_s);
        QVERIFY(QDir(stage.folder.path()).mkdir(u"run"_s));
        const QString trace = stage.folder.filePath(u"run/a.ponder"_s);
        testing::write_sample_shards(trace.toStdString(), "whole", 200, 3);
        const QString shard = QString::fromStdString(shard_path(trace.toStdString(), 1, 3).string());
        for (const char* name : {"run", "run/a.ponder"}) {
            const QString url = stage.there(QLatin1String(name));
            stage.window.open(url + u"#whole"_s);
            QVERIFY2(stage.settle(), name);
            QCOMPARE(stage.window.selection().runA().trace, url);
            QCOMPARE(stage.window.data().sequences(stage.window.selection().runA()).size(), std::size_t{3});
            QCOMPARE(stage.window.data().files(url).at(1), u"ssh://cluster"_s + shard);
            QTest::qWait(2500); // it is watched, and nothing is missing
            QVERIFY2(stage.window.messages().sentences().isEmpty(), name);
            stage.window.data().close(url);
        }
        QVERIFY(stage.shows(stage.there(u"run/a.ponder"_s)));
        QVERIFY(QFile::remove(shard));
        QVERIFY(stage.says("trace.removed", u"a.r0001-of-0003.ponder"_s));
    }

    void whatIsSaidOfTokensThereIsSeenHere() {
        Stage stage(u"notes"_s);
        const QString path = stage.make(u"t.ponder"_s);
        const QString url = stage.there(u"t.ponder"_s);
        QVERIFY(stage.shows(url));
        // Spans cannot be labelled from here, and the button says why.
        stage.window.text().view().setSpan({3, 9});
        const auto buttons = stage.window.text().findChildren<QToolButton*>();
        const auto place = std::ranges::find_if(
            buttons, [](const QToolButton* button) { return button->text() == u"Label…"_s; });
        QVERIFY(place != buttons.end());
        const QToolButton* label = *place;
        QVERIFY(!label->isEnabled());
        QVERIFY2(label->toolTip().contains(u"notes"_s), qPrintable(label->toolTip()));
        stage.window.text().spanBar().toggleBookmark();
        QVERIFY(stage.says("annotation.failed", u"ssh notes ponderscope annotate"_s));
        // Annotated there, it is shown here.
        QCOMPARE(stage.window.text().view().sequence()->annotations.size(), std::size_t{0});
        const TraceReader reader = TraceReader::open(path.toStdString());
        const RunInfo run = reader.runs().front();
        Annotation mark{"mark", false, {}, {}};
        for (const SequenceInfo& sequence : reader.sequences(run.id)) {
            mark.values.emplace_back(static_cast<std::size_t>(sequence.tokens), 2.5);
        }
        put_annotations(path.toStdString(), run, reader.sequences(run.id), {mark});
        QVERIFY(
            comes([&] { return stage.window.text().view().sequence()->annotation(u"mark"_s) != nullptr; }));
    }

    void aRecordingThereGoesOnThroughACut() {
        Stage stage(u"falters"_s);
        stage.makeModel();
        // The recording waits for lines, so that it is not over before it is cut.
        const std::string pipe = stage.folder.filePath(u"lines.jsonl"_s).toStdString();
        QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
        QFile lines;
        QVERIFY(lines.open(::open(pipe.c_str(), O_RDWR | O_CLOEXEC),
                           QIODevice::WriteOnly | QIODevice::Unbuffered, QFileDevice::AutoCloseHandle));
        const auto say = [&](int count) {
            for (int i = 0; i < count; ++i) {
                QVERIFY(lines.write("{\"text\": \"word " + QByteArray::number(i * 7919) + "\"}\n") > 0);
            }
        };
        say(3);
        stage.window.open(stage.there(u"model"_s));
        QVERIFY(comes([&] { return stage.window.runs().recordDialog() != nullptr; }));
        RecordRequest request = stage.window.runs().recordDialog()->request();
        request.fromPrompt = false;
        request.textFile = stage.there(u"lines.jsonl"_s);
        request.batch = 1;
        stage.window.runs().recordDialog()->setRequest(request);
        QCOMPARE(stage.window.runs().recordDialog()->problem(), QString());
        const QSignalSpy progress(&stage.window.runs().recorder(), &Recorder::progressed);
        stage.window.runs().recordDialog()->accept();
        const auto& data = stage.window.data();
        const RunKey run{request.trace, 1};
        const auto shown = [&] { return data.sequences(run).size(); };
        QVERIFY(comes([&] { return shown() > 0 && progress.size() > 0; }));
        QVERIFY(shown() <= 3 && !data.run(run)->complete);
        stage.write(stage.cut, {});
        QVERIFY(stage.says("recording.cut", u"falters"_s));
        QVERIFY(!stage.window.runs().recorder().isRunning());
        // There it goes on to its end; here the window shows what it had.
        say(200);
        lines.close();
        const std::string trace = stage.folder.filePath(u"model.ponder"_s).toStdString();
        QVERIFY(comes([&] { return TraceReader::open(trace).runs().front().complete; }));
        QVERIFY(!stage.window.grab().isNull());
        QVERIFY(shown() <= 3);
        QVERIFY(QFile::remove(stage.cut));
        QVERIFY(stage.says("connection.back", u"falters"_s));
        QVERIFY(comes([&] {
            const RunInfo* info = data.run(run);
            return info != nullptr && info->complete && shown() == 203;
        }));
    }

    void thinkingThereIsShownHere() {
        // A long thought waits for its words to be read, so that it is not over before it is cut.
        Stage stage(u"thinks"_s,
                    {{u"greeting"_s, u"echo {}; "_s}, {u"stall"_s, QJsonArray{u"generate"_s, 400'000}}});
        stage.window.runs().thinker().setProgram(QStringLiteral(PONDERSCOPE_PROGRAM));
        stage.makeModel(512);
        ThinkRequest request;
        request.checkpoint = stage.there(u"model"_s);
        request.prompt = u"It's \"here\" & $HOME"_s;
        request.tokens = 12;
        stage.window.runs().think(request);
        QVERIFY(comes([&] {
            return !stage.window.runs().thinker().isRunning() &&
                   stage.window.data().isScratch(stage.window.selection().runA().trace);
        }));
        QVERIFY(stage.settle());
        const QString scratch = stage.window.selection().runA().trace;
        QVERIFY2(scratch.startsWith(u"ssh://thinks/tmp/"_s), qPrintable(scratch));
        const auto shown = stage.window.text().view().sequence();
        QCOMPARE(shown->tokens.size(), std::size_t{31});
        QVERIFY(QString::fromStdString(shown->text).startsWith(request.prompt));
        // Cut in the middle of a thought: a sentence, and the window goes on.
        request.tokens = 450;
        stage.window.runs().think(request);
        QVERIFY(comes([&] { return stage.window.runs().thinker().tokens() > 20; }));
        stage.write(stage.cut, {});
        QVERIFY(stage.says("generation.cut", u"thinks"_s));
        QVERIFY(!stage.window.runs().thinker().isRunning());
        QVERIFY(!stage.window.grab().isNull());
        QVERIFY(QFile::remove(stage.cut));
        QVERIFY(stage.says("connection.back", u"thinks"_s));
        // The thought was ended there, and lies beside the first.
        QVERIFY(comes([&] {
            const std::vector<RunInfo> runs = stage.window.data().runs(scratch);
            return runs.size() == 2 && runs.back().complete;
        }));
        QFile::remove(scratch.mid(12));
    }

    void aLocationIsTyped() {
        Stage stage(u"typed"_s);
        stage.make(u"t.ponder"_s);
        const auto type = [&](const QString& place) {
            QTimer::singleShot(0, [place] {
                auto* dialog = qobject_cast<QInputDialog*>(QApplication::activeModalWidget());
                QVERIFY(dialog != nullptr);
                dialog->setTextValue(place);
                dialog->accept();
            });
            stage.window.traces().openLocation();
        };
        type(u"ssh://-oProxyCommand=touch/x"_s);
        QVERIFY(stage.says("trace.unreadable", u"'-oProxyCommand=touch'"_s));
        type(stage.machine + stage.folder.path()); // a folder of traces
        QVERIFY(stage.says("trace.unreadable", stage.folder.path()));
        type(stage.there(u"t.ponder"_s));
        QVERIFY(stage.settle());
        QCOMPARE(stage.window.selection().runA().trace, stage.there(u"t.ponder"_s));
    }

    void machinesThatCannotComputeSayWhy() {
        Stage stage(u"bare"_s);
        stage.makeModel();
        const auto record = [&](const char* machine, const char* greeting) {
            const QJsonObject line{{u"greeting"_s, QString::fromLatin1(greeting)}};
            qputenv("FAR_SHELL", QJsonDocument(line).toJson(QJsonDocument::Compact));
            RecordRequest request;
            request.checkpoint =
                u"ssh://%1"_s.arg(QLatin1String(machine)) + stage.folder.filePath(u"model"_s);
            request.fromPrompt = true;
            request.prompt = u"x"_s;
            request.trace = request.checkpoint + u".ponder"_s;
            stage.window.runs().recorder().start(request);
        };
        record("old",
               "echo 'ponderscope: There is no verb serve; ponderscope --help lists them.' >&2; exit 2; ");
        QVERIFY(stage.says("recording.refused", u"There is no verb serve"_s));
        record("closed", "echo 'This account is closed.'; exit 1; ");
        QVERIFY(stage.says("recording.refused", u"closed"_s));
        remote::settings().program = "/nonexistent/ponderscope";
        record("bare", "");
        QVERIFY(stage.says("recording.refused", u"/nonexistent/ponderscope"_s));
        QVERIFY(!QFile::exists(stage.folder.filePath(u"model.ponder"_s)));
        // A folder that cannot be written there.
        remote::settings().program = PONDERSCOPE_PROGRAM;
        record("full", "export TMPDIR=/nonexistent; ulimit -f 0; trap '' XFSZ; ");
        QVERIFY(stage.says("recording.refused", u"full"_s));
    }

    void verbsRunWhereTheirPathsLie() {
        remote::settings() = {"ssh", "ponderscope", 1, false};
        const EngineCommand here = engine_command(u"p"_s, {u"record"_s, u"/m"_s});
        QCOMPARE(here.program, u"p"_s);
        QVERIFY(here.machine.isEmpty() && here.problem.isEmpty());
        const EngineCommand there =
            engine_command(u"p"_s, {u"record"_s, u"ssh://me@gpu:22/m o"_s, u"--prompt=/not/a path"_s,
                                    u"--output=ssh://me@gpu:22/t"_s});
        QCOMPARE(there.machine, u"ssh://me@gpu:22"_s);
        QVERIFY(there.problem.isEmpty());
        QCOMPARE(there.program, u"ssh"_s);
        QVERIFY(there.arguments.contains(u"me@gpu"_s));
        QVERIFY(there.arguments.contains(u"-p22"_s));
        QVERIFY(there.arguments.last().contains(u"--output=/t"_s));
        QVERIFY(engine_command({}, {u"record"_s, u"ssh://a/m"_s, u"--output=ssh://b/t"_s})
                    .problem.contains(u"ssh://b"_s));
        QVERIFY(engine_command({}, {u"record"_s, u"ssh://a/m"_s, u"--text=/x.txt"_s})
                    .problem.contains(u"/x.txt"_s));
    }

    void aRunIsRecordedThereAndAskedWhatIf() {
        Stage stage(u"gpu"_s, {{u"greeting"_s, u"echo Welcome; "_s}});
        stage.makeModel();
        stage.window.open(stage.there(u"model"_s));
        QVERIFY(comes([&] { return stage.window.runs().recordDialog() != nullptr; }));
        RecordRequest request = stage.window.runs().recordDialog()->request();
        QCOMPARE(request.trace, stage.there(u"model.ponder"_s));
        request.fromPrompt = true;
        request.prompt = u"The ferry's late, \"nobody\" minded; $HOME is `there`."_s;
        request.level = u"steps"_s;
        stage.window.runs().recordDialog()->setRequest(request);
        QCOMPARE(stage.window.runs().recordDialog()->problem(), QString());
        stage.window.runs().recordDialog()->accept();
        QVERIFY(comes([&] {
            return !stage.window.runs().recorder().isRunning() && stage.window.selection().runA().isValid();
        }));
        QVERIFY(stage.settle());
        const RunKey key = stage.window.selection().runA();
        QCOMPARE(key.trace, request.trace);
        QCOMPARE(QString::fromStdString(stage.window.text().view().sequence()->text), request.prompt);
        // A what-if is computed there too, into a scratch trace there.
        stage.window.whatIf().giveSteps(3, 1);
        QVERIFY(comes([&] {
            return stage.window.selection().runA() != key && !stage.window.runs().recorder().isRunning();
        }));
        const QString scratch = stage.window.selection().runA().trace;
        QVERIFY2(scratch.startsWith(u"ssh://gpu/tmp/"_s), qPrintable(scratch));
        QVERIFY(stage.window.data().isScratch(scratch));
        QVERIFY(QFile::remove(scratch.mid(9)));
    }
};

QTEST_MAIN(DesktopRemoteTest)
#include "desktop_remote_test.moc"
