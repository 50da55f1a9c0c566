// SPDX-License-Identifier: GPL-3.0-or-later
// Before Qt, whose keyword `signals` is a name there.
#include "core/trace/reader.h"

#include "core/base/error.h"
#include "core/trace/column_labels.h"
#include "core/trace/writer.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "views/common/depth_grid.h"
#include "views/heatmap/heatmap_view.h"
#include "views/heatmap/layer_map.h"
#include "views/heatmap/map_options.h"
#include "views/heatmap/mip_pyramid.h"
#include "views/heatmap/step_map_canvas.h"

#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QFile>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QtTest>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace ponderscope;

namespace {

constexpr float none = std::numeric_limits<float>::quiet_NaN();

SequenceData sequence_of(std::vector<std::int32_t> steps) {
    SequenceData data;
    const std::size_t n = steps.size();
    data.tokens.id.assign(n, 1);
    data.tokens.begin.assign(n, 0);
    data.tokens.end.assign(n, 0);
    data.tokens.nll.assign(n, 1);
    data.tokens.entropy.assign(n, 1);
    data.tokens.max_probability.assign(n, 1);
    data.tokens.rank.assign(n, 1);
    data.tokens.steps = std::move(steps);
    data.tokens.flops.assign(n, 1);
    return data;
}

SignalChunk chunk_of(const std::vector<float>& values, std::int64_t steps) {
    SignalChunk chunk{0, DType::f32, {static_cast<std::int64_t>(values.size()) / steps, steps}, {}};
    chunk.data.resize(values.size() * sizeof(float));
    std::memcpy(chunk.data.data(), values.data(), chunk.data.size());
    return chunk;
}

/// What columns() promises, said again in the slowest way.
StepMap::Cell brute(const StepMap& map, double first, double last, int count, int column, std::int64_t step,
                    StepMap::Merge merge) {
    const double per = (last - first) / count;
    const auto begin = static_cast<std::int64_t>(std::floor(first + column * per));
    const auto end = std::max(begin + 1, static_cast<std::int64_t>(std::floor(first + (column + 1) * per)));
    double sum = 0;
    float largest = -std::numeric_limits<float>::infinity();
    int values = 0;
    int halted = 0;
    int others = 0;
    for (std::int64_t token = begin; token < end; ++token) {
        const StepMap::Cell cell = map.at(token, step);
        if (cell.kind == StepMap::Kind::value) {
            sum += cell.value;
            largest = std::max(largest, cell.value);
            ++values;
        } else if (cell.kind == StepMap::Kind::halted) {
            ++halted;
        } else {
            ++others;
        }
    }
    if (values > 0) {
        return {StepMap::Kind::value,
                merge == StepMap::Merge::largest ? largest : static_cast<float>(sum / values)};
    }
    // A token that shows no row says nothing; one that ran without a value does.
    if (halted > 0 && others == 0) {
        return {StepMap::Kind::halted, 0};
    }
    return {StepMap::Kind::missing, 0};
}

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
    SequenceData data = sequence_of({1, 1, 0, 1});
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
    SignalChunk of_layers{0, DType::f32, {4, 2, 3}, {}};
    of_layers.data.resize(lens.size() * sizeof(float));
    std::memcpy(of_layers.data.data(), lens.data(), of_layers.data.size());
    writer.append(std::move(data.tokens), {{signal::nll, chunk_of({1, 2, 3, 4, 5, none, none, none}, 2)},
                                           {signal::layer_nll, std::move(of_layers)}});
    writer.end_sequence();
    writer.end_run(1);
    writer.finish();
}

} // namespace

class HeatmapTest : public QObject {
    Q_OBJECT
private slots:
    void initTestCase() {
        testing::SampleTrace what;
        what.sequences = 2;
        what.tokens = 400;
        testing::write_sample_trace(folder_ / "story.ponder", what);
        testing::SampleTrace basic;
        basic.sequences = 1;
        basic.tokens = 40;
        basic.withSignals = false;
        testing::write_sample_trace(folder_ / "basic.ponder", basic);
    }

    void cellsFollowTheAttribution() {
        const SequenceData data = sequence_of({1, 0, 1});
        const SignalChunk chunk = chunk_of({1, 2, 3, 9, 5, none}, 2);
        const StepMap own(data, chunk, {"gate", {"token", "step"}, "probability", "", ""},
                          Attribution::predicting);
        QCOMPARE(own.at(0, 1).value, 2.0F);
        QCOMPARE(own.at(1, 1).kind, StepMap::Kind::halted); // the 9 there is not a value
        QCOMPARE(own.at(2, 1).kind, StepMap::Kind::missing);
        QCOMPARE(own.at(3, 0).kind, StepMap::Kind::missing);
        const StepMap next(data, chunk, {"gate", {"token", "step"}, "probability", "", ""},
                           Attribution::predicted);
        QCOMPARE(next.at(0, 0).kind, StepMap::Kind::missing);
        QCOMPARE(next.at(1, 1).value, 2.0F);
        QCOMPARE(next.at(2, 1).kind, StepMap::Kind::halted);
        QVERIFY(next.hasHalted());
    }

    void columnsEqualBruteForce_data() {
        QTest::addColumn<double>("first");
        QTest::addColumn<double>("last");
        QTest::addColumn<int>("count");
        QTest::newRow("a column a token") << 0.0 << 500.0 << 500;
        QTest::newRow("many tokens a column") << 0.0 << 500.0 << 37;
        QTest::newRow("many columns a token") << 10.0 << 22.0 << 500;
        QTest::newRow("fractions") << 3.7 << 301.2 << 113;
        QTest::newRow("one column") << 0.0 << 500.0 << 1;
        QTest::newRow("the last token") << 499.0 << 500.0 << 10;
    }
    void columnsEqualBruteForce() {
        QFETCH(double, first);
        QFETCH(double, last);
        QFETCH(int, count);
        std::mt19937 random(5);
        std::vector<std::int32_t> steps;
        std::vector<float> values;
        for (int token = 0; token < 500; ++token) {
            steps.push_back(static_cast<std::int32_t>(random() % 4));
            for (int step = 0; step < 4; ++step) {
                values.push_back(random() % 7 == 0 ? none : static_cast<float>(random() % 1000) / 100 - 3);
            }
        }
        for (const Attribution attribution : {Attribution::predicted, Attribution::predicting}) {
            const StepMap map(sequence_of(steps), chunk_of(values, 4), {"x", {"token", "step"}, "", "", ""},
                              attribution);
            for (const StepMap::Merge merge : {StepMap::Merge::largest, StepMap::Merge::mean}) {
                const auto cells = map.columns(first, last, count, merge);
                QCOMPARE(cells.size(), static_cast<std::size_t>(count) * 4);
                for (int column = 0; column < count; ++column) {
                    for (std::int64_t step = 0; step < 4; ++step) {
                        const auto& got =
                            cells[static_cast<std::size_t>(column) * 4 + static_cast<std::size_t>(step)];
                        const StepMap::Cell want = brute(map, first, last, count, column, step, merge);
                        if (attribution == Attribution::predicted && want.kind == StepMap::Kind::missing &&
                            column == 0) {
                            continue; // the first token shows no row: its neighbours in the column decide
                        }
                        QCOMPARE(got.kind,
                                 want.kind == StepMap::Kind::missing && got.kind == StepMap::Kind::missing
                                     ? got.kind
                                     : want.kind);
                        if (want.kind == StepMap::Kind::value) {
                            QVERIFY(std::abs(got.value - want.value) < 1e-5F);
                        }
                    }
                }
            }
        }
    }

    void scales() {
        const auto scale = [](const char* name, const char* unit, std::vector<float> values) {
            std::vector<std::int32_t> steps(values.size(), 0);
            return StepMap(sequence_of(steps), chunk_of(values, 1), {name, {"token", "step"}, unit, "", ""},
                           Attribution::predicting)
                .scale();
        };
        QCOMPARE(scale("gate", "probability", {0.2F, 0.7F}).high, 1.0);
        QCOMPARE(scale("nll", "nats", {0.2F, 7.2F}).low, 0.0);
        QVERIFY(scale("nll", "nats", std::vector<float>(200, 7.2F)).high >= 7.2);
        QVERIFY(scale("rank", "", {1, 5, 3000}).logarithmic);
        QVERIFY(scale("cosine", "", {-0.5F, 0.9F}).low <= -0.5);
        QCOMPARE(scale("x", "", {none, none}).high, 1.0);
    }

    void wrongShapesAreRefused() {
        SignalChunk wide = chunk_of({1, 2, 3, 4}, 2);
        wide.shape = {1, 2, 2};
        QVERIFY_EXCEPTION_THROWN(
            StepMap(sequence_of({0, 0}), wide, {"x", {}, "", "", ""}, Attribution::predicting), InputError);
        SignalChunk lying = chunk_of({1, 2, 3, 4}, 2);
        lying.shape = {1'000'000, 2};
        QVERIFY_EXCEPTION_THROWN(StepMap(sequence_of(std::vector<std::int32_t>(10, 1)), lying,
                                         {"x", {}, "", "", ""}, Attribution::predicting),
                                 Error);
    }

    void showsARunAndSaysWhatToDoWithoutOne() {
        Fixture f;
        QVERIFY(f.view.canvas()->map() == nullptr);
        QVERIFY(f.view.canvas()->hint().contains(QStringLiteral("Open a trace")));
        f.open(folder_ / "story.ponder");
        QTRY_VERIFY(f.view.canvas()->map());
        QCOMPARE(f.view.canvas()->map()->tokens(), 400);
        QCOMPARE(f.view.canvas()->map()->steps(), 4);
        f.view.setSignalName(QStringLiteral("entropy"));
        QTRY_VERIFY(f.view.canvas()->map() && f.view.canvas()->map()->info().name == "entropy");
        f.selection.setSequence(1);
        QTRY_VERIFY(f.view.canvas()->map());
    }

    void aRunWithoutStepsSaysSo() {
        Fixture f;
        f.open(folder_ / "basic.ponder");
        QTRY_VERIFY(f.view.canvas()->hint().contains(QStringLiteral("no signals by step")));
        QVERIFY(!f.view.canvas()->map());
    }

    void everyLayerOfTheChosenWordAtEveryStep() {
        Fixture f;
        f.open(folder_ / "story.ponder");
        QTRY_VERIFY(f.view.canvas()->map());
        QVERIFY(f.view.layers()->isHidden()); // nothing was read out there

        write_lens(folder_ / "lens.ponder");
        Fixture g;
        g.open(folder_ / "lens.ponder");
        DepthGrid* grid = g.view.layers()->grid();
        QTRY_VERIFY(!g.view.layers()->isHidden());
        QTRY_VERIFY(grid->hint().contains(QStringLiteral("Choose a word")));
        g.selection.setToken(2); // shown in the row of the token that predicted it
        QTRY_COMPARE(grid->layers(), 3);
        QCOMPARE(grid->sources(), 2);
        QCOMPARE(grid->value(0, 0), 100.0F);
        QCOMPARE(grid->value(2, 1), 112.0F);
        QTest::mouseClick(grid, Qt::LeftButton, {}, grid->cell(2, 1).center().toPoint());
        QCOMPARE(g.selection.layer(), 6);
        QCOMPARE(g.selection.step(), 1);
        QVERIFY2(g.view.readout().contains(QStringLiteral("layer 6 · step 1 · 112 nats")),
                 qPrintable(g.view.readout()));
        g.selection.setToken(3);
        QTRY_VERIFY(std::isnan(grid->value(0, 1))); // it stopped before
        QCOMPARE(grid->value(1, 0), 201.0F);
    }

    void hoverAndClickDriveTheSelection() {
        Fixture f;
        f.open(folder_ / "story.ponder");
        QTRY_VERIFY(f.view.canvas()->map());
        StepMapCanvas* canvas = f.view.canvas();
        const QRect plot = canvas->plotRect();
        const QPoint place(plot.left() + plot.width() / 2,
                           plot.top() + plot.height() * 3 / 8); // the middle token, step 1
        QTest::mouseMove(canvas, place);
        const qint64 token = canvas->tokenAt(place);
        QVERIFY(std::abs(token - 200) <= 1);
        QCOMPARE(f.selection.hover(), token);
        QVERIFY2(f.view.readout().contains(QStringLiteral("step 1")), qPrintable(f.view.readout()));
        const StepMap::Cell cell = canvas->map()->at(token, 1);
        QVERIFY(f.view.readout().contains(cell.kind == StepMap::Kind::halted
                                              ? QStringLiteral("halted")
                                              : QString::number(cell.value, 'g', 4)));
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
        QVERIFY(f.view.readout().isEmpty());
    }

    void wheelZoomsAboutTheCursorAndDraggingPans() {
        Fixture f;
        f.open(folder_ / "story.ponder");
        QTRY_VERIFY(f.view.canvas()->map());
        StepMapCanvas* canvas = f.view.canvas();
        const QRect plot = canvas->plotRect();
        const QPointF place(plot.left() + plot.width() / 4.0, plot.center().y());
        const qint64 before = canvas->tokenAt(place);
        QWheelEvent wheel(place, canvas->mapToGlobal(place), {}, {0, 720}, Qt::NoButton, {},
                          Qt::NoScrollPhase, false);
        QCoreApplication::sendEvent(canvas, &wheel);
        QVERIFY(canvas->viewLast() - canvas->viewFirst() < 200);
        QVERIFY(std::abs(canvas->tokenAt(place) - before) <= 1);
        const double first = canvas->viewFirst();
        QTest::mousePress(canvas, Qt::LeftButton, {}, plot.center());
        QTest::mouseMove(canvas, plot.center() - QPoint(plot.width() / 4, 0));
        QMouseEvent move(QEvent::MouseMove, QPointF(plot.center() - QPoint(plot.width() / 4, 0)),
                         canvas->mapToGlobal(QPointF(plot.center())), Qt::NoButton, Qt::LeftButton, {});
        QCoreApplication::sendEvent(canvas, &move);
        QTest::mouseRelease(canvas, Qt::LeftButton, {}, plot.center() - QPoint(plot.width() / 4, 0));
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
        Fixture f;
        f.open(folder_ / "story.ponder");
        QTRY_VERIFY(f.view.canvas()->map());
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

    void aHundredThousandTokensArePaintedWithinAFrame() {
        std::vector<std::int32_t> steps(100'000, 3);
        std::vector<float> values(400'000, 0.5F);
        const StepMap map(sequence_of(steps), chunk_of(values, 4),
                          {"gate", {"token", "step"}, "probability", "", ""}, Attribution::predicted);
        QElapsedTimer timer;
        std::vector<qint64> times;
        for (int i = 0; i < 15; ++i) {
            timer.start();
            const auto cells = map.columns(0, 100'000, 1200, StepMap::Merge::largest);
            times.push_back(timer.nsecsElapsed());
            QCOMPARE(cells.size(), std::size_t{4800});
        }
        std::sort(times.begin(), times.end());
        qInfo("columns of 100,000 tokens × 4 steps: %.2f ms (median of 15)",
              static_cast<double>(times[7]) / 1e6);
        QVERIFY(times[7] < 100'000'000); // far above what it takes, far below what would be felt as a fault
                                         // on a busy machine
    }

    void pyramidsHoldWhatTheRowsHold() {
        constexpr std::int64_t rows = 1000; // no multiple of a block
        constexpr std::int64_t steps = 5;
        std::mt19937 random(5);
        std::vector<float> values;
        std::vector<std::int32_t> ran;
        for (std::int64_t row = 0; row < rows; ++row) {
            ran.push_back(static_cast<std::int32_t>(random() % 6) - 1);
            for (std::int64_t step = 0; step < steps; ++step) {
                values.push_back(random() % 7 == 0 ? none : static_cast<float>(random() % 1000) / 100 - 3);
            }
        }
        MipPyramid::Builder builder(rows, steps);
        // In pieces that are no blocks.
        for (std::size_t begin = 0; begin < rows; begin += 37) {
            const std::size_t n = std::min<std::size_t>(37, rows - begin);
            builder.add(std::span(values).subspan(begin * steps, n * steps),
                        std::span(ran).subspan(begin, n));
        }
        const MipPyramid mips = std::move(builder).finish();
        QVERIFY(mips.levels() > 3);
        QVERIFY(mips.hasHalted());
        for (std::size_t level = 0; level < mips.levels(); ++level) {
            const std::int64_t wide = MipPyramid::extent(level);
            for (std::int64_t number = 0; number * wide < rows; ++number) {
                for (std::int64_t step = 0; step < steps; ++step) {
                    double sum = 0;
                    float largest = -100;
                    std::uint32_t count = 0;
                    bool any = false;
                    for (std::int64_t row = number * wide; row < std::min((number + 1) * wide, rows); ++row) {
                        const float value = values[static_cast<std::size_t>(row * steps + step)];
                        if (step > ran[static_cast<std::size_t>(row)]) {
                            continue;
                        }
                        any = true;
                        if (!std::isnan(value)) {
                            largest = std::max(largest, value);
                            sum += value;
                            ++count;
                        }
                    }
                    const MipPyramid::Block& block = mips.block(level, number, step);
                    QCOMPARE(block.values(), count);
                    QCOMPARE(block.ran(), any);
                    if (count > 0) {
                        QCOMPARE(block.largest, largest);
                        QVERIFY(std::abs(static_cast<double>(block.sum) - sum) < 1e-3);
                    }
                }
            }
        }
        // Spans of whole blocks are exact, whatever level answers.
        const MipPyramid::Block some = mips.over(64, 64 + 5 * 16, 0);
        MipPyramid::Block expected;
        for (std::int64_t number = 4; number < 9; ++number) {
            expected.add(mips.block(0, number, 0));
        }
        QVERIFY(some.values() >=
                expected.values()); // a coarser level may reach beyond the end by less than a block
        QCOMPARE(mips.over(0, 256, 2).values(), mips.block(2, 0, 2).values());
        QVERIFY(mips.quantile(0) <= mips.quantile(0.5) && mips.quantile(0.5) <= mips.quantile(1));

        // The sidecar gives it back, and nothing else.
        const auto path = folder_ / "one.mip";
        QVERIFY(mips.write(path, "key"));
        const auto again = MipPyramid::read(path, "key");
        QVERIFY(again.has_value());
        QCOMPARE(again->rows(), rows);
        QCOMPARE(again->over(100, 400, 1).sum, mips.over(100, 400, 1).sum);
        QCOMPARE(again->quantile(0.99), mips.quantile(0.99));
        QVERIFY(!MipPyramid::read(path, "kez"));
        QVERIFY(!MipPyramid::read(folder_ / "none.mip", "key"));
        QVERIFY(!mips.write(folder_ / "no" / "folder.mip", "key"));
        QFile file(QString::fromStdString(path.string()));
        QVERIFY(file.open(QIODevice::ReadWrite));
        const QByteArray whole = file.readAll();
        for (const qint64 size : {qint64{0}, qint64{7}, qint64{47}, qint64{60}, whole.size() - 1}) {
            QVERIFY(file.resize(size));
            QVERIFY(!MipPyramid::read(path, "key"));
            file.seek(0);
            file.write(whole);
            file.flush();
        }
        // A header that claims more than there is.
        for (int byte = 8; byte < 48; ++byte) {
            QByteArray damaged = whole;
            damaged[byte] = static_cast<char>(damaged[byte] ^ 0x40);
            file.seek(0);
            file.write(damaged);
            file.flush();
            const auto read = MipPyramid::read(path, "key");
            QVERIFY(!read || read->rows() == rows); // only the flag of halted steps may differ
        }
    }

    void mapsFromPyramidsShowTheSame() {
        constexpr std::int64_t tokens = 4096;
        std::mt19937 random(9);
        std::vector<std::int32_t> ran(tokens);
        std::vector<float> values(tokens * 4);
        for (auto& one : ran) {
            one = static_cast<std::int32_t>(random() % 4);
        }
        for (auto& one : values) {
            one = static_cast<float>(random() % 1000) / 1000;
        }
        const SignalInfo info{"gate", {"token", "step"}, "probability", "", ""};
        const auto sequence = std::make_shared<const SequenceData>(sequence_of(ran));
        const StepMap plain(*sequence, chunk_of(values, 4), info, Attribution::predicting);
        MipPyramid::Builder builder(tokens, 4);
        builder.add(values, ran);
        const auto mips = std::make_shared<const MipPyramid>(std::move(builder).finish());
        auto page = std::make_shared<StepMap::Page>();
        page->first = 1000;
        page->values.assign(values.begin() + 4000, values.begin() + 8000);
        const StepMap large(sequence, mips, page, info, Attribution::predicting);
        QCOMPARE(large.tokens(), plain.tokens());
        QCOMPARE(large.scale().high, plain.scale().high);
        QVERIFY(large.exact(1000, 2000));
        QVERIFY(!large.exact(999, 2000));
        const auto same = [&](double first, double last, int count, StepMap::Merge merge) {
            const auto a = plain.columns(first, last, count, merge);
            const auto b = large.columns(first, last, count, merge);
            QCOMPARE(a.size(), b.size());
            for (std::size_t i = 0; i < a.size(); ++i) {
                QCOMPARE(a[i].kind, b[i].kind);
                QVERIFY(std::abs(a[i].value - b[i].value) < 1e-5F);
            }
        };
        for (const auto merge : {StepMap::Merge::largest, StepMap::Merge::mean}) {
            same(0, 4096, 64, merge);  // 64 tokens a column: a level
            same(0, 4096, 4, merge);   // 1024
            same(0, 4096, 256, merge); // 16
            same(1000, 1100, 300, merge);
            same(1200, 1700, 100, merge);
        }
        QCOMPARE(large.at(1500, 2).value, plain.at(1500, 2).value);
        QCOMPARE(large.at(0, 9).kind, StepMap::Kind::missing);
    }

    void longSequencesAreDrawnFromTheirPyramid() {
        const auto path = folder_ / "long.ponder";
        testing::write_sample_trace(path, {.sequences = 1, .tokens = 3000, .secondRun = false});
        const auto picture = [&](qint64 whole, QImage& image, QString& readout) {
            Fixture stage;
            stage.view.setWholeCells(whole);
            stage.view.setSignalName(QStringLiteral("entropy"));
            stage.open(path);
            QTRY_VERIFY_WITH_TIMEOUT(stage.view.canvas()->map() && !stage.view.isBusy(), 20'000);
            stage.view.canvas()->setView(1000, 1100);
            QTRY_VERIFY_WITH_TIMEOUT(stage.view.canvas()->map()->exact(1000, 1100) && !stage.view.isBusy(),
                                     20'000);
            image = stage.view.canvas()->grab().toImage();
            // Sent, not played: another window of this test lies under the cursor.
            const QPointF at(300, 20);
            QMouseEvent move(QEvent::MouseMove, at, stage.view.canvas()->mapToGlobal(at), Qt::NoButton,
                             Qt::NoButton, Qt::NoModifier);
            QApplication::sendEvent(stage.view.canvas(), &move);
            readout = stage.view.readout();
        };
        QImage plain;
        QImage mips;
        QImage cached;
        QString told[3];
        picture(1 << 30, plain, told[0]);
        picture(100, mips, told[1]);
        picture(100, cached, told[2]); // from the sidecar
        QCOMPARE(mips, plain);
        QCOMPARE(cached, plain);
        QCOMPARE(told[1], told[0]);
        const QDir cache(QStandardPaths::writableLocation(QStandardPaths::GenericCacheLocation) +
                         QStringLiteral("/ponderscope/heatmaps"));
        QVERIFY(!cache.entryList({QStringLiteral("*.mip")}).isEmpty());
    }

    void scalesAndRowsAreChosen() {
        const auto path = folder_ / "rows.ponder";
        testing::write_sample_trace(path, {.sequences = 1, .tokens = 300, .secondRun = false});
        Fixture stage;
        stage.view.setSignalName(QStringLiteral("entropy"));
        stage.open(path);
        QTRY_VERIFY(stage.view.canvas()->map());
        StepMapCanvas& canvas = *stage.view.canvas();
        MapOptions& options = *stage.view.options();
        const ColourScale usual = canvas.scale();
        options.setClip(MapOptions::Clip::five_percent);
        QVERIFY(canvas.scale().high < usual.high && canvas.scale().low > usual.low);
        QCOMPARE(canvas.scale().low, canvas.map()->quantile(0.05));
        options.setScaleLocked(true);
        const ColourScale locked = canvas.scale();
        stage.view.setSignalName(QStringLiteral("nll"));
        QTRY_VERIFY(canvas.map() && canvas.map()->info().name == "nll");
        QCOMPARE(canvas.scale().high, locked.high);
        options.setScaleLocked(false);
        QVERIFY(canvas.scale().high != locked.high);
        options.setCentre(MapOptions::Centre::zero);
        QVERIFY(canvas.diverging());
        QCOMPARE(canvas.scale().low, -canvas.scale().high);
        options.setCentre(MapOptions::Centre::median);
        const double median = canvas.map()->quantile(0.5);
        QCOMPARE((canvas.scale().low + canvas.scale().high) / 2, median);
        QVERIFY(canvas.scale().high >= canvas.map()->quantile(0.95));
        options.setCentre(MapOptions::Centre::value, 2.5);
        QCOMPARE((canvas.scale().low + canvas.scale().high) / 2, 2.5);
        options.setCentre(MapOptions::Centre::none);
        QVERIFY(!canvas.diverging());
        canvas.setOrder(StepMapCanvas::Order::reversed, 1);
        QCOMPARE(canvas.shown().front(), std::vector<int>{3});
        canvas.setOrder(StepMapCanvas::Order::recorded, 2);
        QCOMPARE(canvas.shown().size(), 2U);
        QCOMPARE(canvas.shown()[1], (std::vector<int>{2, 3}));
        canvas.setOrder(StepMapCanvas::Order::by_mean, 1);
        const auto means = canvas.map()->columns(0, 300, 1, StepMap::Merge::mean);
        for (std::size_t row = 1; row < canvas.shown().size(); ++row) {
            QVERIFY(means[static_cast<std::size_t>(canvas.shown()[row - 1].front())].value >=
                    means[static_cast<std::size_t>(canvas.shown()[row].front())].value);
        }
        QVERIFY(!canvas.grab().isNull());
    }

private:
    struct Fixture {
        TraceData data;
        Selection selection;
        Theme theme{Appearance::light};
        HeatmapView view{ViewContext{data, selection, theme}};
        Fixture() {
            view.resize(700, 220);
            view.show();
        }
        void open(const std::filesystem::path& path) {
            const QString name = QString::fromStdString(path.string());
            QSignalSpy opened(&data, &TraceData::traceOpened);
            data.open(name);
            QTRY_VERIFY(opened.size() > 0);
            selection.setRunA({data.traces().front(), 1});
        }
    };
    testing::TemporaryFolder folder_;
};

QTEST_MAIN(HeatmapTest)
#include "heatmap_test.moc"
