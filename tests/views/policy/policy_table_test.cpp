// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/replay.h"
#include "core/trace/writer.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "views/chart/chart_plot.h"
#include "views/common/tables.h"
#include "views/figure/figure_form.h"
#include "views/figure/figure_panel.h"
#include "views/figure/spec.h"
#include "views/policy/front_chart.h"
#include "views/policy/policy_data.h"
#include "views/policy/policy_lab.h"
#include "views/policy/policy_table.h"
#include "views/policy/policy_table_model.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QHeaderView>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QSlider>
#include <QTableView>
#include <QtTest>

#include <cmath>

using namespace ponderscope;

namespace {

struct Stage {
    Stage() {
        const auto path = folder / "lab.ponder";
        testing::write_sample_trace(path, {.sequences = 2, .tokens = 300, .secondRun = false});
        trace = QString::fromStdString(path.string());
        lab.resize(1000, 260);
        data.open(trace);
    }
    [[nodiscard]] bool open() {
        if (!QTest::qWaitFor([&] { return data.isOpen(trace); }, 10'000)) {
            return false;
        }
        selection.setRunA({trace, data.runs(trace)[0].id});
        lab.show();
        lab.setOnScreen(true);
        lab.setTableShown(true);
        return settle();
    }
    [[nodiscard]] bool settle() {
        return QTest::qWaitFor([&] { return !lab.isBusy(); }, 20'000);
    }
    [[nodiscard]] PolicyTableModel& model() { return lab.policyTable().model(); }
    [[nodiscard]] QString cell(int row, int column) { return model().index(row, column).data().toString(); }
    testing::TemporaryFolder folder;
    QString trace;
    TraceData data;
    Selection selection;
    Theme theme{Appearance::light};
    ViewContext context{data, selection, theme};
    PolicyLab lab{context};
};

PolicyRow made_up(const char* spec, double threshold) {
    PolicyRow row;
    row.spec = spec;
    const PolicySpec parsed = PolicySpec::parse(spec);
    row.number = static_cast<std::size_t>(parsed.kind - policy_kinds().data());
    row.threshold = threshold;
    row.replayed = {1.25, 2.5, 3e6, 0.4, {0.031, 0.020, 0.042, 0.005}};
    return row;
}

} // namespace

class PolicyTableTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void rowsComeGoAndKeepTheirPlace() {
        PolicyTableModel model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.setRows({made_up("entropy:theta=2", 2), made_up("fixed:n=1", 1)});
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.rows()[0].spec, "fixed:n=1"); // as the kinds are listed
        QSignalSpy resets(&model, &QAbstractItemModel::modelReset);
        PolicyRow rerun = made_up("entropy:theta=2", 2);
        rerun.replayed.against_blind = {-0.1, -0.2, -0.05, 0.04};
        rerun.rerun = PolicyOutcome{1.5, 2.6, 3.2e6, 0.35, {0.051, 0.040, 0.062, 0.005}};
        model.setRows({made_up("entropy:theta=1", 1), rerun, made_up("kl:theta=0.1", 0.1)});
        QCOMPARE(resets.size(), 0); // what is selected stays
        QCOMPARE(model.rowCount(), 3);
        QCOMPARE(model.rowOf(QStringLiteral("entropy:theta=1")), 0);
        QCOMPARE(model.rowOf(QStringLiteral("fixed:n=1")), -1);
        const auto text = [&](int row, int column) { return model.index(row, column).data().toString(); };
        QCOMPARE(text(1, PolicyTableModel::steps), QStringLiteral("1.25"));
        QCOMPARE(text(1, PolicyTableModel::steps_rerun), QStringLiteral("1.50"));
        QCOMPARE(text(1, PolicyTableModel::difference), QStringLiteral("+0.031 ± 0.011"));
        QCOMPARE(text(1, PolicyTableModel::better), QStringLiteral("yes")); // below 0 as a whole
        rerun.replayed.against_blind.high = 0.01;
        QVERIFY(!rerun.replayed.thinks_better());
        QCOMPARE(text(1, PolicyTableModel::saved_rerun), QStringLiteral("35.0 %"));
        QCOMPARE(text(0, PolicyTableModel::steps_rerun), QStringLiteral("–")); // not rerun
        QCOMPARE(text(1, PolicyTableModel::rule),
                 QStringLiteral("A token stops when the entropy of the read-out is below 2 nats."));

        // A line of numbers with all their digits and the ends of their intervals; what a page shows,
        // otherwise.
        const QStringList csv = table_text(model, TableForm::csv).split(u'\n');
        QCOMPARE(csv[0], QStringLiteral(
                             "policy,threshold,mean_steps,mean_steps_rerun,difference,difference_low,"
                             "difference_high,difference_rerun,difference_rerun_low,difference_rerun_high,"
                             "against_blind,against_blind_low,against_blind_high,thinks_better,flops_saved,"
                             "flops_saved_rerun,rule"));
        QVERIFY2(
            csv[2].startsWith(QStringLiteral(
                "entropy,2,1.25,1.5,0.031,0.02,0.042,0.051,0.04,0.062,-0.1,-0.2,-0.05,1,0.4,0.35,A token")),
            qPrintable(csv[2]));
        const QStringList markdown = table_text(model, TableForm::markdown).split(u'\n');
        QVERIFY(markdown[1].startsWith(QStringLiteral("| --- | ---: |")));
        QVERIFY(markdown[3].contains(QStringLiteral("| +0.031 ± 0.011 |")));
        QCOMPARE(table_text(model, TableForm::text).count(u'\t'), 4 * (PolicyTableModel::column_count - 1));
    }

    void aSignalByNameIsARowAndAFrontLikeOthers() {
        testing::TemporaryFolder folder;
        const auto path = folder / "lab.ponder";
        testing::write_sample_trace(path, {.sequences = 2, .tokens = 300, .secondRun = false});
        const TraceReader reader = TraceReader::open(path);
        const RunInfo run = reader.runs().front();
        const ReplayTable table = ReplayTable::load(reader, run);
        const std::vector<PolicyRow> rows = policy_rows(
            table, {path, run}, {"entropy:theta=2", "signal:name=entropy,theta=2"}, {}, {.replicates = 100});
        QCOMPARE(rows[1].replayed.steps, rows[0].replayed.steps);
        QCOMPARE(rows[1].replayed.difference.low, rows[0].replayed.difference.low);
        QCOMPARE(rows[1].threshold, 2.0);
        QVERIFY(rows[1].number >= policy_kinds().size()); // behind the kinds of the page
        std::vector<PolicyFront> fronts = policy_fronts(table, {"entropy", "signal:name=entropy"}, 9, {});
        QCOMPARE(std::erase_if(fronts, [](const PolicyFront& one) { return one.policy == blind_rule; }), 1U);
        QCOMPARE(fronts.size(), 2U);
        QCOMPARE(fronts[1].policy, "signal:name=entropy,stops=below");
        QCOMPARE(fronts[1].points.size(), fronts[0].points.size());
        PolicyTableModel model;
        model.setRows(rows);
        QCOMPARE(model.index(1, PolicyTableModel::rule).data().toString(),
                 QStringLiteral("A token stops when the signal entropy is below 2."));
    }

    void rerunsAreSetAgainstFullAlone() {
        testing::TemporaryFolder folder;
        const auto path = folder / "lab.ponder";
        testing::write_sample_trace(path, {.sequences = 2, .tokens = 300, .secondRun = false});
        const TraceReader reader = TraceReader::open(path);
        RunInfo run = reader.runs().front();
        const BootstrapOptions options{.replicates = 100};
        ReplayTable table = ReplayTable::load(reader, run);
        QVERIFY(table.halted);
        FlopsModel costs;
        costs.steps.assign(4, 100);
        costs.decisions.assign(3, 0);
        const auto with_costs = [&](ReplayTable& given) {
            given.flops = costs;
            for (const std::int64_t tokens : given.sequences) {
                given.windows.push_back(plan_windows(tokens, tokens, tokens));
            }
        };
        table.windows.clear();
        with_costs(table);
        // The run as if it were a rerun: of what all steps would lose or cost it knows nothing.
        const auto rerun_in = [&](const ReplayTable& given) {
            const std::vector<PolicyRow> rows =
                policy_rows(given, {path, run}, {"fixed:n=1"}, {{"fixed:n=1", {path, run}}}, options);
            return *rows.front().rerun;
        };
        PolicyOutcome found = rerun_in(table);
        QVERIFY(std::isfinite(found.nll) && std::isfinite(found.flops));
        QVERIFY(std::isnan(found.difference.value));
        QVERIFY(std::isnan(found.saved));
        // Exits that only choose the read-out: what the run is read out as is not full.
        run.choices = R"({"kv":"full"})";
        ReplayTable chosen = ReplayTable::load(reader, run);
        QVERIFY(!chosen.halted);
        chosen.windows.clear();
        with_costs(chosen);
        found = rerun_in(chosen);
        QVERIFY(std::isnan(found.difference.value));
        QVERIFY(std::isfinite(found.saved));
    }

    void oneRowAPolicyAndItsNumbersAreTheReplays() {
        Stage stage;
        QVERIFY(stage.open());
        const auto table = PolicyData::of(stage.context).table();
        QVERIFY(table);
        const QAbstractItemModelTester tester(&stage.model());
        std::size_t kinds = 0;
        for (const PolicyKind& kind : policy_kinds()) {
            kinds += table->can(kind) ? 1 : 0;
        }
        QCOMPARE(stage.model().rows().size(), kinds);
        const ReplayResult full = replay(*table, PolicySpec::parse("full"));
        for (const PolicyRow& row : stage.model().rows()) {
            const ReplayResult exact = replay(*table, PolicySpec::parse(row.spec));
            QCOMPARE(row.replayed.steps, exact.mean_steps);
            QVERIFY2(std::abs(row.replayed.difference.value - (exact.mean_nll - full.mean_nll)) < 1e-9,
                     row.spec.c_str());
            QVERIFY(row.replayed.difference.low <= row.replayed.difference.value);
            QVERIFY(row.replayed.difference.value <= row.replayed.difference.high);
            QVERIFY(!row.rerun);
        }
        // The slider's row follows it, and no second one of its kind is left.
        stage.lab.setTableShown(false);
        stage.lab.policies()->setCurrentIndex(stage.lab.policies()->findText(QStringLiteral("entropy")));
        stage.lab.slider()->setValue(stage.lab.slider()->maximum() / 3);
        const QString spec = stage.lab.policyText();
        stage.lab.setTableShown(true);
        QTRY_VERIFY(stage.model().rowOf(spec) >= 0);
        QVERIFY(stage.settle());
        QCOMPARE(stage.model().rows().size(), kinds);
        QTRY_COMPARE(stage.lab.policyTable().selected(), QStringList{spec}); // what is looked at is marked
        // Another kind and back: it stands where it stood.
        stage.lab.policies()->setCurrentIndex(stage.lab.policies()->findText(QStringLiteral("fixed")));
        stage.lab.policies()->setCurrentIndex(stage.lab.policies()->findText(QStringLiteral("entropy")));
        QCOMPARE(stage.lab.policyText(), spec);
    }

    void aRowTheChartAndTheSliderSpeakOfOnePolicy() {
        Stage stage;
        QVERIFY(stage.open());
        QTableView& table = stage.lab.policyTable().table();
        for (int row = 0; row < table.model()->rowCount(); ++row) {
            table.setCurrentIndex(table.model()->index(row, 0));
            QCOMPARE(stage.lab.policyText(),
                     QString::fromStdString(stage.model().rows()[static_cast<std::size_t>(row)].spec));
            QCOMPARE(PolicyData::of(stage.context).chosen(), stage.lab.policyText());
        }
        // Sorted by what it loses, least first.
        table.sortByColumn(PolicyTableModel::difference, Qt::AscendingOrder);
        double before = -1e9;
        for (int row = 0; row < table.model()->rowCount(); ++row) {
            const double value =
                table.model()->index(row, PolicyTableModel::difference).data(Qt::UserRole).toDouble();
            QVERIFY(value >= before);
            before = value;
        }
        // A click on a point of a front chooses its policy, here and in the Pareto view.
        figure::FigureSpec spec;
        spec.kind = figure::FigureKind::policy_front;
        FigurePanel pareto(stage.context, spec);
        QObject::connect(&pareto, &FigurePanel::linkChosen, &PolicyData::of(stage.context),
                         &PolicyData::chooseLink);
        QTRY_VERIFY_WITH_TIMEOUT(!pareto.isBusy() && !pareto.chart()->chart().empty(), 60'000);
        const auto fronts = PolicyData::of(stage.context).fronts();
        QVERIFY(fronts);
        const Chart chart = pareto.chart()->chart();
        int series = 0;
        while (chart.series[static_cast<std::size_t>(series)].name != QStringLiteral("entropy") ||
               chart.series[static_cast<std::size_t>(series)].mark != Chart::Mark::line) {
            ++series;
        }
        Q_EMIT pareto.chart()->markClicked(series, 3);
        const auto front = std::find_if(fronts->begin(), fronts->end(),
                                        [](const PolicyFront& one) { return one.policy == "entropy"; });
        QCOMPARE(stage.lab.policyText(), QString::fromStdString(front->points[3].spec));
        QCOMPARE(stage.lab.policies()->currentText(), QStringLiteral("entropy"));
    }

    void bandsAxesAndLimitsAreThoseOfTheFigure() {
        Stage stage;
        QVERIFY(stage.open());
        figure::FigureSpec spec;
        spec.kind = figure::FigureKind::policy_front;
        spec.bands = true;
        spec.replicates = 200;
        FigurePanel pareto(stage.context, spec);
        const auto bands = [&] {
            const auto& series = pareto.chart()->chart().series;
            return std::count_if(series.begin(), series.end(),
                                 [](const auto& one) { return one.mark == Chart::Mark::band; });
        };
        const auto settled = [&] { return !pareto.isBusy() && !pareto.chart()->chart().empty(); };
        QTRY_VERIFY_WITH_TIMEOUT(settled() && bands() > 0, 60'000);
        for (const auto& series : pareto.chart()->chart().series) {
            for (std::size_t i = 0; i < series.low.size(); ++i) {
                QVERIFY(series.low[i] <= series.y[i] && series.y[i] <= series.high[i]);
            }
        }
        const auto editor = [&](const char* key) { return pareto.form()->editor(QLatin1String(key)); };
        qobject_cast<QCheckBox*>(editor("bands"))->setChecked(false);
        QTRY_VERIFY_WITH_TIMEOUT(settled() && bands() == 0, 60'000);
        auto* log = qobject_cast<QComboBox*>(editor("log"));
        log->setCurrentIndex(log->findData("both"));
        QTRY_VERIFY_WITH_TIMEOUT(settled() && pareto.chart()->chart().x.log, 60'000);
        const QList<QLineEdit*> ends = editor("y_range")->findChildren<QLineEdit*>();
        QCOMPARE(ends.size(), 2);
        ends[0]->setText(QStringLiteral("2"));
        ends[1]->setText(QStringLiteral("50"));
        QTRY_VERIFY_WITH_TIMEOUT(settled() && pareto.chart()->chart().y.high == 50.0, 60'000);
        QVERIFY(pareto.chart()->chart().y.log);
        const QString command = pareto.viewCommand().text;
        for (const char* part : {"\"log\": \"both\"", "y_range", "policy_front"}) {
            QVERIFY2(command.contains(QLatin1String(part)), qPrintable(command));
        }
        QVERIFY(!command.contains(QLatin1String("bands")));
    }

    void itIsCopiedAndMadeAFigure() {
        Stage stage;
        QVERIFY(stage.open());
        QTableView& table = stage.lab.policyTable().table();
        table.setFocus();
        QTest::keyClick(&table, Qt::Key_C, Qt::ControlModifier);
        for (QAction* action : table.actions()) {
            action->trigger();
            const QString text = QApplication::clipboard()->text();
            QVERIFY2(text.contains(QStringLiteral("entropy")) &&
                         text.contains(QStringLiteral("policy"), Qt::CaseInsensitive),
                     qPrintable(text));
        }
        QSignalSpy wanted(&stage.lab, &PolicyLab::figureWanted);
        for (QToolButton* button : stage.lab.policyTable().findChildren<QToolButton*>()) {
            if (button->text().startsWith(QStringLiteral("Figure"))) {
                button->click();
            }
        }
        QCOMPARE(wanted.size(), 1);
        figure::FigureSpec spec;
        spec.runs = {{stage.trace.toStdString(), "adaponderlm-1m"}};
        stage.lab.fillFigure(spec);
        QCOMPARE(spec.policies.size(), stage.model().rows().size());
        QVERIFY(stage.lab.viewCommand().text.contains(QStringLiteral("--policy=oracle")));
    }

    void onlyWhatCanBeRerunIs() {
        Stage stage;
        QVERIFY(stage.open());
        QTableView& table = stage.lab.policyTable().table();
        QPushButton& rerun = stage.lab.policyTable().rerunButton();
        table.selectAll();
        QSignalSpy asked(&stage.lab, &PolicyLab::rerunRequested);
        int causal = 0;
        for (const PolicyRow& row : stage.model().rows()) {
            causal += row.causal ? 1 : 0;
        }
        QVERIFY(causal > 3);
        QCOMPARE(rerun.text(), QStringLiteral("Rerun %1 policies").arg(causal));
        rerun.click();
        QCOMPARE(asked.size(), 1); // one at a time
        stage.lab.setRerunProgress(10);
        QVERIFY(!rerun.isEnabled());
        stage.lab.endRerun(true);
        QTRY_COMPARE(asked.size(), 2);
        QVERIFY(asked[0][1] != asked[1][1]);
        stage.lab.endRerun(false); // cancelled: nothing else comes
        QTest::qWait(50);
        QCOMPARE(asked.size(), 2);
        table.selectionModel()->select(
            table.model()->index(stage.model().rowOf(QStringLiteral("oracle:lambda=0")), 0),
            QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
        QVERIFY(!rerun.isEnabled());
        QVERIFY(rerun.toolTip().contains(QStringLiteral("looks at the next token")));
    }
};

QTEST_MAIN(PolicyTableTest)
#include "policy_table_test.moc"
