// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/launch.h"
#include "app/desktop/run_fields.h"
#include "app/desktop/record_command.h"
#include "app/desktop/record_dialog.h"
#include "app/desktop/recorder.h"
#include "app/desktop/settings.h"
#include "views/common/theme.h"
#include "views/common/view_command.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QElapsedTimer>
#include <QFile>
#include <QLineEdit>
#include <QMenu>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

using namespace ponderscope;

namespace {

void write(const QString& path, const QByteArray& bytes, bool executable = false) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(bytes);
    file.close();
    if (executable) {
        QVERIFY(file.setPermissions(file.permissions() | QFile::ExeOwner));
    }
}

} // namespace

class DesktopRecordTest : public QObject {
    Q_OBJECT
private:
    QTemporaryDir folder_;

    RecordRequest valid() {
        const QString checkpoint = folder_.filePath(QStringLiteral("model"));
        QDir().mkpath(checkpoint);
        write(checkpoint + QStringLiteral("/config.json"), "{}");
        write(folder_.filePath(QStringLiteral("text.txt")), "some words");
        RecordRequest request;
        request.checkpoint = checkpoint;
        request.textFile = folder_.filePath(QStringLiteral("text.txt"));
        request.trace = folder_.filePath(QStringLiteral("out.ponder"));
        return request;
    }

    /// Stands in for the command line: the window must not care which program speaks the protocol.
    QString program(const QByteArray& script) {
        const QString path = folder_.filePath(QStringLiteral("engine-%1.sh").arg(++count_));
        write(path, "#!/bin/sh\n" + script, true);
        return path;
    }
    int count_ = 0;

private Q_SLOTS:
    void theCommandLineThatStarts() {
        RecordRequest request;
        request.checkpoint = QStringLiteral("/models/a b");
        request.textFile = QStringLiteral("/texts/story.txt");
        request.trace = QStringLiteral("/traces/story.ponder");
        QCOMPARE(record_arguments(request),
                 (QStringList{QStringLiteral("record"), QStringLiteral("/models/a b"),
                              QStringLiteral("--text=/texts/story.txt"),
                              QStringLiteral("--output=/traces/story.ponder"), QStringLiteral("--device=cpu"),
                              QStringLiteral("--dtype=float32"), QStringLiteral("--record=steps"),
                              QStringLiteral("--progress=json")}));
        QVERIFY(shell_command(record_arguments(request))
                    .startsWith(QStringLiteral("ponderscope record '/models/a b' --text=")));

        request.fromPrompt = true;
        request.prompt = QStringLiteral("--help me, it's \"late\"");
        request.generate = 32;
        request.method = QStringLiteral("ponderlm");
        request.policy = QStringLiteral("full");
        request.jacobi = QStringLiteral("exact");
        request.level = QStringLiteral("basic");
        request.context = 512;
        request.stride = 256;
        request.batch = 4;
        request.name = QStringLiteral("night");
        const QStringList arguments = record_arguments(request);
        QVERIFY(arguments.contains(QStringLiteral("--prompt=--help me, it's \"late\"")));
        QVERIFY(arguments.contains(QStringLiteral("--generate=32")));
        QVERIFY(arguments.contains(QStringLiteral("--method=ponderlm")));
        QVERIFY(arguments.contains(QStringLiteral("--policy=full")));
        QVERIFY(arguments.contains(QStringLiteral("--jacobi=exact")));
        QVERIFY(arguments.contains(QStringLiteral("--record=basic")));
        QVERIFY(arguments.contains(QStringLiteral("--context=512")));
        QVERIFY(arguments.contains(QStringLiteral("--stride=256")));
        QVERIFY(arguments.contains(QStringLiteral("--batch=4")));
        QVERIFY(arguments.contains(QStringLiteral("--name=night")));
        QVERIFY(!arguments.join(u' ').contains(QStringLiteral("--text")));
        QVERIFY(shell_command(arguments).contains(QStringLiteral("'--prompt=--help me, it'\\''s \"late\"'")));

        request.fromPrompt = false;
        request.textFile = QStringLiteral("/texts/ids.json");
        QVERIFY(record_arguments(request).contains(QStringLiteral("--ids=/texts/ids.json")));
        request.textFile = QStringLiteral("/texts/corpus.jsonl.gz");
        QVERIFY(record_arguments(request).contains(QStringLiteral("--jsonl=/texts/corpus.jsonl.gz")));
    }

    void policiesAreAListThatIsCheckedWhileOneTypes() {
        Settings settings(folder_.filePath(QStringLiteral("policies.ini")));
        Theme theme{Appearance::light};
        RecordDialog dialog(settings, theme, {});
        dialog.setRequest(valid());
        QVERIFY2(dialog.problem().isEmpty(), qPrintable(dialog.problem()));
        auto* box = dialog.findChild<QComboBox*>(QStringLiteral("policy"));
        QVERIFY(box != nullptr);
        QVERIFY(box->count() > 8);
        for (int i = 0; i < box->count(); ++i) { // each as it is offered can start, and says what it does
            box->setCurrentIndex(i);
            QVERIFY2(dialog.problem().isEmpty(), qPrintable(box->itemText(i) + u' ' + dialog.problem()));
            QVERIFY(!box->itemData(i, Qt::ToolTipRole).toString().isEmpty());
            QVERIFY(!box->itemText(i).startsWith(QStringLiteral("oracle"))); // a bound
        }
        box->setEditText(QStringLiteral("entropy:thta=2"));
        QVERIFY2(dialog.problem().contains(QStringLiteral("thta")), qPrintable(dialog.problem()));
        box->setEditText(QStringLiteral("entropi:theta=2"));
        QVERIFY2(dialog.problem().contains(QStringLiteral("entropy")), qPrintable(dialog.problem()));
        box->setEditText(QStringLiteral("entropy:theta=2"));
        QVERIFY(dialog.problem().isEmpty());
        QVERIFY(box->toolTip().contains(QStringLiteral("theta")));
        QCOMPARE(dialog.request().policy, QStringLiteral("entropy:theta=2"));
    }

    void likelyCheckpointsAreOffered() {
        Settings settings(folder_.filePath(QStringLiteral("offered.ini")));
        Theme theme{Appearance::light};
        RecordDialog dialog(settings, theme, {});
        auto* button = dialog.findChild<PathEdit*>()->findChild<QToolButton*>();
        QVERIFY(button != nullptr && button->isHidden());
        dialog.offerCheckpoints({QStringLiteral("/models/of run & a"), valid().checkpoint});
        QVERIFY(!button->isHidden());
        QCOMPARE(button->menu()->actions().size(), 2);
        button->menu()->actions().at(1)->trigger();
        QCOMPARE(dialog.request().checkpoint, valid().checkpoint);
        button->menu()->actions().at(0)->trigger();
        QCOMPARE(dialog.request().checkpoint, QStringLiteral("/models/of run & a"));
    }

    void problemsAreSaidBeforeAnythingStarts() {
        QVERIFY(problem_of(valid()).isEmpty());
        const auto broken = [this](auto change) {
            RecordRequest request = valid();
            change(request);
            return problem_of(request);
        };
        QVERIFY(!broken([](RecordRequest& r) { r.checkpoint.clear(); }).isEmpty());
        QVERIFY(broken([](RecordRequest& r) {
                    r.checkpoint = QStringLiteral("/no/such");
                }).contains(QStringLiteral("/no/such")));
        QVERIFY(broken([this](RecordRequest& r) {
                    r.checkpoint = folder_.path();
                }).contains(QStringLiteral("config.json")));
        QVERIFY(broken([](RecordRequest& r) {
                    r.checkpoint = r.textFile;
                }).contains(QStringLiteral("is a file")));
        QVERIFY(!broken([](RecordRequest& r) { r.textFile.clear(); }).isEmpty());
        QVERIFY(!broken([](RecordRequest& r) { r.textFile += QStringLiteral(".absent"); }).isEmpty());
        QVERIFY(!broken([](RecordRequest& r) { r.fromPrompt = true; }).isEmpty());
        QVERIFY(!broken([](RecordRequest& r) {
                     r.context = 10;
                     r.stride = 20;
                 }).isEmpty());
        QVERIFY(!broken([](RecordRequest& r) { r.trace.clear(); }).isEmpty());
        QVERIFY(broken([](RecordRequest& r) {
                    r.jacobi = QStringLiteral("often");
                }).contains(QStringLiteral("often")));
        QVERIFY(!broken([](RecordRequest& r) { r.jacobi = QStringLiteral("-1"); }).isEmpty());
        QVERIFY(!broken([](RecordRequest& r) {
                     r.trace = QStringLiteral("/no/such/folder/a.ponder");
                 }).isEmpty());
        QVERIFY(!broken([this](RecordRequest& r) { r.trace = folder_.path(); }).isEmpty());
    }

    void theDialogMakesTheRequest() {
        Settings settings(folder_.filePath(QStringLiteral("dialog.ini")));
        Theme theme(Appearance::light);
        RecordDialog dialog(settings, theme, {});
        QVERIFY(!dialog.problem().isEmpty());
        QVERIFY(dialog.request().trace.endsWith(QStringLiteral(".ponder")));
        const RecordRequest wanted = valid();
        dialog.setRequest(wanted);
        QVERIFY2(dialog.problem().isEmpty(), qPrintable(dialog.problem()));
        QCOMPARE(record_arguments(dialog.request()), record_arguments(wanted));
        QCOMPARE(dialog.commandLine(), shell_command(record_arguments(wanted)));
        RecordRequest prompt = wanted;
        prompt.fromPrompt = true;
        prompt.prompt = QStringLiteral("Once");
        prompt.device = QStringLiteral("cuda:1");
        prompt.dtype = QStringLiteral("bfloat16");
        prompt.level = QStringLiteral("basic");
        prompt.stride = 7;
        prompt.policy = QStringLiteral("full");
        prompt.jacobi = QStringLiteral("5");
        dialog.setRequest(prompt);
        QCOMPARE(record_arguments(dialog.request()), record_arguments(prompt));
        for (const char* const level : {"layers", "steps,layers", "steps,states", "steps"}) {
            RecordRequest more = wanted;
            more.level = QLatin1String(level);
            dialog.setRequest(more);
            QVERIFY2(record_arguments(dialog.request()).contains(QLatin1String("--record=") + more.level),
                     level);
        }
        dialog.setRequest(prompt);
        dialog.remember();
        RecordDialog next(settings, theme, QStringLiteral("/some/open.ponder"));
        QCOMPARE(next.request().checkpoint, wanted.checkpoint);
        QCOMPARE(next.request().device, QStringLiteral("cuda:1"));
        QCOMPARE(next.request().level, QStringLiteral("basic"));
        QCOMPARE(next.request().trace, QStringLiteral("/some/open.ponder")); // beside what is on the screen
        QVERIFY(!next.grab().isNull());
    }

    void theTabKeyGoesRowByRow() {
        Settings settings(folder_.filePath(QStringLiteral("tabs.ini")));
        Theme theme(Appearance::light);
        RecordDialog dialog(settings, theme, {});
        dialog.show();
        dialog.grab(); // lays it out
        QVector<QWidget*> stops;
        for (QWidget* next = dialog.nextInFocusChain(); next != &dialog; next = next->nextInFocusChain()) {
            const bool button = qobject_cast<QDialogButtonBox*>(next->parentWidget()) != nullptr;
            if ((next->focusPolicy() & Qt::TabFocus) != 0 && next->focusProxy() == nullptr &&
                next->isVisibleTo(&dialog) && !button) {
                stops << next;
            }
        }
        QVERIFY2(stops.size() > 12, qPrintable(QString::number(stops.size())));
        const auto box = [&](const QWidget* one) {
            return QRect(one->mapTo(&dialog, QPoint()), one->size());
        };
        for (qsizetype i = 1; i < stops.size(); ++i) {
            const QRect from = box(stops[i - 1]);
            const QRect to = box(stops[i]);
            const bool beside = to.top() <= from.bottom() && from.top() <= to.bottom();
            QVERIFY2(beside ? to.left() > from.right() : to.top() > from.bottom(),
                     qPrintable(stops[i - 1]->accessibleName() + u'>' + stops[i]->accessibleName()));
        }
    }

    void stepsStartAndWhatLaterTokensSee() {
        RecordRequest request = valid();
        request.settings = {.steps = 5,
                            .kv = QStringLiteral("skip"),
                            .startState = QStringLiteral("random:18446744073709551")};
        const QString line = record_arguments(request).join(u' ');
        QVERIFY2(
            line.contains(QStringLiteral("--steps=5 --kv=skip --initial-state=random:18446744073709551")),
            qPrintable(line));
        QVERIFY(problem_of(request).isEmpty());
        request.settings.startState = folder_.filePath(QStringLiteral("none.safetensors"));
        QVERIFY(problem_of(request).contains(QStringLiteral("none.safetensors")));
        write(folder_.filePath(QStringLiteral("model/start.safetensors")), "x");
        request.settings.startState = QStringLiteral("start.safetensors"); // in the checkpoint's folder
        QVERIFY(problem_of(request).isEmpty());

        Settings settings(folder_.filePath(QStringLiteral("fields.ini")));
        Theme theme(Appearance::light);
        const auto says = [](const QByteArray& architecture, const QByteArray& method,
                             const QByteArray& steps, const QByteArray& start) {
            return "echo '{\"kind\":\"checkpoint\",\"architecture\":\"" + architecture + "\",\"method\":\"" +
                   method + "\",\"candidate_methods\":[],\"max_steps\":" + steps +
                   ",\"start_state\":" + start + ",\"layers\":4,\"parameters\":1000,\"tokenizer\":{}}'\n";
        };
        RecordDialog dialog(settings, theme, {});
        dialog.show();
        auto* steps = dialog.findChild<QSpinBox*>(QStringLiteral("steps"));
        auto* kv = dialog.findChild<QComboBox*>(QStringLiteral("kv"));
        auto* start = dialog.findChild<QComboBox*>(QStringLiteral("start"));
        auto* seed = dialog.findChild<QLineEdit*>(QStringLiteral("seed"));
        const auto ask = [&](const QByteArray& script, const RunSettings& chosen) {
            dialog.inquiry().setProgram(program(script));
            RecordRequest wanted = valid();
            wanted.settings = chosen;
            dialog.setRequest(wanted);
            // Before it is known nothing of what was chosen is dropped.
            QCOMPARE(dialog.request().settings, chosen);
            QTRY_VERIFY(dialog.aboutCheckpoint().contains(QStringLiteral("1.00 k parameters")) ||
                        dialog.aboutCheckpoint().contains(QStringLiteral("1000 parameters")));
        };
        // A recurrent model has all of it, and the default's name is said.
        const RunSettings all{
            .steps = 8, .kv = QStringLiteral("shared"), .startState = QStringLiteral("random:3")};
        ask(says("huginn_raven", "huginn", "3", "true"), all);
        QCOMPARE(dialog.request().settings, all);
        QVERIFY(steps->isEnabled() && kv->isEnabled() && start->isEnabled() && seed->isVisible());
        QCOMPARE(seed->text(), QStringLiteral("3"));
        QVERIFY2(steps->specialValueText().startsWith(u'4'), qPrintable(steps->specialValueText()));
        QVERIFY(kv->itemText(0).contains(QStringLiteral("(full)")));
        RecordRequest wanted = dialog.request();
        wanted.policy = QStringLiteral("entropy:theta=2");
        dialog.setRequest(wanted);
        QTRY_VERIFY(kv->itemText(0).contains(QStringLiteral("(per_step)")));

        // The user's own hand: every widget reaches the command line.
        steps->setValue(2);
        kv->setCurrentIndex(kv->findData(QStringLiteral("per_step")));
        seed->clear();
        QTest::keyClicks(seed, QStringLiteral("12x"));
        QVERIFY2(dialog.commandLine().contains(
                     QStringLiteral("--steps=2 --kv=per_step --initial-state=random:12 ")),
                 qPrintable(dialog.commandLine()));
        start->setCurrentIndex(start->findData(QStringLiteral("zero")));
        QVERIFY(dialog.commandLine().contains(QStringLiteral("--initial-state=zero")));
        QVERIFY(!seed->isVisible());
        start->setCurrentIndex(start->findData(QStringLiteral("file")));
        QVERIFY2(dialog.problem().contains(QStringLiteral("file of start states")),
                 qPrintable(dialog.problem()));
        auto* file = start->parentWidget()->findChild<PathEdit*>();
        QVERIFY(file->isVisible());
        file->setPath(QStringLiteral("start.safetensors"));
        QVERIFY2(dialog.problem().isEmpty(), qPrintable(dialog.problem()));
        QVERIFY(dialog.commandLine().contains(QStringLiteral("--initial-state=start.safetensors")));
        dialog.remember();
        QCOMPARE(RecordDialog(settings, theme, {}).request().settings,
                 (RunSettings{2, QStringLiteral("per_step"), QStringLiteral("start.safetensors")}));

        // A rule of its own and weights for every step: grey, with the reason, and nothing of it is passed
        // on.
        ask(says("llama", "ponderlm2", "2", "false"), all);
        QVERIFY(!steps->isEnabled() && !kv->isEnabled() && !start->isEnabled());
        QCOMPARE(dialog.request().settings, RunSettings());
        QVERIFY(!dialog.commandLine().contains(QStringLiteral("--kv")));
        QVERIFY2(kv->currentText().contains(QStringLiteral("own rule")), qPrintable(kv->currentText()));
        QVERIFY(!steps->toolTip().isEmpty() && !start->toolTip().isEmpty());
        QCOMPARE(steps->text(), QStringLiteral("fixed"));
        // Another method than its own may have it: then what was chosen is back.
        wanted = dialog.request();
        dialog.findChild<QComboBox*>(QStringLiteral("method"))
            ->setCurrentIndex(
                dialog.findChild<QComboBox*>(QStringLiteral("method"))->findData(QStringLiteral("looped")));
        QCOMPARE(dialog.request().settings, (RunSettings{8, QStringLiteral("shared"), {}}));
        ask(says("llama", "vanilla", "0", "false"), all);
        QVERIFY(!steps->isEnabled() && !kv->isEnabled());
    }

    void pathsAreToldApart() {
        QCOMPARE(
            distinct_names({QStringLiteral("/m/chains/adaponderlm"), QStringLiteral("/m/neox/adaponderlm"),
                            QStringLiteral("/m/vanilla"), QStringLiteral("/adaponderlm")}),
            (QStringList{QStringLiteral("chains/adaponderlm"), QStringLiteral("neox/adaponderlm"),
                         QStringLiteral("vanilla"), QStringLiteral("adaponderlm")}));
        QCOMPARE(distinct_names({QStringLiteral("/a/x"), QStringLiteral("/a/x")}).size(), 2);
    }

    void theCheckpointSaysWhichMethodsThereAre() {
        Settings settings(folder_.filePath(QStringLiteral("methods.ini")));
        Theme theme(Appearance::light);
        RecordDialog dialog(settings, theme, {});
        const RecordRequest wanted = valid();
        // One method: preselected, and the argument is left to the checkpoint.
        dialog.inquiry().setProgram(program(
            "test \"$1 $2\" = 'inspect --json' || exit 9\n"
            "echo '{\"kind\":\"checkpoint\",\"architecture\":\"gpt_neox\",\"method\":\"ponderlm\","
            "\"candidate_methods\":[\"ponderlm\"],\"max_steps\":3,\"layers\":6,\"parameters\":1300000,"
            "\"memory_float32_bytes\":2e8,\"depth_mixing\":\"none\",\"tokenizer\":null,"
            "\"notices\":[\"top_k is not read\"]}'\n"));
        dialog.setRequest(wanted);
        QTRY_VERIFY2(dialog.aboutCheckpoint().contains(QStringLiteral("ponderlm, 3 step")),
                     qPrintable(dialog.aboutCheckpoint()));
        QVERIFY(dialog.aboutCheckpoint().contains(QStringLiteral("1.30 M parameters")));
        // Jacobi refreshes are for methods whose slots follow each other.
        auto* jacobi = dialog.findChild<QLineEdit*>(QStringLiteral("jacobi"));
        auto* methods = dialog.findChild<QComboBox*>(QStringLiteral("method"));
        jacobi->setText(QStringLiteral("4"));
        QVERIFY(!jacobi->isEnabled() && dialog.request().jacobi.isEmpty());
        methods->setCurrentIndex(methods->findData(QStringLiteral("ponderlm2")));
        QVERIFY(jacobi->isEnabled());
        QCOMPARE(dialog.request().jacobi, QStringLiteral("4"));
        methods->setCurrentIndex(0);
        jacobi->clear();
        QVERIFY(dialog.aboutCheckpoint().contains(QStringLiteral("token ids")));
        QVERIFY(dialog.aboutCheckpoint().contains(QStringLiteral("top_k is not read")));
        QVERIFY2(dialog.problem().contains(QStringLiteral("token ids")), qPrintable(dialog.problem()));
        // A folder without a checkpoint is described by nothing, least of all by the one before it.
        RecordRequest empty = wanted;
        empty.checkpoint = folder_.filePath(QStringLiteral("no model"));
        QDir().mkpath(empty.checkpoint);
        dialog.setRequest(empty);
        QVERIFY2(dialog.aboutCheckpoint().isEmpty(), qPrintable(dialog.aboutCheckpoint()));
        QTest::qWait(400); // nor later, when an answer may come that was asked for before
        QVERIFY2(dialog.aboutCheckpoint().isEmpty(), qPrintable(dialog.aboutCheckpoint()));
        RecordRequest ids = wanted;
        ids.fromPrompt = false;
        ids.textFile = folder_.filePath(QStringLiteral("ids.json"));
        write(ids.textFile, "[[1, 2, 3]]");
        dialog.setRequest(ids);
        QVERIFY2(dialog.problem().isEmpty(), qPrintable(dialog.problem()));
        QTRY_VERIFY(!dialog.inquiry().isRunning());
        QVERIFY2(dialog.problem().isEmpty(), qPrintable(dialog.problem()));
        QCOMPARE(dialog.offeredMethods().first(), QString());
        QCOMPARE(dialog.offeredMethods().size(), 1 + all_methods().size());
        QVERIFY(!dialog.commandLine().contains(QStringLiteral("--method")));

        // Several: nothing starts before one is chosen, and they come first.
        dialog.inquiry().setProgram(
            program("echo '{\"kind\":\"checkpoint\",\"architecture\":\"llama\",\"method\":\"ponderlm2\","
                    "\"candidate_methods\":[\"ponderlm2\",\"pause\",\"looped\"],\"max_steps\":2,\"layers\":2,"
                    "\"parameters\":5000,\"tokenizer\":{\"tokens\":512}}'\n"));
        dialog.setRequest(wanted);
        QTRY_VERIFY(dialog.problem().contains(QStringLiteral("ponderlm2 and pause and looped")));
        QCOMPARE(dialog.offeredMethods().mid(0, 4),
                 (QStringList{QString(), QStringLiteral("ponderlm2"), QStringLiteral("pause"),
                              QStringLiteral("looped")}));
        RecordRequest chosen = wanted;
        chosen.method = QStringLiteral("looped");
        dialog.setRequest(chosen);
        QVERIFY(dialog.problem().isEmpty());
        QTRY_VERIFY(!dialog.inquiry().isRunning());
        QVERIFY2(dialog.problem().isEmpty(), qPrintable(dialog.problem()));
        QVERIFY(dialog.commandLine().contains(QStringLiteral("--method=looped")));

        // One that cannot be run is not started.
        dialog.inquiry().setProgram(
            program("echo '{\"kind\":\"checkpoint\",\"architecture\":\"llama\",\"method\":\"vanilla\","
                    "\"candidate_methods\":[\"vanilla\"],\"layers\":2,\"tokenizer\":{\"tokens\":512},"
                    "\"not_supported\":\"/m: expected a float type, found I8.\"}'\n"));
        dialog.setRequest(wanted);
        QTRY_COMPARE(dialog.problem(), QStringLiteral("/m: expected a float type, found I8."));
        dialog.setRequest(chosen); // as another method it may be run
        QTRY_VERIFY(!dialog.inquiry().isRunning());
        QCOMPARE(dialog.problem(), QString());

        // What is wrong with the folder is said in the engine's own words; a crash too.
        dialog.inquiry().setProgram(
            program("echo 'ponderscope: /m: expected 2 shards, found 1.' >&2; exit 2\n"));
        dialog.setRequest(wanted);
        QTRY_COMPARE(dialog.aboutCheckpoint(), QStringLiteral("/m: expected 2 shards, found 1."));
        dialog.inquiry().setProgram(program("kill -9 $$\n"));
        dialog.setRequest(wanted);
        QTRY_VERIFY(dialog.aboutCheckpoint().contains(QStringLiteral("could not be read")));
        QVERIFY(dialog.problem().isEmpty()); // recording it says the rest
    }

    void progressAndResultAreRead() {
        Recorder recorder;
        recorder.setProgram(
            program("echo '{\"activity\":\"recording\",\"done\":10,\"total\":40,\"unit\":\"tokens\","
                    "\"rate\":41200.5,\"seconds_left\":7.5}' >&2\n"
                    "printf '{\"activity\":\"reco' >&2; sleep 0.05; printf 'rding\",\"done\":40,\"total\":40,"
                    "\"unit\":\"tokens\",\"rate\":4.0}\\n' >&2\n"
                    "echo '{\"trace\":\"/tmp/x.ponder\",\"run\":\"night\"}'\n"));
        QSignalSpy progressed(&recorder, &Recorder::progressed);
        QSignalSpy finished(&recorder, &Recorder::finished);
        recorder.start(valid());
        QVERIFY(finished.wait());
        QCOMPARE(progressed.size(), 2);
        const auto first = progressed[0][0].value<RecordingProgress>();
        QCOMPARE(first.done, 10);
        QCOMPARE(first.total, 40);
        QCOMPARE(first.rate, 41200.5);
        QCOMPARE(first.secondsLeft, 7.5);
        QCOMPARE(progressed[1][0].value<RecordingProgress>().done, 40);
        QCOMPARE(finished[0][0].toString(), QStringLiteral("/tmp/x.ponder"));
        QCOMPARE(finished[0][1].toString(), QStringLiteral("night"));
        QVERIFY(!recorder.isRunning());
    }

    void theProgramsSentenceIsTheMessage() {
        Recorder recorder;
        recorder.setProgram(program(
            "echo 'ponderscope: /models/x: expected config.json, found none; choose another folder.' >&2\n"
            "exit 2\n"));
        QSignalSpy failed(&recorder, &Recorder::failed);
        recorder.start(valid());
        QVERIFY(failed.wait());
        QCOMPARE(failed[0][1].toString(),
                 QStringLiteral("/models/x: expected config.json, found none; choose another folder."));
    }

    void anEngineThatDiesIsSaid() {
        Recorder recorder;
        recorder.setProgram(
            program("echo '{\"activity\":\"recording\",\"done\":1,\"total\":2,\"unit\":\"tokens\"}' >&2\n"
                    "kill -9 $$\n"));
        QString id;
        connect(&recorder, &Recorder::failed, this,
                [&id](const char* said) { id = QString::fromLatin1(said); });
        recorder.start(valid());
        QTRY_COMPARE(id, QStringLiteral("recording.died"));
    }

    void cancelAsksAndTheProgramEnds() {
        Recorder recorder;
        recorder.setProgram(
            program("trap 'exit 130' INT\n"
                    "echo '{\"activity\":\"recording\",\"done\":1,\"total\":2,\"unit\":\"tokens\"}' >&2\n"
                    "while :; do sleep 0.05; done\n"));
        QSignalSpy progressed(&recorder, &Recorder::progressed);
        QSignalSpy cancelled(&recorder, &Recorder::cancelled);
        recorder.start(valid());
        QVERIFY(progressed.wait());
        recorder.cancel();
        QVERIFY(cancelled.wait());
        QVERIFY(!recorder.isRunning());
    }

    void aProgramThatIsNotThereIsSaid() {
        Recorder recorder;
        recorder.setProgram(QStringLiteral("/no/such/ponderscope"));
        QSignalSpy failed(&recorder, &Recorder::failed);
        recorder.start(valid());
        QTRY_COMPARE(failed.size(), 1);
        QVERIFY(failed[0][1].toString().contains(QStringLiteral("/no/such/ponderscope")));
    }

    void launchArgumentsAreChecked() {
        const auto parse = [](const QStringList& arguments) {
            return parse_launch(QStringList{QStringLiteral("ponderscope-desktop")} + arguments);
        };
        Launch launch =
            parse({QStringLiteral("--screenshot"), QStringLiteral("w.png"), QStringLiteral("--size"),
                   QStringLiteral("1000x700"), QStringLiteral("--theme"), QStringLiteral("dark"),
                   QStringLiteral("--select-token"), QStringLiteral("5"), QStringLiteral("a.ponder#run"),
                   QStringLiteral("b.ponder")});
        QCOMPARE(launch.exitCode, -1);
        QCOMPARE(launch.size, QSize(1000, 700));
        QCOMPARE(launch.token, std::optional<qint64>(5));
        QCOMPARE(launch.paths.size(), 2);
        const Launch help = parse({QStringLiteral("--help")});
        QCOMPARE(help.exitCode, 0);
        QVERIFY(help.message.startsWith(QStringLiteral("Usage: ponderscope-desktop [")));
        QVERIFY(help.message.contains(QStringLiteral("|tex|")));
        QVERIFY(parse({QStringLiteral("--version")}).message.contains(QStringLiteral("Ponderscope")));
        for (const QStringList& wrong : {QStringList{QStringLiteral("--size"), QStringLiteral("12")},
                                         QStringList{QStringLiteral("--theme"), QStringLiteral("pink")},
                                         QStringList{QStringLiteral("--select-token"), QStringLiteral("-3")},
                                         QStringList{QStringLiteral("--screenshot"), QStringLiteral("w.gif")},
                                         QStringList{QStringLiteral("--scale"), QStringLiteral("99")},
                                         QStringList{QStringLiteral("--colour"), QStringLiteral("taste")},
                                         QStringList{QStringLiteral("--nonsense")}}) {
            launch = parse(wrong);
            QCOMPARE(launch.exitCode, 2);
            QVERIFY(!launch.message.contains(u'\n'));
        }
    }
};

QTEST_MAIN(DesktopRecordTest)
#include "desktop_record_test.moc"
