// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/launch.h"
#include "app/desktop/path_edit.h"
#include "app/desktop/record_dialog.h"
#include "tests/app/desktop/desktop_stage.h"
#include "views/common/view_command.h"

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

struct Stage : testing::Stage {
    /// A request that can start.
    [[nodiscard]] RecordRequest valid() const {
        RecordRequest request;
        request.checkpoint = QFileInfo(write(u"model/config.json"_s, "{}")).path();
        request.textFile = write(u"text.txt"_s, "some words");
        request.trace = folder.filePath(u"out.ponder"_s);
        return request;
    }
    RecordDialog dialog{settings, theme, {}};
};

} // namespace

class DesktopRecordTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void theCommandLineThatStarts() {
        RecordRequest request;
        request.checkpoint = u"/models/a b"_s;
        request.textFile = u"/texts/story.txt"_s;
        request.trace = u"/traces/story.ponder"_s;
        QCOMPARE(record_arguments(request),
                 (QStringList{u"record"_s, u"/models/a b"_s, u"--text=/texts/story.txt"_s,
                              u"--output=/traces/story.ponder"_s, u"--device=cpu"_s, u"--dtype=float32"_s,
                              u"--record=steps"_s, u"--progress=json"_s}));
        QVERIFY(shell_command(record_arguments(request))
                    .startsWith(u"ponderscope record '/models/a b' --text="_s));

        request.fromPrompt = true;
        request.prompt = u"--help me, it's \"late\""_s;
        request.method = u"ponderlm"_s;
        request.policy = u"full"_s;
        request.more = QStringList{u"--jacobi=exact"_s};
        request.level = u"basic"_s;
        request.context = 512;
        request.stride = 256;
        request.batch = 4;
        request.name = u"night"_s;
        const QStringList arguments = record_arguments(request);
        for (const char* one :
             {"--prompt=--help me, it's \"late\"", "--method=ponderlm", "--policy=full", "--jacobi=exact",
              "--record=basic", "--context=512", "--stride=256", "--batch=4", "--name=night"}) {
            QVERIFY2(arguments.contains(QLatin1String(one)), one);
        }
        QVERIFY(!arguments.join(u' ').contains(u"--text"_s));
        QVERIFY(shell_command(arguments).contains(u"'--prompt=--help me, it'\\''s \"late\"'"_s));

        request.fromPrompt = false;
        request.textFile = u"/texts/ids.json"_s;
        QVERIFY(record_arguments(request).contains(u"--ids=/texts/ids.json"_s));
        request.textFile = u"/texts/corpus.jsonl.gz"_s;
        QVERIFY(record_arguments(request).contains(u"--jsonl=/texts/corpus.jsonl.gz"_s));
    }

    void policiesAreAListThatIsCheckedWhileOneTypes() {
        Stage stage;
        RecordDialog& dialog = stage.dialog;
        dialog.setRequest(stage.valid());
        QVERIFY2(dialog.problem().isEmpty(), qPrintable(dialog.problem()));
        auto* box = dialog.findChild<QComboBox*>(u"policy"_s);
        QVERIFY(box != nullptr);
        QVERIFY(box->count() > 8);
        for (int i = 0; i < box->count(); ++i) { // each as it is offered can start, and says what it does
            box->setCurrentIndex(i);
            QVERIFY2(dialog.problem().isEmpty(), qPrintable(box->itemText(i) + u' ' + dialog.problem()));
            QVERIFY(!box->itemData(i, Qt::ToolTipRole).toString().isEmpty());
            QVERIFY(!box->itemText(i).startsWith(u"oracle"_s)); // a bound
        }
        box->setEditText(u"entropy:thta=2"_s);
        QVERIFY2(dialog.problem().contains(u"thta"_s), qPrintable(dialog.problem()));
        box->setEditText(u"entropi:theta=2"_s);
        QVERIFY2(dialog.problem().contains(u"entropy"_s), qPrintable(dialog.problem()));
        box->setEditText(u"entropy:theta=2"_s);
        QVERIFY(dialog.problem().isEmpty());
        QVERIFY(box->toolTip().contains(u"theta"_s));
        QCOMPARE(dialog.request().policy, u"entropy:theta=2"_s);
    }

    void likelyCheckpointsAreOffered() {
        Stage stage;
        RecordDialog& dialog = stage.dialog;
        auto* button = dialog.findChild<PathEdit*>()->findChild<QToolButton*>();
        QVERIFY(button != nullptr && button->isHidden());
        dialog.offerCheckpoints({u"/models/of run & a"_s, stage.valid().checkpoint});
        QVERIFY(!button->isHidden());
        QCOMPARE(button->menu()->actions().size(), 2);
        button->menu()->actions().at(1)->trigger();
        QCOMPARE(dialog.request().checkpoint, stage.valid().checkpoint);
        button->menu()->actions().at(0)->trigger();
        QCOMPARE(dialog.request().checkpoint, u"/models/of run & a"_s);
    }

    void problemsAreSaidBeforeAnythingStarts() {
        const Stage stage;
        QVERIFY(problem_of(stage.valid()).isEmpty());
        const auto broken = [&](auto change) {
            RecordRequest request = stage.valid();
            change(request);
            return problem_of(request);
        };
        QVERIFY(!broken([](RecordRequest& r) { r.checkpoint.clear(); }).isEmpty());
        QVERIFY(broken([](RecordRequest& r) { r.checkpoint = u"/no/such"_s; }).contains(u"/no/such"_s));
        QVERIFY(
            broken([&](RecordRequest& r) { r.checkpoint = stage.folder.path(); }).contains(u"config.json"_s));
        QVERIFY(broken([](RecordRequest& r) { r.checkpoint = r.textFile; }).contains(stage.valid().textFile));
        QVERIFY(!broken([](RecordRequest& r) { r.textFile.clear(); }).isEmpty());
        QVERIFY(!broken([](RecordRequest& r) { r.textFile += u".absent"_s; }).isEmpty());
        QVERIFY(!broken([](RecordRequest& r) { r.fromPrompt = true; }).isEmpty());
        QVERIFY(!broken([](RecordRequest& r) {
                     r.context = 10;
                     r.stride = 20;
                 }).isEmpty());
        QVERIFY(!broken([](RecordRequest& r) { r.trace.clear(); }).isEmpty());
        QVERIFY(broken([](RecordRequest& r) { r.more = QStringList{u"often"_s}; }).contains(u"often"_s));
        QVERIFY(!broken([](RecordRequest& r) { r.trace = u"/no/such/folder/a.ponder"_s; }).isEmpty());
        QVERIFY(!broken([&](RecordRequest& r) { r.trace = stage.folder.path(); }).isEmpty());
    }

    void theDialogMakesTheRequest() {
        Stage stage;
        RecordDialog& dialog = stage.dialog;
        QVERIFY(!dialog.problem().isEmpty());
        QVERIFY(dialog.request().trace.endsWith(u".ponder"_s));
        const RecordRequest wanted = stage.valid();
        dialog.setRequest(wanted);
        QVERIFY2(dialog.problem().isEmpty(), qPrintable(dialog.problem()));
        QCOMPARE(record_arguments(dialog.request()), record_arguments(wanted));
        QCOMPARE(dialog.commandLine(), shell_command(record_arguments(wanted)));
        RecordRequest prompt = wanted;
        prompt.fromPrompt = true;
        prompt.prompt = u"Once"_s;
        prompt.device = u"cuda:1"_s;
        prompt.dtype = u"bfloat16"_s;
        prompt.level = u"basic"_s;
        prompt.stride = 7;
        prompt.policy = u"full"_s;
        prompt.method = u"looped"_s;
        prompt.more = QStringList{u"--jacobi=5"_s};
        dialog.setRequest(prompt);
        QCOMPARE(record_arguments(dialog.request()), record_arguments(prompt));
        const auto* methods = dialog.findChild<QComboBox*>(u"method"_s);
        QCOMPARE(methods->count(), 1 + static_cast<int>(all_methods().size()));
        for (const char* const level : {"layers", "steps,layers", "steps,states", "steps"}) {
            RecordRequest more = wanted;
            more.level = QLatin1String(level);
            dialog.setRequest(more);
            QVERIFY2(record_arguments(dialog.request()).contains(QLatin1String("--record=") + more.level),
                     level);
        }
        dialog.setRequest(prompt);
        dialog.remember();
        RecordDialog next(stage.settings, stage.theme, u"/some/open.ponder"_s);
        QCOMPARE(next.request().checkpoint, wanted.checkpoint);
        QCOMPARE(next.request().device, u"cuda:1"_s);
        QCOMPARE(next.request().level, u"basic"_s);
        QCOMPARE(next.request().trace, u"/some/open.ponder"_s); // beside what is on the screen
        QVERIFY(!next.grab().isNull());
    }

    void theTabKeyGoesRowByRow() {
        Stage stage;
        RecordDialog& dialog = stage.dialog;
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

    void furtherOptionsReachTheCommandLine() {
        Stage stage;
        RecordDialog& dialog = stage.dialog;
        RecordRequest wanted = stage.valid();
        wanted.more = {u"--steps=5"_s, u"--initial-state=/a b/start.safetensors"_s};
        dialog.setRequest(wanted);
        QCOMPARE(dialog.request().more, wanted.more);
        QVERIFY2(dialog.problem().isEmpty(), qPrintable(dialog.problem()));
        auto* more = dialog.findChild<QLineEdit*>(u"more"_s);
        more->setText(u"--kv=skip  --jacobi=exact"_s);
        QVERIFY2(dialog.commandLine().contains(u" --kv=skip --jacobi=exact "_s),
                 qPrintable(dialog.commandLine()));
        dialog.remember();
        QCOMPARE(RecordDialog(stage.settings, stage.theme, {}).request().more,
                 (QStringList{u"--kv=skip"_s, u"--jacobi=exact"_s}));
        more->setText(u"often"_s);
        QVERIFY2(dialog.problem().contains(u"often"_s), qPrintable(dialog.problem()));
    }

    void pathsAreToldApart() {
        QCOMPARE(
            distinct_names(
                {u"/m/chains/adaponderlm"_s, u"/m/neox/adaponderlm"_s, u"/m/vanilla"_s, u"/adaponderlm"_s}),
            (QStringList{u"chains/adaponderlm"_s, u"neox/adaponderlm"_s, u"vanilla"_s, u"adaponderlm"_s}));
        QCOMPARE(distinct_names({u"/a/x"_s, u"/a/x"_s}).size(), 2);
    }

    void progressAndResultAreRead() {
        const Stage stage;
        Recorder recorder;
        recorder.setProgram(stage.program(
            u"engine.sh"_s,
            "echo '{\"activity\":\"recording\",\"done\":10,\"total\":40,\"unit\":\"tokens\","
            "\"rate\":41200.5,\"seconds_left\":7.5}' >&2\n"
            "printf '{\"activity\":\"reco' >&2; sleep 0.05; printf 'rding\",\"done\":40,\"total\":40,"
            "\"unit\":\"tokens\",\"rate\":4.0}\\n' >&2\n"
            "echo '{\"trace\":\"/tmp/x.ponder\",\"run\":\"night\"}'\n"));
        QSignalSpy progressed(&recorder, &Recorder::progressed);
        QSignalSpy finished(&recorder, &Recorder::finished);
        recorder.start(stage.valid());
        QVERIFY(finished.wait());
        QCOMPARE(progressed.size(), 2);
        const auto first = progressed[0][0].value<RecordingProgress>();
        QCOMPARE(first.done, 10);
        QCOMPARE(first.total, 40);
        QCOMPARE(first.rate, 41200.5);
        QCOMPARE(first.secondsLeft, 7.5);
        QCOMPARE(progressed[1][0].value<RecordingProgress>().done, 40);
        QCOMPARE(finished[0][0].toString(), u"/tmp/x.ponder"_s);
        QCOMPARE(finished[0][1].toString(), u"night"_s);
        QVERIFY(!recorder.isRunning());
    }

    void aProgramThatIsNotThereIsSaid() {
        const Stage stage;
        Recorder recorder;
        recorder.setProgram(u"/no/such/ponderscope"_s);
        QSignalSpy failed(&recorder, &Recorder::failed);
        recorder.start(stage.valid());
        QTRY_COMPARE(failed.size(), 1);
        QVERIFY(failed[0][1].toString().contains(u"/no/such/ponderscope"_s));
    }

    void launchArgumentsAreChecked() {
        const auto parse = [](const QStringList& arguments) {
            return parse_launch(QStringList{u"ponderscope-desktop"_s} + arguments);
        };
        Launch launch = parse({u"--screenshot"_s, u"w.png"_s, u"--size"_s, u"1000x700"_s, u"--theme"_s,
                               u"dark"_s, u"--select-token"_s, u"5"_s, u"a.ponder#run"_s, u"b.ponder"_s});
        QCOMPARE(launch.exitCode, -1);
        QCOMPARE(launch.size, QSize(1000, 700));
        QCOMPARE(launch.token, std::optional<qint64>(5));
        QCOMPARE(launch.paths.size(), 2);
        const Launch help = parse({u"--help"_s});
        QCOMPARE(help.exitCode, 0);
        QVERIFY(help.message.startsWith(u"Usage: ponderscope-desktop ["_s));
        QVERIFY(help.message.contains(u"|tex|"_s));
        QVERIFY(parse({u"--version"_s}).message.contains(u"Ponderscope"_s));
        for (const QStringList& wrong :
             {QStringList{u"--size"_s, u"12"_s}, QStringList{u"--theme"_s, u"pink"_s},
              QStringList{u"--select-token"_s, u"-3"_s}, QStringList{u"--screenshot"_s, u"w.gif"_s},
              QStringList{u"--scale"_s, u"99"_s}, QStringList{u"--colour"_s, u"taste"_s},
              QStringList{u"--nonsense"_s}}) {
            launch = parse(wrong);
            QCOMPARE(launch.exitCode, 2);
            QVERIFY(!launch.message.contains(u'\n'));
        }
    }
};

QTEST_MAIN(DesktopRecordTest)
#include "desktop_record_test.moc"
