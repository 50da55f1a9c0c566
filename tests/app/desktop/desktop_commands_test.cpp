// SPDX-License-Identifier: GPL-3.0-or-later
// "Copy as command": what every panel and dialog gives is run by a shell, or by Python, in an empty folder.
#include "app/desktop/panel_frame.h"
#include "app/desktop/panels.h"
#include "app/desktop/record_dialog.h"
#include "app/desktop/think_panel.h"
#include "core/trace/reader.h"
#include "core/trace/writer.h"
#include "tests/app/desktop/desktop_stage.h"
#include "tests/support/expert_trace.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"
#include "views/common/controls.h"
#include "views/common/view_command.h"
#include "views/compare/compare_view.h"
#include "views/depth/depth_view.h"
#include "views/figure/export_dialog.h"
#include "views/figure/figure_file.h"
#include "views/heatmap/heatmap_view.h"
#include "views/policy/policy_lab.h"

#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::Stage;

namespace {

/// Everything that needs to be quoted.
const QString awkward = u"it's a \"trace\" #1 $HOME.ponder"_s;

struct Ran {
    int code = -1;
    QString out;
    QString err;
};

Ran run(const QString& program, const QStringList& arguments, const QString& folder) {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(u"PATH"_s, QFileInfo(QStringLiteral(PONDERSCOPE_PROGRAM)).path() + u':' +
                                      environment.value(u"PATH"_s));
    environment.insert(u"PYTHONPATH"_s,
                       QString::fromStdString((testing::source_tree() / "app/python").string()));
    environment.insert(u"PYTHONDONTWRITEBYTECODE"_s, u"1"_s);
    process.setProcessEnvironment(environment);
    process.setWorkingDirectory(folder);
    process.start(program, arguments);
    if (!process.waitForFinished(120'000)) {
        process.kill();
        return {-1, {}, u"did not end"_s};
    }
    return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1,
            QString::fromUtf8(process.readAllStandardOutput()),
            QString::fromUtf8(process.readAllStandardError())};
}

Ran in_shell(const QString& lines, const QString& folder) {
    return run(u"/bin/sh"_s, {u"-ec"_s, lines}, folder);
}

/// An interpreter that has what the package needs; empty when there is none.
QString python() {
    static const QString found = [] {
        for (const QString& one : {QStringLiteral(PONDERSCOPE_TEST_PYTHON), u"python3"_s}) {
            if (run(one, {u"-c"_s, u"import numpy"_s}, QDir::tempPath()).code == 0) {
                return one;
            }
        }
        return QString();
    }();
    return found;
}

void write_training(const std::string& path) {
    TraceWriter writer{std::filesystem::path(path)};
    TrainingInfo info;
    info.name = "one";
    const std::int64_t id = writer.begin_training(
        info, {{"loss", "", "nats", "Loss", "d"}, {"learning_rate", "", "", "Learning rate", "d"}});
    for (std::int64_t step = 1; step <= 20; ++step) {
        writer.put_points(id, {step, step * 100, static_cast<double>(step)},
                          {{"loss", 0, 5.0 - 0.1 * static_cast<double>(step)}, {"learning_rate", 0, 0.001}});
    }
    writer.end_training(id, true);
}

/// A window in which every panel has something to show.
struct Shown : Stage {
    Shown() {
        checkpoint = folder.filePath(u"tiny model"_s);
        testing::TinyCheckpoint{.pondering_steps = 2}.write(checkpoint.toStdString());
        trace = make(awkward, {.sequences = 2, .tokens = 240, .withDepth = true, .withAttention = true});
        write_training(trace.toStdString());
        testing::write_expert_run(trace.toStdString(), "mixture", 4,
                                  {{0, 1, 0, 3}, {1, 0, 3, 0}, {2, 3, 0, 3}, {2, 3, 0, 3}});
        window.resize(1400, 1000);
        window.show();
        window.open(trace);
    }
    [[nodiscard]] bool ready() {
        if (!settle()) {
            return false;
        }
        window.selection().setRunA({trace, 1});
        window.selection().setRunB({trace, 2});
        window.selection().setSequence(1);
        window.selection().setToken(30);
        ThinkRequest think;
        think.checkpoint = checkpoint;
        think.prompt = u"It's \"late\" $HOME\nand\\dark"_s;
        think.tokens = 3;
        think.more = QStringList{u"--steps=2"_s};
        window.runs().thinkPanel().setRequest(think);
        return settle();
    }
    /// What a panel gives once it is on the screen and has computed what it shows.
    [[nodiscard]] ViewCommand commandOf(const QString& name) {
        window.raisePanel(name);
        const auto* shows = dynamic_cast<ShowsCommand*>(window.docks().panel(name));
        ViewCommand command;
        (void)QTest::qWaitFor(
            [&] {
                command = shows->viewCommand();
                return !window.isBusy() && command.kind != ViewCommand::Kind::none;
            },
            15'000);
        return command;
    }
    /// An empty folder to run it in.
    [[nodiscard]] QString empty() {
        where = folder.filePath(u"empty-%1"_s.arg(++count));
        QDir().mkpath(where);
        return where;
    }
    /// Runs a command in an empty folder; what it prints. Fails the test if the command fails.
    QString run(const ViewCommand& command) {
        const Ran ran = command.kind == ViewCommand::Kind::shell
                            ? in_shell(command.text, empty())
                            : ::run(python(), {u"-c"_s, command.text}, empty());
        if (ran.code != 0) {
            QTest::qFail(qPrintable(command.text + u'\n' + ran.err), __FILE__, __LINE__);
        }
        return ran.out;
    }

    QString checkpoint;
    QString trace;
    QString where; ///< the folder of the last command
    int count = 0;
};

} // namespace

class DesktopCommandsTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void quoting() {
        QCOMPARE(shell_quoted(u"plain-1.ponder"_s), u"plain-1.ponder"_s);
        QCOMPARE(shell_quoted(QString()), u"''"_s);
        QCOMPARE(python_quoted(u"a\"b\\c\nd"_s), u"\"a\\\"b\\\\c\\U0000000ad\""_s);
        Stage stage;
        for (const QString& word : {u"it's"_s, u"$HOME `ls` \\ * ?"_s, u"two\nlines"_s, u"-n"_s, u"~"_s,
                                    u"größer „so“ 😀"_s, awkward}) {
            QCOMPARE(in_shell(u"printf %s "_s + shell_quoted(word), stage.folder.path()).out, word);
            if (!python().isEmpty()) {
                const Ran ran = run(
                    python(), {u"-X"_s, u"utf8"_s, u"-c"_s, u"print(%1, end='')"_s.arg(python_quoted(word))},
                    stage.folder.path());
                QCOMPARE(ran.out, word);
            }
        }
    }

    void everyPanelsCommandRuns_data() {
        QTest::addColumn<QString>("name");
        QTest::newRow("text") << u"text"_s;
        for (const Panel& panel : panels()) {
            QTest::newRow(panel.name) << QString::fromLatin1(panel.name);
        }
    }
    void everyPanelsCommandRuns() {
        QFETCH(QString, name);
        Shown shown;
        QVERIFY(shown.ready());
        if (name == QLatin1String("experts")) {
            shown.window.selection().setRunA(
                {shown.trace, TraceReader::open(shown.trace.toStdString()).runs().back().id});
            shown.window.selection().setSequence(0);
        }
        const ViewCommand command =
            name == QLatin1String("text") ? shown.window.text().viewCommand() : shown.commandOf(name);
        QVERIFY2(command.kind != ViewCommand::Kind::none, qPrintable(name + u": "_s + command.text));
        if (command.kind == ViewCommand::Kind::python && python().isEmpty()) {
            QSKIP("no Python with numpy; run tests/app/python/run_tests.sh once, which makes one");
        }
        const QString out = shown.run(command);
        QVERIFY2(!out.isEmpty() || !QDir(shown.where).isEmpty(QDir::Files), qPrintable(command.text));
        // The title's button copies the same.
        if (auto* dock = shown.window.docks().dock(name)) {
            const auto buttons = dock->titleBarWidget()->findChildren<QToolButton*>();
            const auto copy = std::ranges::find_if(
                buttons, [](const QToolButton* one) { return one->text() == QLatin1String("$"); });
            QVERIFY(copy != buttons.end());
            (*copy)->click();
            QCOMPARE(QApplication::clipboard()->text(), command.text);
            QVERIFY(shown.window.messages().has("command.copied"));
        }
    }

    void itIsOfWhatIsShown() {
        Shown shown;
        QVERIFY(shown.ready());
        TextPanel& text = shown.window.text();
        QVERIFY(text.viewCommand().text.contains(u"\"sequence\": 1"_s));
        text.setQuantity(Quantity::entropy);
        QVERIFY(text.viewCommand().text.contains(u"\"quantity\": \"entropy\""_s));
        text.setQuantity(Quantity::nll);
        text.setDifference(true);
        QVERIFY(text.viewCommand().text.contains(u"nll_difference"_s));
        text.setZoom(TextZoom::corpus);
        shown.run(text.viewCommand());
        QVERIFY(text.viewCommand().text.contains(u"--run=vanilla-1m"_s));
        text.setZoom(TextZoom::text);

        shown.window.raisePanel(u"heatmap"_s);
        QVERIFY(shown.settle());
        shown.window.panel<HeatmapView>().setSignalName(u"entropy"_s);
        QVERIFY(shown.window.panel<HeatmapView>().viewCommand().text.contains(u"\"signal\": \"entropy\""_s));

        // The policy and its threshold; the text that it colours.
        (void)shown.commandOf(u"lab"_s);
        PolicyLab& lab = shown.window.panel<PolicyLab>();
        lab.policies()->setCurrentIndex(lab.policies()->findText(u"entropy"_s));
        lab.slider()->setValue(lab.slider()->maximum() / 2);
        QVERIFY(lab.viewCommand().text.contains(u"--policy="_s + lab.policyText()));
        QTRY_VERIFY(text.view().showsReplay());
        shown.run(text.viewCommand());
        QVERIFY(QFile::exists(shown.where + u"/tokens.csv"_s));

        // Who wins where, beside the comparison.
        (void)shown.commandOf(u"compare"_s);
        CompareView& compare = shown.window.panel<CompareView>();
        compare.detail()->setCurrentIndex(compare.detail()->findText(u"Who wins where"_s));
        QVERIFY(compare.viewCommand().text.contains(u"\"winners\""_s));
        shown.run(compare.viewCommand());
        shown.window.selection().setRunB({});
        shown.run(compare.viewCommand());

        // The costs of the front.
        auto* cost = shown.window.docks().panel(u"pareto"_s)->findChild<QComboBox*>();
        for (int i = 0; i < cost->count(); ++i) {
            cost->setCurrentIndex(i);
            shown.run(shown.commandOf(u"pareto"_s));
        }
        if (!python().isEmpty()) {
            text.setZoom(TextZoom::tokens);
            QCOMPARE(shown.run(text.viewCommand()).count(u'\n'), 240);
            for (const auto how :
                 {DepthView::Shown::token, DepthView::Shown::mean, DepthView::Shown::spread}) {
                shown.window.panel<DepthView>().setShown(how);
                QVERIFY(shown.run(shown.commandOf(u"depth"_s)).contains(u"[["_s));
            }
            // The very numbers of the view.
            DepthView& depth = shown.window.panel<DepthView>();
            depth.setShown(DepthView::Shown::token);
            QTRY_VERIFY(depth.depth().has_value());
            const DepthMap& map = *depth.depth();
            const std::vector<float> grid = map.grid(29, -1, -1);
            ViewCommand command = depth.viewCommand();
            command.text += u"print('is', np.nanmean(weights, axis=(0, -1))[3, 1])\n"_s;
            const QString out = shown.run(command);
            const double said = out.section(u"is "_s, -1).trimmed().toDouble();
            const double wanted = static_cast<double>(grid[static_cast<std::size_t>(3 * map.sources() + 1)]);
            QVERIFY2(wanted > 0 && std::abs(said - wanted) < 1e-4, qPrintable(out));
        }
    }

    void withoutARunItSaysWhy() {
        Stage stage;
        stage.window.show();
        QApplication::clipboard()->setText(u"before"_s);
        for (const Panel& panel : panels()) {
            QWidget* view = stage.window.docks().panel(QString::fromLatin1(panel.name));
            const ViewCommand command = dynamic_cast<ShowsCommand*>(view)->viewCommand();
            QCOMPARE(command.kind, ViewCommand::Kind::none);
            QVERIFY2(command.text.endsWith(u'.'), panel.name);
            stage.window.menu().copyCommand(view);
        }
        QCOMPARE(stage.window.text().viewCommand().kind, ViewCommand::Kind::none);
        QCOMPARE(QApplication::clipboard()->text(), u"before"_s);
    }

    void dialogs() {
        Shown shown;
        QVERIFY(shown.ready());
        const auto copied = [](QDialog& dialog) {
            dialog.findChild<CommandLine*>()->findChild<QPushButton*>()->click();
            return QApplication::clipboard()->text();
        };
        // Record
        RecordRequest request;
        request.checkpoint = shown.checkpoint;
        request.fromPrompt = true;
        request.prompt = u"It's $HOME, \"here\"\nand there"_s;
        request.more = {u"--steps=2"_s, u"--kv=shared"_s};
        request.trace = shown.folder.filePath(u"recorded by hand.ponder"_s);
        shown.window.runs().showRecordDialog(request);
        const QString record = copied(*shown.window.runs().recordDialog());
        QVERIFY(!record.contains(u"--progress"_s));
        const Ran recorded = in_shell(record, shown.empty());
        QVERIFY2(recorded.code == 0, qPrintable(record + recorded.err));
        QVERIFY(QFile::exists(request.trace));
        shown.window.runs().recordDialog()->close();
        // The workbench, before anything was exported
        for (const figure::FigureKind kind :
             {figure::FigureKind::token_text, figure::FigureKind::policy_front}) {
            shown.window.figures().exportFigure(kind);
            const QString file = shown.folder.filePath(u"it's a figure.svg"_s);
            QFile::remove(file);
            shown.window.figures().dialog()->file()->setFile(file);
            // The same bytes from two processes, whatever their time zone and their hash seed.
            QByteArray bytes;
            for (const char* surroundings :
                 {"export TZ=Asia/Tokyo QT_HASH_SEED=1\n", "export TZ=UTC QT_HASH_SEED=77\n"}) {
                const Ran made = in_shell(
                    QLatin1String(surroundings) + copied(*shown.window.figures().dialog()), shown.empty());
                QVERIFY2(made.code == 0, qPrintable(made.err));
                QFile written(file);
                QVERIFY(written.open(QIODevice::ReadOnly));
                const QByteArray now = written.readAll();
                QVERIFY(now.size() > 500 && (bytes.isEmpty() || bytes == now));
                bytes = now;
            }
            shown.window.figures().dialog()->close();
        }
    }
};

QTEST_MAIN(DesktopCommandsTest)
#include "desktop_commands_test.moc"
