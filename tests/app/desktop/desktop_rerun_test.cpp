// SPDX-License-Identifier: GPL-3.0-or-later
// "Rerun exactly" of the policy lab, with the real program on a checkpoint of the test's own.
#include "core/policy/policy_rows.h"
#include "core/policy/replay.h"
#include "core/policy/rerun_difference.h"
#include "core/trace/recorded_choices.h"
#include "core/trace/writer.h"
#include "tests/app/desktop/engine_stage.h"
#include "tests/support/test_data.h"
#include "views/chart/chart_plot.h"
#include "views/figure/figure_panel.h"
#include "views/policy/policy_data.h"
#include "views/policy/policy_lab.h"

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

struct Stage : testing::EngineStage {
    Stage() : EngineStage(6) {}
    /// The run that replays start from.
    [[nodiscard]] bool record(const QStringList& more = {}) const {
        return EngineStage::record(u"full"_s, more);
    }
    [[nodiscard]] bool open() {
        window.show();
        window.open(trace());
        window.raisePanel(u"lab"_s);
        window.panel<PolicyLab>().setOnScreen(true);
        return settle() && hasTable();
    }
    /// Whether the lab gets its table of the run.
    [[nodiscard]] bool hasTable() {
        return testing::comes([&] {
            return PolicyData::of({window.data(), window.selection(), theme}).table() != nullptr &&
                   !window.isBusy();
        });
    }
    void chooseEntropyInTheMiddle() {
        PolicyLab& lab = window.panel<PolicyLab>();
        lab.policies()->setCurrentIndex(lab.policies()->findText(u"entropy"_s));
        lab.slider()->setValue(lab.slider()->maximum() / 2);
    }
    /// Whether the lab gets the numbers of a rerun, and the recording ends.
    [[nodiscard]] bool hasRerun() {
        return testing::comes([&] {
            return window.panel<PolicyLab>().rerunText().contains(u"rerun − replay"_s) &&
                   !window.runs().recorder().isRunning();
        });
    }
    [[nodiscard]] bool rerunsEntropy() {
        chooseEntropyInTheMiddle();
        window.panel<PolicyLab>().rerunButton()->click();
        return hasRerun();
    }
    [[nodiscard]] TraceReader scratch() const {
        return TraceReader::open(window.runs().scratch().toStdString());
    }
};

} // namespace

class DesktopRerunTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void aRunWithStatesPutInIsRefusedAsTheCommandLineRefusesIt() {
        testing::Stage stage;
        const QString trace = stage.make(u"patched.ponder"_s, {.sequences = 1, .tokens = 60});
        RunInfo run;
        run.name = "a patched";
        run.choices = R"({"patches":[{"to":{"token":3,"step":0},"from":"zero"}]})";
        {
            TraceWriter writer(trace.toStdString());
            writer.begin_run(run, {});
            writer.end_run(1);
        }
        QVERIFY(stage.shows(trace));
        const QSignalSpy ended(&stage.window.runs(), &RunController::rerunEnded);
        stage.window.runs().rerun({trace, stage.window.data().runs(trace).back().id}, u"fixed:n=1"_s);
        QVERIFY(stage.window.messages().has("rerun.refused", QString::fromStdString(why_no_rerun(run))));
        QCOMPARE(ended.size(), 1);
        QVERIFY(!stage.window.runs().recorder().isRunning());
    }

    void theRerunIsRecordedAndSetAgainstTheReplay() {
        Stage stage;
        QVERIFY(stage.record());
        QVERIFY(stage.open());
        PolicyLab& lab = stage.window.panel<PolicyLab>();
        stage.chooseEntropyInTheMiddle();
        QVERIFY(lab.rerunText().isEmpty());
        QVERIFY(lab.rerunButton()->isEnabled());
        const RunKey run = stage.window.selection().runA();
        QVERIFY(stage.rerunsEntropy());
        QVERIFY(!lab.rerunButton()->isEnabled()); // it is there already
        QCOMPARE(stage.window.selection().runA(), run);

        // The run is the policy's, over the very tokens, and the numbers are its own. The trace that was
        // opened is as it was.
        const TraceReader reader = TraceReader::open(stage.trace().toStdString());
        QCOMPARE(reader.runs().size(), 1U);
        const TraceReader scratch = stage.scratch();
        const RunInfo first = find_run(reader, "1");
        const RunInfo again = find_run(scratch, "1");
        QCOMPARE(QString::fromStdString(again.policy), lab.policyText());
        QCOMPARE(scratch.tokens(1, 0).id, reader.tokens(1, 0).id);
        QCOMPARE(again.text_digest, first.text_digest);
        const ReplayTable table = ReplayTable::load(reader, first);
        const ReplayResult replayed = replay(table, PolicySpec::parse(again.policy));
        const RerunDifference difference = rerun_difference(table, replayed, reader, first, scratch, again);
        QCOMPARE(difference.tokens, first.scored_tokens);
        QVERIFY(std::abs(difference.mean_nll - again.nll_sum / static_cast<double>(again.scored_tokens)) <
                1e-9);
        QVERIFY(std::abs(difference.mean_nll - replayed.mean_nll - difference.difference) < 1e-6);
        QVERIFY(difference.largest >= std::abs(difference.difference));
        QVERIFY(difference.mean_steps > 0 && difference.mean_steps < 3);
        QVERIFY2(lab.rerunText().contains(QString::number(difference.mean_nll, 'f', 3)),
                 qPrintable(lab.rerunText()));

        // Another threshold has no rerun; the first one finds its again.
        const QString done = lab.policyText();
        lab.slider()->setValue(0);
        QVERIFY(lab.rerunText().isEmpty());
        // What was rerun stays as a point on the front, and the rule is said with its threshold.
        const std::vector<Chart::Series>& drawn = lab.front()->chart(0)->chart().series;
        QVERIFY(std::ranges::any_of(drawn, [&](const Chart::Series& series) {
            return series.name == u"rerun of "_s + done &&
                   std::abs(series.y.front() - std::exp(difference.mean_nll)) < 1e-9;
        }));
        QStringList said;
        for (const QLabel* label : lab.findChildren<QLabel*>()) {
            said << label->text();
        }
        const PolicySpec rule = PolicySpec::parse(lab.policyText().toStdString());
        const std::string words = rule_in_words(*rule.kind, rule.number("theta"));
        QVERIFY2(said.join(u' ').contains(QString::fromStdString(words)), qPrintable(said.join(u' ')));
        lab.slider()->setValue(lab.slider()->maximum() / 2);
        QTRY_VERIFY(lab.rerunText().contains(u"rerun − replay"_s));
    }

    void itCanBeCancelled() {
        Stage stage;
        QVERIFY(stage.record());
        QVERIFY(stage.open());
        stage.window.runs().recorder().setProgram(stage.program(
            u"slow.sh"_s, R"(echo '{"activity":"reading weights","done":9,"total":9,"unit":"bytes"}' >&2
while [ ! -e "$0.on" ]; do sleep 0.05; done
echo '{"activity":"recording","done":1,"total":4,"unit":"tokens"}' >&2
exec sleep 600
)"));
        PolicyLab& lab = stage.window.panel<PolicyLab>();
        stage.chooseEntropyInTheMiddle();
        lab.rerunButton()->click();
        QTRY_COMPARE(stage.window.runs().recorder().progress().unit, u"bytes"_s);
        QVERIFY2(lab.rerunText().contains(u": 0 %"_s), qPrintable(lab.rerunText()));
        stage.write(u"slow.sh.on"_s, {});
        QTRY_VERIFY(lab.rerunText().contains(u"25 %"_s));
        lab.rerunButton()->click();
        QTRY_VERIFY(!stage.window.runs().recorder().isRunning());
        QVERIFY(lab.rerunText().isEmpty());
        QVERIFY(lab.rerunButton()->isEnabled());
    }

    void aCheckpointThatMovedIsAskedForOnce() {
        Stage stage;
        QVERIFY(stage.record());
        const QDir folder(stage.folder.path());
        QVERIFY(QDir(folder).rename(u"model"_s, u"elsewhere"_s));
        testing::TinyCheckpoint{.pondering_steps = 2}.write(folder.filePath(u"other"_s).toStdString());
        QVERIFY(stage.open());
        stage.chooseEntropyInTheMiddle();
        const auto said = [&] { return stage.window.messages().sentences().join(u' '); };
        stage.window.panel<PolicyLab>().rerunButton()->click();
        QVERIFY2(stage.window.messages().has("checkpoint.missing"), qPrintable(said()));
        QVERIFY(stage.chooseFile(u"locate"_s, folder.filePath(u"other"_s)));
        QTRY_VERIFY2(stage.window.messages().has("checkpoint.other"), qPrintable(said()));
        QVERIFY(!stage.window.runs().recorder().isRunning());
        stage.window.messages().clear();
        stage.window.panel<PolicyLab>().rerunButton()->click();
        QVERIFY(stage.chooseFile(u"locate"_s, folder.filePath(u"elsewhere"_s)));
        QVERIFY(stage.hasRerun());
        QVERIFY2(said().isEmpty(), qPrintable(said()));
        // By its digest it is known from now on, also to a what if.
        stage.window.whatIf().giveSteps(9, 1);
        QVERIFY(stage.window.runs().recorder().isRunning());
        QCOMPARE(stage.window.runs().recorder().request().checkpoint, folder.filePath(u"elsewhere"_s));
        QTRY_VERIFY(!stage.window.runs().recorder().isRunning());
    }

    void aRecurrentRunKeepsItsStepsItsStartAndWhatIsSeen() {
        if (!std::filesystem::exists(testing::golden_case("huginn_1_2_1_r3_untied_nobias"))) {
            QSKIP("reference data golden is absent");
        }
        Stage stage;
        const QDir model(stage.folder.filePath(u"model"_s));
        const QDir golden(
            QString::fromStdString(testing::golden_case("huginn_1_2_1_r3_untied_nobias").string()));
        for (const char* name : {"config.json", "model.safetensors"}) {
            QFile::remove(model.filePath(QLatin1String(name)));
            QVERIFY(QFile::copy(golden.filePath(QLatin1String(name)), model.filePath(QLatin1String(name))));
        }
        QVERIFY(
            stage.record({u"--steps=5"_s, u"--initial-state=random:7"_s, u"--context=32"_s, u"--kv=full"_s}));
        QVERIFY(stage.open());
        // What if: nothing else is changed, so that the difference is that of the step alone.
        stage.window.whatIf().giveSteps(9, 2);
        QTRY_VERIFY(stage.window.selection().runA().trace == stage.window.runs().scratch());
        QVERIFY(stage.settle());
        const RunInfo asked = stage.scratch().runs().at(0);
        QCOMPARE(asked.max_steps, 4);
        QCOMPARE(recorded_choices(asked).initial_state, std::string("random:7"));
        QCOMPARE(recorded_choices(asked).kv, std::string("full"));
        const TraceReader reader = TraceReader::open(stage.trace().toStdString());
        const TokenColumns before = reader.tokens(1, 0);
        const TokenColumns after = stage.scratch().tokens(1, 0);
        for (std::size_t i = 0; i < before.size() && i < 30; ++i) {
            QVERIFY2(i == 8 || before.nll[i] == after.nll[i], qPrintable(QString::number(i)));
        }
        QCOMPARE(after.steps[8], 2);
        QVERIFY(before.nll[8] != after.nll[8]);

        // The lab's rerun takes its exits.
        QVERIFY(stage.settle());
        stage.window.selection().setRunA({stage.trace(), 1});
        QVERIFY(stage.hasTable());
        QVERIFY(stage.rerunsEntropy());
        const RunInfo rerun = stage.scratch().runs().at(1);
        QCOMPARE(rerun.max_steps, 4);
        QCOMPARE(recorded_choices(rerun).initial_state, std::string("random:7"));
        QCOMPARE(recorded_choices(rerun).kv, std::string("per_step"));
    }

    void aFileOfStartStatesIsFoundFromTheTrace() {
        QTemporaryDir folder;
        QVERIFY(QDir(folder.path()).mkpath(u"model"_s));
        for (const char* name : {"model/start.safetensors", "zero"}) {
            QVERIFY(QFile(folder.filePath(QLatin1String(name))).open(QIODevice::WriteOnly));
        }
        RunInfo run;
        run.method = "huginn";
        run.max_steps = 3;
        run.choices = R"({"kv": "skip", "initial_state": "model/start.safetensors"})";
        const QString trace = folder.filePath(u"t.ponder"_s);
        const auto more = [&] { return rerun_request(run, trace, u"full"_s, u"skip"_s).more; };
        QCOMPARE(more(),
                 (QStringList{u"--steps=4"_s, u"--kv=skip"_s,
                              u"--initial-state="_s + folder.filePath(u"model/start.safetensors"_s)}));
        run.choices = R"({"initial_state": "zero"})"; // no file, though there is one of that name
        QVERIFY(more().contains(u"--initial-state=zero"_s));
        run.choices = R"({"initial_state": "gone.safetensors"})";
        QVERIFY(more().contains(u"--initial-state=gone.safetensors"_s));
        run.method = "ponderlm2"; // whose steps have weights of their own
        QVERIFY(!more().join(u' ').contains(u"--steps"_s));
    }
};

QTEST_MAIN(DesktopRerunTest)
#include "desktop_rerun_test.moc"
