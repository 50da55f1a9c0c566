// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/stats/correlation.h"
#include "core/trace/reader.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "views/chart/chart_plot.h"
#include "views/common/data_table_model.h"
#include "views/common/subset_chip.h"
#include "views/halting/halting_view.h"

#include <QAbstractItemModelTester>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTableView>
#include <QtTest>

#include <cmath>
#include <map>

using namespace ponderscope;

class HaltingTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        path_ = folder_ / "halt.ponder";
        testing::write_sample_trace(path_, {.sequences = 3, .tokens = 400});
    }

    void countsAreThoseOfTheTrace_data() {
        QTest::addColumn<int>("attribution");
        QTest::newRow("predicted") << static_cast<int>(Attribution::predicted);
        QTest::newRow("predicting") << static_cast<int>(Attribution::predicting);
    }
    void countsAreThoseOfTheTrace() {
        QFETCH(int, attribution);
        const auto way = static_cast<Attribution>(attribution);
        const HaltingStats stats = halting_stats(path_, "adaponderlm-1m", place_of(way));
        // Once more in the slowest way.
        const TraceReader reader = TraceReader::open(path_);
        const RunInfo run = find_run(reader, "adaponderlm-1m");
        std::vector<std::int64_t> histogram(4, 0);
        std::vector<double> nll(4, 0);
        std::map<std::int32_t, std::pair<int, int>> types; // count, stopped early
        for (int s = 0; s < 3; ++s) {
            const TokenColumns tokens = reader.tokens(run.id, s);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                if (std::isnan(tokens.nll[i])) {
                    continue;
                }
                const auto ran = static_cast<std::size_t>(tokens.steps[i]);
                ++histogram[ran];
                nll[ran] += static_cast<double>(tokens.nll[i]);
                auto& type = types[tokens.id[way == Attribution::predicted ? i + 1 : i]];
                ++type.first;
                type.second += ran < 3 ? 1 : 0;
            }
        }
        QCOMPARE(stats.histogram(), histogram);
        QCOMPARE(stats.scored, run.scored_tokens);
        for (std::size_t k = 0; k < 4; ++k) {
            QVERIFY(std::abs(stats.nll_by_step[k].mean() - nll[k] / static_cast<double>(histogram[k])) <
                    1e-9);
        }
        QCOMPARE(stats.types.size(), types.size());
        for (const HaltingStats::TokenType& type : stats.types) {
            QCOMPARE(type.count, types[type.id].first);
            QCOMPARE(type.dropped,
                     static_cast<double>(types[type.id].second) / static_cast<double>(types[type.id].first));
            QVERIFY(!type.bytes.empty());
        }
        QVERIFY(stats.types.front().count >= stats.types.back().count);
        QVERIFY(!stats.gate_by_step.empty());
        QCOMPARE(stats.gate_by_step[0].all().count, run.tokens); // one without a next token has a gate
        QVERIFY(stats.gate_by_step[0].all().count >
                stats.gate_by_step[2].all().count); // halted tokens have none
    }

    void foundTokensAloneAreCounted() {
        const TraceReader reader = TraceReader::open(path_);
        const RunInfo run = find_run(reader, "adaponderlm-1m");
        const TokenColumns tokens = reader.tokens(run.id, 1);
        TokenSubset subset{{QString::fromStdString(path_.string()), run.id},
                           QStringLiteral("nll > 4"),
                           QStringLiteral("in sequence 2"),
                           {},
                           {}};
        std::vector<std::int64_t>& rows = subset.rows[1];
        double sum = 0;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (tokens.nll[i] > 4) {
                rows.push_back(static_cast<std::int64_t>(i));
                sum += tokens.steps[i];
            }
        }
        QVERIFY(rows.size() > 5);
        TraceData data;
        Selection selection;
        Theme theme(Appearance::light);
        HaltingView view(ViewContext{data, selection, theme});
        view.resize(900, 240);
        view.show();
        data.open(subset.run.trace);
        QTRY_VERIFY(data.isOpen(subset.run.trace));
        selection.setRunA(subset.run);
        view.setOnScreen(true);
        view.setSubset(subset);
        QTRY_VERIFY(!view.isBusy() && view.stats());
        QCOMPARE(view.stats()->scored, static_cast<std::int64_t>(rows.size()));
        double steps = 0;
        const std::vector<std::int64_t> histogram = view.stats()->histogram();
        for (std::size_t k = 0; k < histogram.size(); ++k) {
            steps += static_cast<double>(k) * static_cast<double>(histogram[k]);
        }
        QCOMPARE(steps, sum);
        QVERIFY2(view.chip()->words().contains(QStringLiteral("nll > 4")), qPrintable(view.chip()->words()));
        // Another run over the same text keeps them; letting go counts all again.
        selection.setRunA({subset.run.trace, data.runs(subset.run.trace)[1].id});
        QTRY_VERIFY(!view.isBusy());
        QCOMPARE(view.stats()->scored, static_cast<std::int64_t>(rows.size()));
        Q_EMIT view.chip()->released();
        QTRY_VERIFY(!view.isBusy());
        QVERIFY(view.stats()->scored > static_cast<std::int64_t>(rows.size()));
        QVERIFY(view.chip()->words().isEmpty());
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
        const HaltingStats stats = halting_stats(path_, "adaponderlm-1m", LabelPlace::prediction);
        const Chart::Series band = halting_chart(HaltingChart::gates, stats).series.front();
        QCOMPARE(band.low[0], quantile_of_sorted(first, 0.25));
        QCOMPARE(band.high[0], quantile_of_sorted(first, 0.75));
    }

    void chartsHaveTheirNumbers() {
        const HaltingStats stats = halting_stats(path_, "adaponderlm-1m", LabelPlace::prediction);
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
        for (const HaltingChart kind : all_halting_charts) {
            QVERIFY(!halting_chart(kind, stats).empty());
            QVERIFY(chart_table(halting_chart(kind, stats)).find('\n') != std::string::npos);
        }
        // A run that left the stack early says layers, not steps.
        HaltingStats layers = stats;
        layers.unit = "layer";
        const Chart exits = halting_chart(HaltingChart::steps, layers);
        QCOMPARE(exits.title, QStringLiteral("Layers"));
        QCOMPARE(exits.x.label, QStringLiteral("last layer"));
        QVERIFY(exits.series.front().labels.front().startsWith(QStringLiteral("layer 0:")));
        // A run that takes no steps has one bar and no gates.
        const HaltingStats vanilla = halting_stats(path_, "vanilla-1m", LabelPlace::prediction);
        QCOMPARE(vanilla.histogram().size(), 1U);
        QVERIFY(vanilla.gate_by_step.empty());
        QVERIFY(halting_chart(HaltingChart::gates, vanilla).empty());
        DataTableModel types;
        types.setTable(types_table(vanilla));
        QCOMPARE(types.index(0, types.columnOf("mean_steps")).data().toString(), QStringLiteral("–"));
        QVERIFY_EXCEPTION_THROWN(halting_stats(path_, "nobody", LabelPlace::prediction), InputError);
    }

    void theViewReadsWhenItIsSeenAndFindsTokens() {
        TraceData data;
        Selection selection;
        Theme theme(Appearance::light);
        HaltingView view(ViewContext{data, selection, theme});
        QAbstractItemModelTester tester(view.types());
        view.resize(900, 240);
        view.show();
        QVERIFY(view.hint().contains(QStringLiteral("Open a trace")));
        view.setOnScreen(false);
        const QString trace = QString::fromStdString(path_.string());
        data.open(trace);
        QTRY_VERIFY(data.isOpen(trace));
        selection.setRunA({trace, data.runs(trace)[0].id});
        QVERIFY(!view.isBusy());
        QVERIFY(!view.stats());
        view.setOnScreen(true);
        QTRY_VERIFY(view.stats());
        QVERIFY(view.hint().isEmpty());
        QCOMPARE(view.chart(HaltingChart::steps)->chart().series.front().y.size(), 4U);
        QCOMPARE(view.types()->rowCount(), static_cast<int>(view.stats()->types.size()));
        // The command's token types are those of the table.
        const QString types = QStringLiteral("--types-of token");
        QVERIFY2(!view.viewCommand().text.contains(types), qPrintable(view.viewCommand().text));
        selection.setAttribution(Attribution::predicting);
        QVERIFY(view.viewCommand().text.contains(types));
        selection.setAttribution(Attribution::predicted);
        QTRY_VERIFY(!view.isBusy());
        // The most frequent one is on top; a click asks for its places.
        QSignalSpy chosen(&view, &HaltingView::tokenTypeChosen);
        const QModelIndex top = view.table()->model()->index(0, 0);
        QTest::mouseClick(view.table()->viewport(), Qt::LeftButton, {},
                          view.table()->visualRect(top).center());
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen[0][0].toInt(), view.stats()->types.front().id);
        // Sorted by share that stopped early, filtered by letters.
        view.table()->sortByColumn(4, Qt::DescendingOrder);
        const auto value = [&](int row) {
            return view.table()->model()->index(row, 4).data(Qt::UserRole).toDouble();
        };
        QVERIFY(value(0) >= value(1));
        const int all = view.table()->model()->rowCount();
        view.filter()->setText(QStringLiteral("the"));
        QVERIFY(view.table()->model()->rowCount() < all);
        QVERIFY(!view.grab().isNull());
        view.resize(1400, 240);
        QTRY_VERIFY(view.chart(HaltingChart::entropy)->isVisible());
        selection.setRunA({});
        QVERIFY(!view.hint().isEmpty());
        QCOMPARE(view.types()->rowCount(), 0);
    }

private:
    testing::TemporaryFolder folder_;
    std::filesystem::path path_;
};

QTEST_MAIN(HaltingTest)
#include "halting_test.moc"
