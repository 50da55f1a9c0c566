// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/policy_rows.h"
#include "core/policy/replay.h"
#include "tests/support/expert_trace.h"
#include "tests/views/view_stage.h"
#include "views/chart/chart_plot.h"
#include "views/figure/figure_form.h"
#include "views/figure/figure_panel.h"
#include "views/figure/spec.h"
#include "views/policy/policy_data.h"
#include "views/policy/policy_lab.h"
#include "views/text/text_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>
#include <QToolButton>
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

struct Stage : testing::ViewStage {
    explicit Stage(const testing::SampleTrace& what = {.sequences = 2, .tokens = 300}) {
        QObject::connect(&lab, &PolicyLab::replayed, &lab,
                         [this](const ReplayedSteps& steps) { last = steps; });
        lab.resize(1000, 220);
        lab.setOnScreen(false);
        open(write("lab.ponder", what));
    }
    void look() {
        selection.setRunA(run(0));
        lab.show();
        lab.setOnScreen(true);
        testing::wait_for([&] { return !lab.isBusy(); });
    }
    void choose(const QString& policy) { lab.policies()->setCurrentIndex(lab.policies()->findText(policy)); }
    [[nodiscard]] std::shared_ptr<const ReplayTable> table() { return PolicyData::of(context).table(); }

    ReplayedSteps last;
    PolicyLab lab{context};
};

} // namespace

class PolicyLabTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        testing::write_sample_trace(lone_, {.sequences = 2, .tokens = 300, .secondRun = false});
    }

    void nothingIsReadBeforeSomebodyLooks() {
        Stage stage;
        stage.selection.setRunA(stage.run(0));
        QVERIFY(!PolicyData::of(stage.context).isBusy());
        QVERIFY(!stage.table());
        QCOMPARE(&PolicyData::of(stage.context), &PolicyData::of(stage.context)); // one a window
    }

    void theSliderMovesTheSteps() {
        Stage stage;
        stage.look();
        const auto table = stage.table();
        QVERIFY(table);
        stage.choose(u"entropy"_s);
        QSlider& slider = *stage.lab.slider();
        slider.setValue(slider.minimum());
        QVERIFY(stage.lab.policyText().startsWith(u"entropy:theta="_s));
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
            QVERIFY(stage.lab.summary().contains(u"replay"_s));
            QVERIFY(stage.lab.summary().contains(QString::number(exact.mean_steps, 'f', 2)));
            QVERIFY(!stage.last.steps.empty());
            QCOMPARE(stage.last.steps.size(), 300U);
            QVERIFY(std::equal(stage.last.steps.begin(), stage.last.steps.end(), exact.steps.begin()));
            QCOMPARE(stage.last.policy, stage.lab.policyText());
            // Higher thresholds of entropy stop more.
            const double mean = exact.mean_steps;
            QVERIFY(before < 0 || mean <= before);
            before = mean;
        }
        QCOMPARE(before, 0.0); // everybody stops at the end of the slider
        // The second sequence gets its own part.
        stage.selection.setSequence(1);
        QCOMPARE(stage.last.sequence, 1);
        stage.lab.setColoursText(false);
        QVERIFY(stage.last.steps.empty());
        stage.lab.setColoursText(true);
        QVERIFY(!stage.last.steps.empty());
        stage.lab.setOnScreen(false); // another tab: the text goes back to what was recorded
        QVERIFY(stage.last.steps.empty());
        QVERIFY(!stage.lab.grab().isNull());
    }

    void onlyPoliciesThatTheRunHasSignalsForAreOffered() {
        Stage stage;
        stage.look();
        const auto table = stage.table();
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
        QVERIFY(offered.contains(u"learned"_s));
        QVERIFY(!offered.contains(u"latent difference"_s)); // not in this trace
    }

    void startsAtTheModelsOwnThresholdAndTakesATypedOne() {
        Stage stage;
        stage.look();
        const auto table = stage.table();
        QCOMPARE(stage.lab.policies()->currentText(), u"learned"_s);
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
            QCOMPARE(stage.lab.policyText(), u"learned:theta=0.31"_s);
        }
        for (const char* typed : {"much", "nan", "1e999"}) {
            stage.lab.threshold()->setText(QLatin1String(typed));
            QTest::keyClick(stage.lab.threshold(), Qt::Key_Return);
            QCOMPARE(stage.lab.policyText(), u"learned:theta=0.31"_s);
            QVERIFY(stage.lab.summary().contains(QLatin1String(typed)));
        }
        stage.lab.slider()->setValue(stage.lab.slider()->maximum());
        QVERIFY(stage.lab.policyText() != u"learned:theta=0.31"_s);
    }

    void frontsLieWhereTheReplayPutsThem() {
        Stage stage;
        stage.look();
        const auto table = stage.table();
        const std::vector<PolicyFront> fronts = policy_fronts(*table, {}, 25, {});
        QVERIFY(fronts.size() > 4);
        for (const PolicyFront& front : fronts) {
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
        const auto on_the_axis = std::ranges::count_if(fronts, [&](const PolicyFront& front) {
            return !front.axis || (*front.axis == CostAxis::flops) == table->flops.has_value();
        });
        // And both runs, as they were recorded.
        QCOMPARE(std::ranges::count(chart.series, true, &Chart::Series::listed), on_the_axis + 2);
        QVERIFY(std::ranges::any_of(chart.series, [](const Chart::Series& one) {
            return one.name == QLatin1String(blind_rule) && one.mark == Chart::Mark::line;
        }));
        QVERIFY(std::ranges::count(chart.series, Chart::Mark::band, &Chart::Series::mark) > 4);
        QVERIFY(chart.note.contains(u"replay"_s));
        const RunInfo run = *stage.data.run(stage.selection.runA());
        const auto named =
            std::ranges::find(chart.series, QString::fromStdString(run.name), &Chart::Series::name);
        QVERIFY(named != chart.series.end());
        const double perplexity = std::exp(run.nll_sum / static_cast<double>(run.scored_tokens));
        QVERIFY(std::ranges::any_of(chart.series, [&](const Chart::Series& one) {
            return one.name == named->name && std::abs(one.y.front() - perplexity) < 1e-9;
        }));
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
        testing::move_mouse(pareto.chart()->canvas(),
                            pareto.chart()->positionOf({static_cast<int>(named - chart.series.begin()), 0}));
        QVERIFY(hovered.size() > 0);
        const QString label = chart.series[hovered.last()[0].toUInt()].labels[hovered.last()[1].toUInt()];
        QVERIFY2(label.contains(QString::fromStdString(run.name)) || label.contains(u"replay"_s),
                 qPrintable(label));
        QVERIFY(!pareto.grab().isNull());

        // A run of another text arrives, as while something else is recorded: the figure is not begun anew.
        const std::size_t runs = stage.data.runs(stage.trace).size();
        testing::write_expert_run(stage.trace.toStdString(), "another text", 4, {{0, 1, 0, 3}});
        stage.data.refresh();
        QTRY_COMPARE(stage.data.runs(stage.trace).size(), runs + 1);
        QVERIFY(!pareto.isBusy());
    }

    void rowsSayWhatReplayAndRerunGave() {
        PolicyRow row;
        row.spec = "entropy:theta=2";
        row.threshold = 2;
        row.replayed = {1.25, 2.5, 3e6, 0.4, {0.031, 0.020, 0.042, 0.005}, {-0.1, -0.2, -0.05, 0.04}};
        row.rerun = PolicyOutcome{1.5, 2.6, 3.2e6, 0.35, {0.051, 0.040, 0.062, 0.005}};
        QVERIFY(row.replayed.thinks_better()); // below 0 as a whole
        const QStringList csv = QString::fromStdString(csv_of(table_of(std::span(&row, 1)))).split(u'\n');
        QCOMPARE(csv[0], u"policy,threshold,mean_steps,mean_steps_rerun,difference,difference_low,"
                         "difference_high,difference_rerun,difference_rerun_low,difference_rerun_high,"
                         "against_blind,against_blind_low,against_blind_high,thinks_better,flops_saved,"
                         "flops_saved_rerun,rule"_s);
        QVERIFY2(
            csv[1].startsWith(
                u"entropy,2,1.25,1.5,0.031,0.02,0.042,0.051,0.04,0.062,-0.1,-0.2,-0.05,1,0.4,0.35,A token"_s),
            qPrintable(csv[1]));
        row.replayed.against_blind.high = 0.01;
        QVERIFY(!row.replayed.thinks_better());
    }

    void aSignalByNameIsARowAndAFrontLikeOthers() {
        const TraceReader reader = TraceReader::open(lone_);
        const RunInfo run = reader.runs().front();
        const ReplayTable table = ReplayTable::load(reader, run);
        const std::vector<PolicyRow> rows = policy_rows(
            table, {lone_, run}, {"entropy:theta=2", "signal:name=entropy,theta=2"}, {}, {.replicates = 100});
        QCOMPARE(rows[1].replayed.steps, rows[0].replayed.steps);
        QCOMPARE(rows[1].replayed.difference.low, rows[0].replayed.difference.low);
        QCOMPARE(rows[1].threshold, 2.0);
        std::vector<PolicyFront> fronts = policy_fronts(table, {"entropy", "signal:name=entropy"}, 9, {});
        QCOMPARE(std::erase_if(fronts, [](const PolicyFront& one) { return one.policy == blind_rule; }), 1U);
        QCOMPARE(fronts.size(), 2U);
        QCOMPARE(fronts[1].policy, "signal:name=entropy,stops=below");
        QCOMPARE(fronts[1].points.size(), fronts[0].points.size());
        QCOMPARE(std::get<std::string>(table_of(rows).at(1, "rule")),
                 "A token stops when the signal entropy is below 2.");
    }

    void rerunsAreSetAgainstFullAlone() {
        const TraceReader reader = TraceReader::open(lone_);
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
                policy_rows(given, {lone_, run}, {"fixed:n=1"}, {{"fixed:n=1", {lone_, run}}}, options);
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

    void theTableIsAFigureOfAllPoliciesAtTheirSliders() {
        Stage stage({.sequences = 2, .tokens = 300, .secondRun = false});
        stage.look();
        const auto table = stage.table();
        stage.choose(u"entropy"_s);
        stage.lab.slider()->setValue(stage.lab.slider()->maximum() / 3);
        const QString spec = stage.lab.policyText();
        // Another kind and back: it stands where it stood.
        stage.choose(u"fixed"_s);
        stage.choose(u"entropy"_s);
        QCOMPARE(stage.lab.policyText(), spec);
        figure::FigureSpec wanted;
        wanted.kind = figure::FigureKind::policy_table;
        wanted.runs = {{stage.trace.toStdString(), "adaponderlm-1m"}};
        stage.lab.fillFigure(wanted);
        std::vector<std::string> expected = starting_policies(*table);
        QVERIFY(expected.size() > 3);
        std::ranges::replace_if(
            expected, [](const std::string& one) { return one.starts_with("entropy:"); }, spec.toStdString());
        QCOMPARE(wanted.policies, expected);
        QSignalSpy asked(&stage.lab, &PolicyLab::figureWanted);
        testing::click(stage.lab, u"Table"_s);
        QCOMPARE(asked.size(), 1);
        const StoredRun of{stage.trace.toStdString(), stage.data.runs(stage.trace)[0]};
        const ReplayResult full = replay(*table, PolicySpec::parse("full"));
        for (const PolicyRow& row : policy_rows(*table, of, expected, {}, {.replicates = 100})) {
            const ReplayResult exact = replay(*table, PolicySpec::parse(row.spec));
            QCOMPARE(row.replayed.steps, exact.mean_steps);
            QVERIFY2(std::abs(row.replayed.difference.value - (exact.mean_nll - full.mean_nll)) < 1e-9,
                     row.spec.c_str());
            QVERIFY(row.replayed.difference.low <= row.replayed.difference.value);
            QVERIFY(row.replayed.difference.value <= row.replayed.difference.high);
            QVERIFY(!row.rerun);
        }
    }

    void aPointOfTheFrontChoosesItsPolicy() {
        Stage stage({.sequences = 2, .tokens = 300, .secondRun = false});
        stage.look();
        // The front is of the chosen policy, and the replay of the slider lies on the chart.
        stage.choose(u"entropy"_s);
        ChartPlot* plot = stage.lab.front()->chart();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.lab.isBusy() && !plot->chart().empty(), 60'000);
        const auto front = std::ranges::find_if(plot->chart().series, [](const Chart::Series& one) {
            return one.name == u"entropy"_s && one.mark == Chart::Mark::line;
        });
        QVERIFY(front != plot->chart().series.end());
        QVERIFY(plot->chart().series.back().labels.front().contains(stage.lab.policyText()));
        const QString link = front->links[3];
        Q_EMIT plot->markClicked(static_cast<int>(front - plot->chart().series.begin()), 3);
        QCOMPARE(u"policy:"_s + stage.lab.policyText(), link);
        QCOMPARE(stage.lab.policies()->currentText(), u"entropy"_s);
        QVERIFY(plot->chart().series.back().labels.front().contains(stage.lab.policyText()));
    }

    void bandsAxesAndLimitsAreThoseOfTheFigure() {
        Stage stage({.sequences = 2, .tokens = 300, .secondRun = false});
        stage.look();
        figure::FigureSpec spec;
        spec.kind = figure::FigureKind::policy_front;
        spec.bands = true;
        spec.replicates = 200;
        FigurePanel pareto(stage.context, spec);
        const auto bands = [&] {
            return std::ranges::count(pareto.chart()->chart().series, Chart::Mark::band,
                                      &Chart::Series::mark);
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
        ends[0]->setText(u"2"_s);
        ends[1]->setText(u"50"_s);
        QTRY_VERIFY_WITH_TIMEOUT(settled() && pareto.chart()->chart().y.high == 50.0, 60'000);
        QVERIFY(pareto.chart()->chart().y.log);
        const QString command = pareto.viewCommand().text;
        for (const char* part : {"\"log\": \"both\"", "y_range", "policy_front"}) {
            QVERIFY2(command.contains(QLatin1String(part)), qPrintable(command));
        }
        QVERIFY(!command.contains(QLatin1String("bands")));
    }

    void whatIsMissingIsSaid() {
        Stage stage({.sequences = 1, .tokens = 100, .withSignals = false});
        stage.look();
        QVERIFY(!stage.table());
        const QString sentence = PolicyData::of(stage.context).sentence();
        QVERIFY2(sentence.contains(u"--record steps"_s), qPrintable(sentence));
        QVERIFY(stage.last.steps.empty());
        // Another run of the same window.
        stage.selection.setRunA(stage.run(1));
        QTRY_VERIFY(!stage.lab.isBusy());
        QVERIFY(!stage.lab.grab().isNull());
        stage.data.close(stage.trace);
        stage.selection.setRunA({});
        QVERIFY(!PolicyData::of(stage.context).sentence().isEmpty());
    }

    void theTextShowsTheReplay() {
        Stage stage({.sequences = 1, .tokens = 120, .secondRun = false});
        TextView text(stage.context);
        text.resize(700, 400);
        text.show();
        stage.look();
        QTRY_VERIFY(text.sequence() && text.settled());
        std::vector<std::int32_t> steps(120);
        std::iota(steps.begin(), steps.end(), 0);
        for (std::int32_t& step : steps) {
            step %= 4;
        }
        text.setReplay({stage.selection.runA(), 0, u"fixed:n=2"_s, 3, steps});
        QVERIFY(text.showsReplay());
        QCOMPARE(text.values().replay, u"fixed:n=2"_s);
        QCOMPARE(text.values().values[3], 2.0F); // the row that predicted token 3
        QVERIFY(std::isnan(text.values().values[0]));
        stage.selection.setAttribution(Attribution::predicting);
        QCOMPARE(text.values().values[3], 3.0F);
        // One of another length, of another sequence, or none is not shown.
        text.setReplay({stage.selection.runA(), 0, u"fixed:n=2"_s, 3, {1, 2, 3}});
        QVERIFY(!text.showsReplay());
        text.setReplay({stage.selection.runA(), 5, u"fixed:n=2"_s, 3, steps});
        QVERIFY(!text.showsReplay());
        text.setReplay({});
        QVERIFY(text.values().replay.isEmpty());
    }

private:
    testing::TemporaryFolder folder_;
    std::filesystem::path lone_ = folder_ / "lone.ponder"; ///< a trace of one run
};

QTEST_MAIN(PolicyLabTest)
#include "policy_lab_test.moc"
