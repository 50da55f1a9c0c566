// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"
#include "tests/views/view_stage.h"
#include "views/chart/chart_plot.h"
#include "views/figure/figure_form.h"
#include "views/figure/figure_panel.h"
#include "views/halting/step_charts.h"

#include <QComboBox>
#include <QtTest>

#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;

class HaltingTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        path_ = folder_ / "halt.ponder";
        testing::write_sample_trace(path_, {.sequences = 3, .tokens = 400});
    }

    void countsAreThoseOfTheTrace() {
        const HaltingStats stats = halting_stats(path_, "adaponderlm-1m");
        // Once more in the slowest way.
        const TraceReader reader = TraceReader::open(path_);
        const RunInfo run = find_run(reader, "adaponderlm-1m");
        std::vector<std::int64_t> histogram(4, 0);
        std::vector<double> nll(4, 0);
        for (int s = 0; s < 3; ++s) {
            const TokenColumns tokens = reader.tokens(run.id, s);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                if (!std::isnan(tokens.nll[i])) {
                    const auto ran = static_cast<std::size_t>(tokens.steps[i]);
                    ++histogram[ran];
                    nll[ran] += static_cast<double>(tokens.nll[i]);
                }
            }
        }
        QCOMPARE(stats.histogram(), histogram);
        QCOMPARE(stats.scored, run.scored_tokens);
        for (std::size_t k = 0; k < 4; ++k) {
            QVERIFY(std::abs(stats.nll_by_step[k].mean() - nll[k] / static_cast<double>(histogram[k])) <
                    1e-9);
        }
        QVERIFY(!stats.gate_by_step.empty());
        QCOMPARE(stats.gate_by_step[0].all().count, run.tokens); // one without a next token has a gate
        QVERIFY(stats.gate_by_step[0].all().count >
                stats.gate_by_step[2].all().count); // halted tokens have none
    }

    void quantilesLieWhereTheyShould() {
        Spread spread;
        QVERIFY(std::isnan(spread.mean()) && std::isnan(spread.quantile(0.5)));
        for (const float value : {9e-9F, 7e-5F, 0.5F, 1e-9F, std::nanf("")}) {
            spread.add(value);
        }
        QCOMPARE(spread.all().count, 4);
        QVERIFY(std::abs(spread.quantile(0.25) - (0.25 * 1e-9 + 0.75 * 9e-9)) < 1e-15);
        QVERIFY(std::abs(spread.quantile(0.75) - (0.75 * 7e-5 + 0.25 * 0.5)) < 1e-7);
        Spread large; // of which a part is kept
        for (int i = 0; i < 1'000'000; ++i) {
            large.add(static_cast<float>(i));
        }
        QCOMPARE(large.mean(), 499'999.5);
        QVERIFY(std::abs(large.quantile(0.25) - 250'000) < 30 &&
                std::abs(large.quantile(0.75) - 750'000) < 30);
        HaltingStats::Bins bins{0.5, std::vector<std::int64_t>(10, 0)};
        bins.add(0.1);
        bins.add(std::nan(""));
        bins.add(1e9); // beyond the last bin
        bins.add(-1);
        QCOMPARE(bins.counts.back(), 1);
        QCOMPARE(bins.counts.front(), 2);
    }

    void bandsEndAtTheQuartilesOfTheTrace() {
        const TraceReader reader = TraceReader::open(path_);
        const RunInfo run = find_run(reader, "adaponderlm-1m");
        std::vector<double> first;
        for (int s = 0; s < 3; ++s) {
            const std::vector<float> gates = to_floats(*reader.signal(run.id, s, "gate"));
            for (std::size_t i = 0; i < gates.size(); i += 4) {
                first.push_back(static_cast<double>(gates[i]));
            }
        }
        std::sort(first.begin(), first.end());
        const HaltingStats stats = halting_stats(path_, "adaponderlm-1m");
        const Chart::Series band = halting_chart(HaltingChart::gates, stats).series.front();
        QCOMPARE(band.low[0], quantile_of_sorted(first, 0.25));
        QCOMPARE(band.high[0], quantile_of_sorted(first, 0.75));
    }

    void chartsHaveTheirNumbers() {
        const HaltingStats stats = halting_stats(path_, "adaponderlm-1m");
        const Chart steps = halting_chart(HaltingChart::steps, stats);
        double sum = 0;
        for (const double share : steps.series.front().y) {
            sum += share;
        }
        QVERIFY(std::abs(sum - 1) < 1e-12);
        const Chart nll = halting_chart(HaltingChart::nll, stats);
        QCOMPARE(nll.series[1].y[2], stats.nll_by_step[2].mean());
        const Chart entropy = halting_chart(HaltingChart::entropy, stats);
        QVERIFY(*std::max_element(entropy.series[0].value.begin(), entropy.series[0].value.end()) <=
                entropy.scale->high);
        for (const HaltingChart kind : {HaltingChart::steps, HaltingChart::nll, HaltingChart::gates,
                                        HaltingChart::entropy, HaltingChart::probability}) {
            QVERIFY(!halting_chart(kind, stats).empty());
            QVERIFY(chart_table(halting_chart(kind, stats)).find('\n') != std::string::npos);
        }
        // A run that left the stack early says layers, not steps.
        HaltingStats layers = stats;
        layers.unit = "layer";
        const Chart exits = halting_chart(HaltingChart::steps, layers);
        QCOMPARE(exits.title, u"Layers"_s);
        QCOMPARE(exits.x.label, u"last layer"_s);
        QVERIFY(exits.series.front().labels.front().startsWith(u"layer 0:"_s));
        // A run that takes no steps has one bar and no gates.
        const HaltingStats vanilla = halting_stats(path_, "vanilla-1m");
        QCOMPARE(vanilla.histogram().size(), 1U);
        QVERIFY(vanilla.gate_by_step.empty());
        QVERIFY(halting_chart(HaltingChart::gates, vanilla).empty());
        QVERIFY_EXCEPTION_THROWN(halting_stats(path_, "nobody"), InputError);
    }

    void thePanelReadsWhenItIsSeenAndFindsTokenTypes() {
        testing::ViewStage stage;
        FigurePanel view(stage.context,
                         page_of({figure::FigureKind::steps_histogram, figure::FigureKind::nll_by_halt_step,
                                  figure::FigureKind::steps_by_type}));
        view.resize(1200, 420);
        view.show();
        QVERIFY(!view.hint().isEmpty());
        view.setOnScreen(false);
        stage.open(path_);
        stage.selection.setRunA(stage.run(0));
        QVERIFY(!view.isBusy());
        view.setOnScreen(true);
        QTRY_VERIFY(!view.isBusy() && view.hint().isEmpty());
        QCOMPARE(view.chart(0)->chart().series.front().y.size(), 4U);
        QVERIFY(!view.chart(1)->chart().empty() && !view.chart(2)->chart().empty());
        QVERIFY(view.viewCommand().text.contains(u"\"steps_by_type\""_s));
        // A click on a type asks for its places.
        auto* by = qobject_cast<QComboBox*>(view.ownForm(2)->editor(u"by"_s));
        by->setCurrentIndex(by->findData(u"type"_s));
        QTRY_VERIFY(!view.isBusy() && view.chart(2)->chart().x.names.size() == 20);
        QSignalSpy chosen(&view, &FigurePanel::linkChosen);
        ChartPlot* types = view.chart(2);
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        QTRY_VERIFY(types->markAt(types->positionOf({0, 0})).isValid());
        QTest::mouseClick(types->canvas(), Qt::LeftButton, {}, types->positionOf({0, 0}).toPoint());
        QCOMPARE(chosen.size(), 1);
        QVERIFY2(chosen[0][0].toString().startsWith(u"type:"_s), qPrintable(chosen[0][0].toString()));
        // A run that takes no steps has one bar.
        stage.selection.setRunA(stage.run(1));
        QTRY_VERIFY(!view.isBusy() && view.chart(0)->chart().series.front().y.size() == 1);
        stage.selection.setRunA({});
        QVERIFY(!view.hint().isEmpty());
    }

private:
    testing::TemporaryFolder folder_;
    std::filesystem::path path_;
};

QTEST_MAIN(HaltingTest)
#include "halting_test.moc"
