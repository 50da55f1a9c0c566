// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/column_labels.h"
#include "core/trace/writer.h"
#include "tests/views/chart_cells.h"
#include "tests/views/heatmap/made_up_maps.h"
#include "tests/views/view_stage.h"
#include "views/chart/chart_plot.h"
#include "views/common/colour_ranges.h"
#include "views/figure/figure_panel.h"
#include "views/heatmap/heatmap_view.h"
#include "views/heatmap/map_header.h"
#include "views/heatmap/step_map_canvas.h"

#include <QtTest>

#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::none;
using testing::steps_of;

namespace {

/// Four tokens, two steps, three layers that are called 4 to 6: the value of a token, step and layer is told
/// by its digits. The third token stops at step 0.
void write_lens(const std::filesystem::path& path) {
    RunInfo run;
    run.name = "looped";
    run.method = "looped";
    run.max_steps = 1;
    run.layers = 8;
    run.vocab_size = 50;
    TraceWriter writer(path);
    writer.begin_run(run, {{signal::nll, {"token", "step"}, "nats", "NLL by step", ""},
                           {signal::layer_nll,
                            {"token", "step", "layer"},
                            "nats",
                            "NLL by step and layer",
                            with_column_labels("What layers say.", {"4", "5", "6"})}});
    writer.begin_sequence("text", "");
    SequenceData data = testing::sequence_of({1, 1, 0, 1});
    data.tokens.nll.back() = none;
    data.tokens.rank.back() = 0;
    std::vector<float> lens;
    for (int t = 0; t < 4; ++t) {
        for (int k = 0; k < 2; ++k) {
            for (int l = 0; l < 3; ++l) {
                lens.push_back(t == 2 && k == 1 ? none : static_cast<float>(100 * t + 10 * k + l));
            }
        }
    }
    writer.append(std::move(data.tokens),
                  {{signal::nll, steps_of({1, 2, 3, 4, 5, none, none, none}, 2)},
                   {signal::layer_nll, testing::packed(DType::f32, {4, 2, 3}, lens)}});
    writer.end_sequence();
    writer.end_run(1);
    writer.finish();
}

struct Stage : testing::PanelStage<HeatmapView> {
    Stage() : PanelStage({700, 220}) {}
    /// A trace whose map is shown.
    explicit Stage(const std::filesystem::path& path) : Stage() {
        show(path);
        testing::wait_for([&] { return view.canvas()->map() != nullptr; });
    }
    void show(const std::filesystem::path& path) {
        open(path);
        selection.setRunA(run(0));
    }
};

} // namespace

class HeatmapTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() {
        testing::write_sample_trace(folder_ / "story.ponder", {.sequences = 2, .tokens = 400});
        testing::write_sample_trace(folder_ / "basic.ponder",
                                    {.sequences = 1, .tokens = 40, .withSignals = false});
    }

    void showsARunAndSaysWhatToDoWithoutOne() {
        Stage f;
        QVERIFY(f.view.canvas()->map() == nullptr);
        QVERIFY(!f.view.canvas()->hint().isEmpty());
        f.show(folder_ / "story.ponder");
        QTRY_VERIFY(f.view.canvas()->map());
        QCOMPARE(f.view.canvas()->map()->tokens(), 400);
        QCOMPARE(f.view.canvas()->map()->steps(), 4);
        f.view.setSignalName(u"entropy"_s);
        QTRY_VERIFY(f.view.canvas()->map() && f.view.canvas()->map()->info().name == "entropy");
        f.selection.setSequence(1);
        QTRY_VERIFY(f.view.canvas()->map());
    }

    void aRunWithoutStepsSaysSo() {
        Stage f;
        f.show(folder_ / "basic.ponder");
        QTRY_VERIFY(!f.view.canvas()->hint().isEmpty());
        QVERIFY(!f.view.canvas()->map());
    }

    void aWordThatIsBeingReadMayBeOfARunThatIsGone() {
        write_lens(folder_ / "gone.ponder");
        Stage f;
        f.show(folder_ / "gone.ponder");
        f.view.setOnScreen(true);
        QTRY_VERIFY(!f.view.layers()->isHidden());
        for (const qint64 token : {2, 1, 3}) {
            f.selection.setToken(token);
            QVERIFY(f.view.layers()->isBusy());
            const RunKey run = f.selection.runA();
            f.selection.setRunA({});
            QVERIFY(f.view.layers()->isHidden());
            QTRY_VERIFY(!f.view.layers()->isBusy()); // what was read is of no signal any more
            QTest::qWait(20);
            f.selection.setRunA(run);
            QTRY_VERIFY(!f.view.layers()->isBusy());
        }
    }

    void everyLayerOfTheChosenWordAtEveryStep() {
        Stage f(folder_ / "story.ponder");
        QVERIFY(f.view.layers()->isHidden()); // nothing was read out there

        write_lens(folder_ / "lens.ponder");
        Stage g;
        QSignalSpy read(&g.data, &TraceData::signalReady);
        g.show(folder_ / "lens.ponder");
        ChartPlot* plot = g.view.layers()->chart();
        const auto mark = [&](double layer, double step) {
            return testing::cell_at(plot->chart(), step, layer);
        };
        const auto value = [&](double layer, double step) {
            return testing::cell_value(plot->chart(), step, layer);
        };
        QTRY_VERIFY(!g.view.layers()->isHidden());
        QTRY_VERIFY(g.view.canvas()->map());
        g.view.setOnScreen(false);
        const QString before = g.view.layers()->hint();
        g.selection.setToken(1);
        QVERIFY(!g.view.layers()->isBusy()); // nobody sees it
        QCOMPARE(g.view.layers()->hint(), before);
        g.selection.setToken(-1);
        g.view.setOnScreen(true);
        QTRY_VERIFY(!g.view.layers()->hint().isEmpty());
        g.selection.setToken(2); // shown in the row of the token that predicted it
        QTRY_COMPARE(plot->chart().y.names.size(), 3U);
        QCOMPARE(value(0, 0), 100.0);
        QCOMPARE(value(2, 1), 112.0);
        QCOMPARE(plot->textOf(mark(2, 1)), u"layer 6 · step 1 · 112 nats"_s);
        QTest::qWait(20); // queued replots
        QTest::mouseClick(plot->canvas(), Qt::LeftButton, {}, plot->positionOf(mark(2, 1)).toPoint());
        QCOMPARE(g.selection.layer(), 6);
        QCOMPARE(g.selection.step(), 1);
        g.selection.setToken(3);
        QTRY_VERIFY(std::isnan(value(0, 1))); // it stopped before
        QCOMPARE(value(1, 0), 201.0);
        // Who moves fast gets the last one.
        for (const qint64 token : {1, 3, 2}) {
            g.selection.setHover(token);
        }
        QTRY_COMPARE(value(2, 0), 102.0);
        QTRY_VERIFY(!g.view.isBusy());
        QCOMPARE(plot->chart().scale->high, nice_ceiling(112));
        // One row of it was read, and never all of it into memory.
        for (const QList<QVariant>& one : read) {
            QVERIFY(one[2].toString() != QLatin1String(signal::layer_nll));
        }
    }

    void hoverAndClickDriveTheSelection() {
        Stage f(folder_ / "story.ponder");
        StepMapCanvas* canvas = f.view.canvas();
        const QRect plot = canvas->plotRect();
        const QPoint place(plot.left() + plot.width() / 2,
                           plot.top() + plot.height() * 3 / 8); // the middle token, step 1
        QTest::mouseMove(canvas, place);
        const qint64 token = canvas->tokenAt(place);
        QVERIFY(std::abs(token - 200) <= 1);
        QCOMPARE(f.selection.hover(), token);
        QVERIFY2(f.view.header()->readout().contains(u"step 1"_s), qPrintable(f.view.header()->readout()));
        const StepMap::Cell cell = canvas->map()->at(token, 1);
        QVERIFY(f.view.header()->readout().contains(
            cell.kind == StepMap::Kind::halted ? u"halted"_s : QString::number(cell.value, 'g', 4)));
        QTest::mouseClick(canvas, Qt::LeftButton, {}, place);
        QCOMPARE(f.selection.token(), token);
        QCOMPARE(f.selection.step(), 1);
        QTest::keyClick(canvas, Qt::Key_Right);
        QCOMPARE(f.selection.token(), token + 1);
        QTest::keyClick(canvas, Qt::Key_Home);
        QCOMPARE(f.selection.token(), 0);
        QEvent leave(QEvent::Leave);
        QCoreApplication::sendEvent(canvas, &leave);
        QCOMPARE(f.selection.hover(), -1);
        QVERIFY(f.view.header()->readout().isEmpty());
    }

    void wheelZoomsAboutTheCursorAndDraggingPans() {
        Stage f(folder_ / "story.ponder");
        StepMapCanvas* canvas = f.view.canvas();
        const QRect plot = canvas->plotRect();
        const QPointF place(plot.left() + plot.width() / 4.0, plot.center().y());
        const qint64 before = canvas->tokenAt(place);
        testing::turn_wheel(canvas, place, {0, 720});
        QVERIFY(canvas->viewLast() - canvas->viewFirst() < 200);
        QVERIFY(std::abs(canvas->tokenAt(place) - before) <= 1);
        const double first = canvas->viewFirst();
        testing::drag(canvas, plot.center(), plot.center() - QPoint(plot.width() / 4, 0));
        QVERIFY(canvas->viewFirst() > first);
        QCOMPARE(f.selection.token(), -1); // a drag is no click
        f.selection.setToken(399);
        QVERIFY(canvas->viewLast() >= 399.5); // what is selected elsewhere comes into view
        canvas->showAll();
        QCOMPARE(canvas->viewFirst(), 0.0);
        QCOMPARE(canvas->viewLast(), 400.0);
        canvas->setView(-50, 1e9);
        QCOMPARE(canvas->viewLast(), 400.0);
    }

    void selectedColumnIsOutlinedAndHaltedIsNeutral() {
        Stage f(folder_ / "story.ponder");
        StepMapCanvas* canvas = f.view.canvas();
        canvas->setView(100, 110);
        const QImage without = canvas->grab().toImage();
        f.selection.setToken(105);
        const QImage with = canvas->grab().toImage();
        QVERIFY(without != with);
        const QRect plot = canvas->plotRect();
        for (int token = 100; token < 110; ++token) {
            for (int step = 0; step < 4; ++step) {
                const QPoint middle(plot.left() + plot.width() * (2 * (token - 100) + 1) / 20,
                                    plot.top() + plot.height() * (2 * step + 1) / 8);
                const StepMap::Cell cell = canvas->map()->at(token, step);
                const QRgb want = cell.kind == StepMap::Kind::halted ? f.theme.colours().halted.rgb()
                                  : cell.kind == StepMap::Kind::value
                                      ? f.theme.magnitudeMap().at(canvas->map()->scale().position(cell.value))
                                      : f.theme.colours().panel.rgb();
                QCOMPARE(without.pixel(middle), want);
            }
        }
    }

    void longSequencesAreReadInTheBackground() {
        const auto path = folder_ / "long.ponder";
        testing::write_sample_trace(path, {.sequences = 1, .tokens = 3000, .secondRun = false});
        const auto picture = [&](qint64 whole, QImage& image, QString& readout) {
            Stage stage;
            stage.view.setWholeCells(whole);
            stage.view.setSignalName(u"entropy"_s);
            stage.show(path);
            QTRY_VERIFY_WITH_TIMEOUT(stage.view.canvas()->map() && !stage.view.isBusy(), 20'000);
            stage.view.canvas()->setView(1000, 1100);
            image = stage.view.canvas()->grab().toImage();
            testing::move_mouse(stage.view.canvas(), {300, 20});
            readout = stage.view.header()->readout();
        };
        QImage plain;
        QImage loaded;
        QString told[2];
        picture(1 << 30, plain, told[0]);
        picture(100, loaded, told[1]);
        QCOMPARE(loaded, plain);
        QCOMPARE(told[1], told[0]);
    }

    void aMillionTokensBeginWithTheirMeans() {
        // Values of 3 and 5 in turn: their mean is 4.
        Stage f;
        const auto sequence = testing::shared_sequence(std::vector<std::int32_t>(40'000, 0));
        std::vector<float> values;
        for (int token = 0; token < 40'000; ++token) {
            values.push_back((token % 2 == 0 ? 3.0F : 5.0F) + (token >= 20'000 ? 0.3F : 0.0F));
        }
        f.view.canvas()->setMap(std::make_shared<const StepMap>(
            sequence, steps_of(values, 1), SignalInfo{signal::nll, {"token", "step"}, "nats", "NLL", ""},
            Attribution::predicting));
        f.view.resize(640, 240);
        f.view.show();
        f.view.canvas()->fitScale();
        const ColourScale scale = f.view.canvas()->scale();
        QVERIFY2(scale.low > 3.5 && scale.high < 4.7 && scale.low < 4.01 && scale.high > 4.29,
                 qPrintable(u"%1 to %2"_s.arg(scale.low).arg(scale.high)));
        // Single tokens have the scale of single tokens again.
        f.view.canvas()->setView(0, 100);
        f.view.canvas()->fitScale();
        QVERIFY(f.view.canvas()->scale().low <= 0 && f.view.canvas()->scale().high >= 5);
    }

    void endsThatAreHeldForASignalAreThoseOfItsMaps() {
        Stage stage;
        stage.view.setSignalName(u"nll"_s);
        stage.show(folder_ / "story.ponder");
        QTRY_VERIFY(stage.view.canvas()->map());
        StepMapCanvas& canvas = *stage.view.canvas();
        const ColourScale before = canvas.scale();
        ColourRanges& ranges = ColourRanges::of(stage.data);
        ranges.hold(u"entropy"_s, std::array{0.0, 1.0});
        QCOMPARE(canvas.scale().high, before.high);
        ranges.hold(u"nll"_s, std::array{1.5, 3.25});
        QCOMPARE(canvas.scale().low, 1.5);
        QCOMPARE(canvas.scale().high, 3.25);
        ranges.hold(u"nll"_s, {});
        QCOMPARE(canvas.scale().high, before.high);
    }

private:
    testing::TemporaryFolder folder_;
};

QTEST_MAIN(HeatmapTest)
#include "heatmap_test.moc"
