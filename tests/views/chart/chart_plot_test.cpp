// SPDX-License-Identifier: GPL-3.0-or-later
// Charts in the window: zoom, hover, legend, keys, and what screen readers get.
#include "tests/views/view_stage.h"
#include "views/chart/chart_plot.h"
#include "views/chart/plot_legend.h"

#include <QAccessible>
#include <QClipboard>
#include <QGuiApplication>
#include <QLabel>
#include <QMenu>
#include <QToolButton>
#include <QtTest>

#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;

namespace {

Chart::Series series_of(Chart::Mark mark, const QString& name, int ink, const std::vector<double>& y) {
    Chart::Series series = Chart::Series::of(mark, ink, name);
    for (std::size_t i = 0; i < y.size(); ++i) {
        series.add(static_cast<double>(i), y[i]);
    }
    return series;
}

/// Two lines, the first with a band.
Chart lines() {
    Chart chart;
    chart.title = u"Loss"_s;
    chart.x.label = u"step"_s;
    chart.y.label = u"NLL"_s;
    Chart::Series band = series_of(Chart::Mark::band, {}, 0, {1, 2, 3, 2});
    band.low = {0.5, 1.5, 2.5, 1.5};
    band.high = {1.5, 2.5, 3.5, 2.5};
    chart.series = {band, series_of(Chart::Mark::line, u"one"_s, 0, {1, 2, 3, 2}),
                    series_of(Chart::Mark::line, u"two"_s, 1, {4, 4.5, std::nan(""), 4})};
    chart.series[1].labels = {"a", "b", "c", "d"};
    return chart;
}

class Plot : public ChartPlot {
public:
    explicit Plot(Theme& theme, Chart chart, QSize size = {500, 300}) : ChartPlot(theme) {
        setChart(std::move(chart));
        resize(size);
        show();
        if (!QTest::qWaitForWindowExposed(this)) {
            qFatal("no window");
        }
        QTest::qWait(20); // queued replots
    }
    [[nodiscard]] double width() const { return shownRange(true).high - shownRange(true).low; }
    void move(QPointF to) { testing::move_mouse(canvas(), to); }
    [[nodiscard]] QAccessibleInterface* accessible() { return QAccessible::queryAccessibleInterface(this); }
};

} // namespace

class ChartPlotTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void rangesAreThoseOfTheAxesOnPaper() {
        const Chart chart = lines();
        Plot plot(theme_, chart);
        for (const bool horizontal : {true, false}) {
            const AxisRange wanted = ChartAxis(chart, horizontal, 6).range();
            QCOMPARE(plot.shownRange(horizontal).low, wanted.low);
            QCOMPARE(plot.shownRange(horizontal).high, wanted.high);
        }
        QVERIFY(plot.plotRect().contains(plot.positionOf({1, 2})));
    }

    void wheelAndRectangleZoomAndADoubleClickShowsEverything() {
        Plot plot(theme_, lines());
        const double whole = plot.width();
        const QPointF at = plot.plotRect().center();
        const auto wheel = [&](QPoint delta) { testing::turn_wheel(plot.canvas(), at, delta); };
        wheel({0, 120});
        QVERIFY(plot.width() < 0.9 * whole);
        const double zoomed = plot.width();
        wheel({0, 0}); // the end of a gesture on a touchpad
        QCOMPARE(plot.width(), zoomed);
        for (int i = 0; i < 20; ++i) {
            wheel({0, -120});
        }
        QCOMPARE(plot.width(), whole); // nothing is beyond
        const QPointF from = plot.positionOf({1, 1});
        testing::drag(plot.canvas(), from - QPointF(0, 40), from + QPointF(100, 40));
        QVERIFY(std::abs(plot.shownRange(true).low - 1) < 0.02);
        QVERIFY(plot.width() < 0.5 * whole);
        // Shift moves the plot, which keeps its scale; a new chart of the same axes keeps the zoom.
        const double low = plot.shownRange(true).low;
        const double scale = plot.width();
        testing::drag(plot.canvas(), at, at + QPointF(30, 0), Qt::ShiftModifier);
        QVERIFY(plot.shownRange(true).low < low);
        QVERIFY(std::abs(plot.width() - scale) < 1e-9);
        Chart grown = lines();
        grown.series[1].y[3] = 2.5;
        plot.setChart(grown);
        QVERIFY(std::abs(plot.width() - scale) < 1e-9);
        QTest::mouseDClick(plot.canvas(), Qt::LeftButton, {}, at.toPoint());
        QCOMPARE(plot.width(), whole);
    }

    void theMarkUnderTheCursorIsNamedAndClicked() {
        Plot plot(theme_, lines());
        QSignalSpy hovered(&plot, &ChartPlot::markHovered);
        QSignalSpy clicked(&plot, &ChartPlot::markClicked);
        plot.move(plot.positionOf({1, 2}) + QPointF(3, 2));
        QCOMPARE(plot.current(), (ChartPlot::Mark{1, 2}));
        QCOMPARE(plot.textOf(plot.current()), u"c"_s);
        QCOMPARE(hovered.size(), 1);
        QTest::mouseClick(plot.canvas(), Qt::LeftButton, {}, plot.positionOf({2, 1}).toPoint());
        QCOMPARE(clicked.size(), 1);
        QCOMPARE(clicked[0], (QVariantList{2, 1}));
        QVERIFY(plot.textOf({2, 1}).startsWith(u"two\n"_s));
        QCOMPARE(plot.width(), plot.shownRange(true).high - plot.shownRange(true).low);
        QEvent leave(QEvent::Leave);
        QCoreApplication::sendEvent(plot.canvas(), &leave);
        QVERIFY(!plot.current().isValid());
    }

    void anEntryOfTheLegendHidesItsSeriesWithItsBand() {
        Plot plot(theme_, lines());
        const auto& entries = plot.legend().entries();
        QCOMPARE(entries.size(), 2U);
        const QPointF at = plot.positionOf({1, 2});
        QTest::mouseClick(entries[0], Qt::LeftButton);
        QVERIFY(!plot.isSeriesShown(0) && !plot.isSeriesShown(1) && plot.isSeriesShown(2));
        QVERIFY(!plot.markAt(at).isValid());
        plot.setChart(lines()); // a live chart keeps it hidden
        QVERIFY(!plot.isSeriesShown(1));
        QTest::keyClick(plot.legend().entries()[0], Qt::Key_Space);
        QVERIFY(plot.isSeriesShown(0) && plot.isSeriesShown(1));
    }

    void everyMouseActionHasAKey() {
        Plot plot(theme_, lines());
        plot.setFocus();
        const double whole = plot.width();
        QTest::keyClick(&plot, Qt::Key_Plus);
        QVERIFY(plot.width() < whole);
        const double low = plot.shownRange(true).low;
        QTest::keyClick(&plot, Qt::Key_Right, Qt::ShiftModifier);
        QVERIFY(plot.shownRange(true).low != low);
        QTest::keyClick(&plot, Qt::Key_Home);
        QCOMPARE(plot.width(), whole);
        QTest::keyClick(&plot, Qt::Key_Right);
        QCOMPARE(plot.current(), (ChartPlot::Mark{1, 0}));
        QTest::keyClick(&plot, Qt::Key_Right);
        QTest::keyClick(&plot, Qt::Key_Down);
        QCOMPARE(plot.current(), (ChartPlot::Mark{2, 1}));
        QTest::keyClick(&plot, Qt::Key_Right); // past the gap
        QCOMPARE(plot.current(), (ChartPlot::Mark{2, 3}));
        QSignalSpy clicked(&plot, &ChartPlot::markClicked);
        QTest::keyClick(&plot, Qt::Key_Return);
        QCOMPARE(clicked.size(), 1);
        QAccessibleInterface* accessible = plot.accessible();
        QCOMPARE(accessible->role(), QAccessible::Chart);
        QCOMPARE(accessible->text(QAccessible::Name), u"Loss"_s);
        QVERIFY(accessible->text(QAccessible::Value).contains(u"two"_s));
        QVERIFY(accessible->text(QAccessible::Description).contains(u"one,2,3"_s));
        QTest::keyClick(&plot, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QGuiApplication::clipboard()->text(), QString::fromStdString(chart_table(lines())));
    }

    void barsWithLongNamesLieOnTheirSide() {
        Chart chart;
        for (int i = 0; i < 6; ++i) {
            chart.x.names.push_back(u"a rather long name %1"_s.arg(i));
        }
        chart.series = {series_of(Chart::Mark::bar, {}, 0, {1, 2, 0, 4, 5, -1})};
        Plot plot(theme_, chart);
        QVERIFY(plot.positionOf({0, 0}).y() < plot.positionOf({0, 5}).y()); // the first on top
        QVERIFY(plot.positionOf({0, 4}).x() > plot.positionOf({0, 1}).x());
        // The whole row of an empty bar answers.
        const QPointF empty(plot.plotRect().right() - 5, plot.positionOf({0, 2}).y());
        QCOMPARE(plot.markAt(empty), (ChartPlot::Mark{0, 2}));
        plot.resize(1400, 300);
        QTRY_VERIFY(plot.positionOf({0, 0}).x() < plot.positionOf({0, 5}).x());
    }

    void cellsHaveTheColoursOfTheScale() {
        Chart chart;
        Chart::Series cells = Chart::Series::of(Chart::Mark::cell);
        cells.x = {0, 1, 0};
        cells.y = {0, 0, 1};
        cells.value = {0, 1, std::nan("")};
        chart.y.reversed = true;
        chart.series = {cells};
        chart.scale = Chart::Scale{u"weight"_s, 0, 1, false};
        Plot plot(theme_, chart);
        QCOMPARE(plot.markAt(plot.positionOf({0, 1})), (ChartPlot::Mark{0, 1}));
        QVERIFY(!plot.markAt(plot.positionOf({0, 2})).isValid());
        QVERIFY(plot.positionOf({0, 2}).y() > plot.positionOf({0, 0}).y());
        const QImage image = plot.canvas()->grab().toImage();
        const auto near = [&](int index, QRgb wanted) {
            const QRgb found = image.pixel(
                ((plot.positionOf({0, index}) + QPointF(9, 9)) * image.devicePixelRatio()).toPoint());
            return std::abs(qRed(found) - qRed(wanted)) + std::abs(qGreen(found) - qGreen(wanted)) +
                       std::abs(qBlue(found) - qBlue(wanted)) <
                   12;
        };
        QVERIFY(near(0, theme_.magnitudeMap().at(0)));
        QVERIFY(near(1, theme_.magnitudeMap().at(1)));
        QVERIFY(near(2, theme_.colours().panel.rgb()));
    }

    void thePlotKeepsMostOfTheWidget_data() {
        QTest::addColumn<QSize>("size");
        QTest::addColumn<bool>("beside");
        QTest::newRow("low and wide") << QSize(700, 160) << true;
        QTest::newRow("wide") << QSize(700, 240) << true;
        QTest::newRow("narrow") << QSize(260, 400) << false;
        QTest::newRow("small") << QSize(170, 100) << false;
    }
    void thePlotKeepsMostOfTheWidget() {
        QFETCH(QSize, size);
        QFETCH(bool, beside);
        Chart chart;
        chart.title = u"Fronts of halting rules"_s;
        chart.note = u"A replay gives no token more steps than it had. "_s.repeated(4);
        chart.y.label = u"NLL"_s;
        for (int i = 0; i < 14; ++i) {
            chart.series.push_back(series_of(Chart::Mark::line, u"a_rule_with_a_name %1"_s.arg(i),
                                             Chart::rule + i, {0.0 + i, 1.0 + i}));
        }
        Plot plot(theme_, chart, size);
        const QRect canvas = plot.canvas()->geometry();
        QVERIFY(canvas.width() * canvas.height() >= 0.6 * size.width() * size.height());
        QCOMPARE(plot.legend().geometry().left() > canvas.right(), beside);
        QVERIFY(plot.plotRect().height() >= 40);
        QVERIFY(plot.findChildren<QLabel*>().size() >= 3);
        for (const QLabel* label : plot.findChildren<QLabel*>()) { // shown, or in the tooltip
            QVERIFY(label->isVisible() || label->text().isEmpty() || plot.toolTip().contains(label->text()));
        }
        // A menu has the other entries.
        auto* further = plot.legend().findChild<QToolButton*>();
        std::size_t shown = 0;
        for (const QAbstractButton* entry : plot.legend().entries()) {
            QVERIFY(!entry->isVisible() || plot.legend().rect().contains(entry->geometry()));
            shown += entry->isVisible() ? 1 : 0;
        }
        QVERIFY(shown > 0 && further->isVisible() == (shown < 14));
        if (shown < 14) {
            Q_EMIT further->menu()->aboutToShow();
            QCOMPARE(further->menu()->actions().size(), static_cast<qsizetype>(14 - shown));
            further->menu()->actions().last()->trigger();
            QVERIFY(!plot.isSeriesShown(13) && plot.isSeriesShown(12));
        }
    }

    void aHintStandsInThePlaceOfAChart() {
        Plot plot(theme_, lines());
        plot.setHint(u"Open a trace."_s);
        QVERIFY(!plot.canvas()->isVisible());
        QVERIFY(!plot.markAt(plot.plotRect().center()).isValid());
        QTest::keyClick(&plot, Qt::Key_Right);
        QVERIFY(!plot.current().isValid());
        QCOMPARE(plot.accessible()->text(QAccessible::Description), u"Open a trace."_s);
        plot.setChart(Chart());
        QVERIFY(!plot.hint().isEmpty());
        plot.setChart(lines());
        QVERIFY(plot.hint().isEmpty() && plot.canvas()->isVisible());
    }

private:
    Theme theme_{Appearance::light};
};

QTEST_MAIN(ChartPlotTest)
#include "chart_plot_test.moc"
