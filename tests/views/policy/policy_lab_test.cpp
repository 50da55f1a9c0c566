// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/replay.h"
#include "tests/support/expert_trace.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "views/chart/chart_plot.h"
#include "views/figure/figure_panel.h"
#include "views/policy/front_chart.h"
#include "views/policy/policy_data.h"
#include "views/policy/policy_lab.h"
#include "views/policy/policy_table_model.h"
#include "views/text/text_view.h"

#include <QApplication>
#include <QComboBox>
#include <QLineEdit>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QSlider>
#include <QToolButton>
#include <QtTest>

#include <cmath>
#include <numeric>

using namespace ponderscope;

namespace {

struct Stage {
    explicit Stage(const testing::SampleTrace& what = {.sequences = 2, .tokens = 300}) {
        const auto path = folder / "lab.ponder";
        testing::write_sample_trace(path, what);
        trace = QString::fromStdString(path.string());
        QObject::connect(&lab, &PolicyLab::replayed, &lab,
                         [this](const std::shared_ptr<const ReplayedSteps>& steps) { last = steps; });
        lab.resize(1000, 220);
        lab.setOnScreen(false);
        data.open(trace);
    }
    [[nodiscard]] bool open(std::size_t run = 0) {
        if (!QTest::qWaitFor([&] { return data.isOpen(trace); }, 10'000)) {
            return false;
        }
        selection.setRunA({trace, data.runs(trace)[run].id});
        lab.show();
        lab.setOnScreen(true);
        return QTest::qWaitFor([&] { return !lab.isBusy(); }, 20'000);
    }
    testing::TemporaryFolder folder;
    QString trace;
    TraceData data;
    Selection selection;
    Theme theme{Appearance::light};
    ViewContext context{data, selection, theme};
    std::shared_ptr<const ReplayedSteps> last;
    PolicyLab lab{context};
};

} // namespace

class PolicyLabTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void nothingIsReadBeforeSomebodyLooks() {
        Stage stage;
        QTRY_VERIFY(stage.data.isOpen(stage.trace));
        stage.selection.setRunA({stage.trace, stage.data.runs(stage.trace)[0].id});
        QVERIFY(!PolicyData::of(stage.context).isBusy());
        QVERIFY(!PolicyData::of(stage.context).table());
        QCOMPARE(&PolicyData::of(stage.context), &PolicyData::of(stage.context)); // one a window
    }

    void theSliderMovesTheSteps() {
        Stage stage;
        QVERIFY(stage.open());
        const auto table = PolicyData::of(stage.context).table();
        QVERIFY(table);
        stage.lab.policies()->setCurrentIndex(stage.lab.policies()->findText(QStringLiteral("entropy")));
        QSlider& slider = *stage.lab.slider();
        slider.setValue(slider.minimum());
        QVERIFY(stage.lab.policyText().startsWith(QStringLiteral("entropy:theta=")));
        double before = -1;
        for (const int place : {slider.minimum(), slider.maximum() / 2, slider.maximum()}) {
            slider.setValue(place);
            // What is shown is what the replay says of that very policy.
            const ReplayResult exact =
                replay(*table, PolicySpec::parse(stage.lab.policyText().toStdString()));
            const auto& bars = stage.lab.histogram()->chart().series.front().y;
            for (std::size_t k = 0; k < bars.size(); ++k) {
                QCOMPARE(bars[k],
                         static_cast<double>(exact.histogram[k]) / static_cast<double>(exact.scored));
            }
            QVERIFY(stage.lab.summary().contains(QStringLiteral("replay")));
            QVERIFY(stage.lab.summary().contains(QString::number(exact.mean_steps, 'f', 2)));
            QVERIFY(stage.last);
            QCOMPARE(stage.last->steps.size(), 300U);
            QVERIFY(std::equal(stage.last->steps.begin(), stage.last->steps.end(), exact.steps.begin()));
            QCOMPARE(stage.last->policy, stage.lab.policyText());
            // Higher thresholds of entropy stop more.
            const double mean = exact.mean_steps;
            QVERIFY(before < 0 || mean <= before);
            before = mean;
        }
        QCOMPARE(before, 0.0); // everybody stops at the end of the slider
        // The second sequence gets its own part.
        stage.selection.setSequence(1);
        QCOMPARE(stage.last->sequence, 1);
        stage.lab.setColoursText(false);
        QVERIFY(!stage.last);
        stage.lab.setColoursText(true);
        QVERIFY(stage.last);
        stage.lab.setOnScreen(false); // another tab: the text goes back to what was recorded
        QVERIFY(!stage.last);
        QVERIFY(!stage.lab.grab().isNull());
    }

    void onlyPoliciesThatTheRunHasSignalsForAreOffered() {
        Stage stage;
        QVERIFY(stage.open());
        const auto table = PolicyData::of(stage.context).table();
        QStringList expected;
        for (const PolicyKind& kind : policy_kinds()) {
            if (table->can(kind)) {
                expected << QString::fromStdString(title_of(kind));
            }
        }
        QStringList offered;
        for (int i = 0; i < stage.lab.policies()->count(); ++i) {
            offered << stage.lab.policies()->itemText(i);
            stage.lab.policies()->setCurrentIndex(i);
            QVERIFY2(!stage.lab.policyText().isEmpty(), qPrintable(offered.last()));
        }
        QCOMPARE(offered, expected);
        QVERIFY(offered.contains(QStringLiteral("learned")));
        QVERIFY(!offered.contains(QStringLiteral("latent difference"))); // not in this trace
    }

    void startsAtTheModelsOwnThresholdAndTakesATypedOne() {
        Stage stage;
        QVERIFY(stage.open());
        const auto table = PolicyData::of(stage.context).table();
        QCOMPARE(stage.lab.policies()->currentText(), QStringLiteral("learned"));
        const double own = table->context.own_threshold;
        QCOMPARE(PolicySpec::parse(stage.lab.policyText().toStdString()).number("theta"), own);
        const QString begin = stage.lab.policyText();
        // What the run's own rule did, not what a threshold near by would do.
        QCOMPARE(replay(*table, PolicySpec::parse(begin.toStdString())).mean_steps,
                 replay(*table, PolicySpec::parse("learned")).mean_steps);
        for (const char* typed : {"0.31", "0,31"}) {
            stage.lab.reset()->click();
            QCOMPARE(stage.lab.policyText(), begin);
            stage.lab.threshold()->setText(QLatin1String(typed));
            QTest::keyClick(stage.lab.threshold(), Qt::Key_Return);
            QCOMPARE(stage.lab.policyText(), QStringLiteral("learned:theta=0.31"));
        }
        for (const char* typed : {"much", "nan", "1e999"}) {
            stage.lab.threshold()->setText(QLatin1String(typed));
            QTest::keyClick(stage.lab.threshold(), Qt::Key_Return);
            QCOMPARE(stage.lab.policyText(), QStringLiteral("learned:theta=0.31"));
            QVERIFY(stage.lab.summary().contains(QLatin1String(typed)));
        }
        stage.lab.slider()->setValue(stage.lab.slider()->maximum());
        QVERIFY(stage.lab.policyText() != QStringLiteral("learned:theta=0.31"));
    }

    void frontsLieWhereTheReplayPutsThem() {
        Stage stage;
        QVERIFY(stage.open());
        const auto fronts = PolicyData::of(stage.context).fronts();
        QVERIFY(fronts && fronts->size() > 4);
        const auto table = PolicyData::of(stage.context).table();
        for (const PolicyFront& front : *fronts) {
            QVERIFY(!front.points.empty());
            QCOMPARE(front.causal, front.policy != "oracle");
            for (const PolicyPoint& point : {front.points.front(), front.points.back()}) {
                if (point.spec.empty()) {
                    continue; // of the bound in FLOPs
                }
                const ReplayResult exact = replay(*table, PolicySpec::parse(point.spec));
                QCOMPARE(point.steps, exact.mean_steps);
                QCOMPARE(point.nll, exact.mean_nll);
            }
            QVERIFY(std::is_sorted(front.points.begin(), front.points.end(),
                                   [](const auto& a, const auto& b) { return a.steps < b.steps; }));
        }
        figure::FigureSpec front_figure;
        front_figure.kind = figure::FigureKind::policy_front;
        front_figure.bands = true;
        FigurePanel pareto(stage.context, front_figure);
        pareto.resize(900, 300);
        pareto.show();
        QTRY_VERIFY_WITH_TIMEOUT(!pareto.isBusy() && !pareto.chart()->chart().empty(), 60'000);
        const Chart& chart = pareto.chart()->chart();
        const auto bands = static_cast<std::size_t>(
            std::count_if(chart.series.begin(), chart.series.end(),
                          [](const auto& one) { return one.mark == Chart::Mark::band; }));
        const auto listed = static_cast<std::size_t>(std::count_if(
            chart.series.begin(), chart.series.end(), [](const auto& one) { return one.listed; }));
        const auto other_axis = static_cast<std::size_t>(
            std::count_if(fronts->begin(), fronts->end(), [&](const PolicyFront& front) {
                return front.axis && (*front.axis == CostAxis::flops) != table->flops.has_value();
            }));
        QCOMPARE(listed, fronts->size() - other_axis + 2); // and both runs, as they were recorded
        QVERIFY(std::any_of(chart.series.begin(), chart.series.end(), [](const auto& one) {
            return one.name == QLatin1String(blind_rule) && one.mark == Chart::Mark::line;
        }));
        QVERIFY(bands > 4);
        QVERIFY(chart.note.contains(QStringLiteral("replay")));
        const RunInfo run = *stage.data.run(stage.selection.runA());
        bool found = false;
        for (const auto& series : chart.series) {
            found =
                found || (series.name.toStdString() == run.name &&
                          std::abs(series.y.front() -
                                   std::exp(run.nll_sum / static_cast<double>(run.scored_tokens))) < 1e-9);
        }
        QVERIFY(found);
        // A run that is neither A nor B has the colour here that it has in the Library.
        int others = 0;
        for (const RunInfo& other : stage.data.runs(stage.selection.runA().trace)) {
            const RunKey key{stage.selection.runA().trace, other.id};
            for (const auto& series : chart.series) {
                if (series.name.toStdString() == other.name && !(key == stage.selection.runA()) &&
                    !(key == stage.selection.runB())) {
                    ++others;
                    ChartInks inks = chart_inks(stage.theme);
                    number_run_colours(inks, pareto.spec().colours);
                    QCOMPARE(ink_of(inks, series.ink), stage.theme.runColour(key, stage.selection));
                }
            }
        }
        QVERIFY(others > 0);
        // Hovering a run's point names it.
        QSignalSpy hovered(pareto.chart(), &ChartPlot::markHovered);
        const auto named = std::find_if(chart.series.begin(), chart.series.end(),
                                        [&](const auto& one) { return one.name.toStdString() == run.name; });
        QVERIFY(named != chart.series.end());
        // Sent, not played: another window of this test lies under the cursor.
        const QPointF at = pareto.chart()->positionOf({static_cast<int>(named - chart.series.begin()), 0});
        QWidget* canvas = pareto.chart()->canvas();
        QMouseEvent move(QEvent::MouseMove, at, canvas->mapToGlobal(at), Qt::NoButton, Qt::NoButton,
                         Qt::NoModifier);
        QApplication::sendEvent(canvas, &move);
        QVERIFY(hovered.size() > 0);
        const QString label = chart.series[hovered.last()[0].toUInt()].labels[hovered.last()[1].toUInt()];
        QVERIFY2(label.contains(QString::fromStdString(run.name)) ||
                     label.contains(QStringLiteral("replay of")),
                 qPrintable(label));
        QVERIFY(!pareto.grab().isNull());

        // A run of another text arrives, as while something else is recorded: the figure is not begun anew.
        const std::size_t runs = stage.data.runs(stage.trace).size();
        testing::write_expert_run(stage.trace.toStdString(), "another text", 4, {{0, 1, 0, 3}});
        stage.data.refresh();
        QTRY_COMPARE(stage.data.runs(stage.trace).size(), runs + 1);
        QVERIFY(!pareto.isBusy());
    }

    void whatIsMissingIsSaid() {
        Stage stage({.sequences = 1, .tokens = 100, .withSignals = false});
        QVERIFY(stage.open());
        QVERIFY(!PolicyData::of(stage.context).table());
        const QString sentence = PolicyData::of(stage.context).sentence();
        QVERIFY2(sentence.contains(QStringLiteral("--record steps")), qPrintable(sentence));
        QVERIFY(!stage.last);
        // Another run of the same window.
        stage.selection.setRunA({stage.trace, stage.data.runs(stage.trace)[1].id});
        QTRY_VERIFY(!stage.lab.isBusy());
        QVERIFY(!stage.lab.grab().isNull());
        stage.data.close(stage.trace);
        stage.selection.setRunA({});
        QVERIFY(PolicyData::of(stage.context).sentence().contains(QStringLiteral("Open a trace")));
    }

    void theTextShowsTheReplay() {
        Stage stage({.sequences = 1, .tokens = 120, .secondRun = false});
        TextView text(stage.context);
        text.resize(700, 400);
        text.show();
        QVERIFY(stage.open());
        QTRY_VERIFY(text.sequence() && text.settled());
        std::vector<std::int32_t> steps(120);
        std::iota(steps.begin(), steps.end(), 0);
        for (std::int32_t& step : steps) {
            step %= 4;
        }
        text.setReplay({stage.selection.runA(), 0, QStringLiteral("fixed:n=2"), 3, steps});
        QVERIFY(text.showsReplay());
        QCOMPARE(text.values().replay, QStringLiteral("fixed:n=2"));
        QCOMPARE(text.values().values[3], 2.0F); // the row that predicted token 3
        QVERIFY(std::isnan(text.values().values[0]));
        stage.selection.setAttribution(Attribution::predicting);
        QCOMPARE(text.values().values[3], 3.0F);
        // One of another length, of another sequence, or none is not shown.
        text.setReplay({stage.selection.runA(), 0, QStringLiteral("fixed:n=2"), 3, {1, 2, 3}});
        QVERIFY(!text.showsReplay());
        text.setReplay({stage.selection.runA(), 5, QStringLiteral("fixed:n=2"), 3, steps});
        QVERIFY(!text.showsReplay());
        text.setReplay({});
        QVERIFY(text.values().replay.isEmpty());
    }
};

QTEST_MAIN(PolicyLabTest)
#include "policy_lab_test.moc"
