// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/column_labels.h"
#include "tests/support/packed.h"
#include "tests/views/chart_cells.h"
#include "tests/views/view_stage.h"
#include "views/chart/chart_plot.h"
#include "views/depth/depth_view.h"
#include "views/heatmap/step_map_canvas.h"

#include <QtTest>

#include <cmath>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::packed;

namespace {

SignalInfo info_of(std::vector<std::string> axes) {
    return {"weights", std::move(axes), "weight", "Weights", ""};
}

struct Stage : testing::PanelStage<DepthView> {
    explicit Stage(bool depth = true) : PanelStage({900, 220}) {
        open(write("deep.ponder", {.sequences = 1, .tokens = 200, .withDepth = depth}));
        selection.setRunA(run(0));
        // Nothing is under way for a moment between the sequence and its signal.
        testing::wait_for([&] { return depth ? view.depth().has_value() : data.idle(); });
    }
};

} // namespace

class DepthTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void everyWeightHasItsPlace() {
        // Two tokens, two layers, two sources, two heads; the value says where it stands.
        std::vector<float> values;
        const auto value = [](int t, int l, int s, int h) {
            return static_cast<float>(1 + t * 1000 + l * 100 + s * 10 + h);
        };
        for (int i = 0; i < 16; ++i) {
            values.push_back(value(i / 8, i / 4 % 2, i / 2 % 2, i % 2));
        }
        const DepthMap a(packed(DType::f32, {2, 2, 2, 2}, values),
                         info_of({"token", "layer", "source", "head"}), {0, 0});
        for (int i = 0; i < 16; i += 2) {
            const int t = i / 8;
            const int l = i / 4 % 2;
            const int s = i / 2 % 2;
            QCOMPARE(a.at(t, -1, l, s, 1), value(t, l, s, 1));
            QCOMPARE(a.at(t, -1, l, s, -1), (value(t, l, s, 0) + value(t, l, s, 1)) / 2);
        }
        QVERIFY(std::isnan(a.at(2, -1, 0, 0, 0)));
        QVERIFY(std::isnan(a.at(0, -1, 2, 0, 0)));
        QVERIFY(std::isnan(a.at(0, -1, 0, 0, 2)));
        QCOMPARE(a.grid(1, -1, 1), (std::vector<float>{1002, 1012, 1102, 1112}));
        QCOMPARE(a.over_tokens(1, -1, 0), (std::vector<float>{11, 111, 1011, 1111}));
    }

    void stepsThatATokenRan() {
        // Three steps recorded; the second token ran one of them. Source 1 of layer 0 does not exist.
        std::vector<float> values;
        for (int t = 0; t < 2; ++t) {
            for (int k = 0; k < 3; ++k) {
                const bool ran = t == 0 || k == 0;
                for (const float weight : {1.0F, 0.0F, 0.25F + 0.1F * static_cast<float>(k), 0.5F}) {
                    values.push_back(ran ? weight : 0);
                }
            }
        }
        const DepthMap map(packed(DType::f32, {2, 3, 2, 2}, values),
                           info_of({"token", "step", "sublayer", "stream"}), {2, 0});
        QCOMPARE(map.steps(), 3);
        QCOMPARE(map.heads(), 1);
        QCOMPARE(map.layer_name(), std::string("sublayer"));
        QCOMPARE(map.at(0, -1, 1, 0, -1), 0.45F); // the last that ran
        QCOMPARE(map.at(0, 1, 1, 0, -1), 0.35F);
        QCOMPARE(map.at(1, -1, 1, 0, -1), 0.25F);
        QVERIFY(std::isnan(map.at(1, 1, 1, 0, -1))); // halted before
        QVERIFY(!map.reads(0, 1));
        QVERIFY(std::isnan(map.at(0, -1, 0, 1, -1)));
    }

    void spreadAndTheShareOfTheToken() {
        // Layer 1 depends on the token alone, layer 2 not at all; layer 0 has no choice.
        std::vector<float> values;
        for (int t = 0; t < 4; ++t) {
            const float swing = t % 2 == 0 ? 0.9F : 0.1F;
            for (const float weight : {1.0F, 0.0F, 0.0F, swing, 1 - swing, 0.0F, 0.7F, 0.2F, 0.1F}) {
                values.push_back(weight);
            }
        }
        const DepthMap map(packed(DType::f32, {4, 3, 3}, values), info_of({"token", "layer", "source"}),
                           {0, 0, 0, 0});
        const DepthMap::Averages all = map.averages(-1, -1);
        QCOMPARE(all.used_rows, 4);
        QCOMPARE(all.mean[3], 0.5F);
        QVERIFY(std::abs(all.deviation[3] - 0.4F) < 1e-6F);
        QVERIFY(std::isnan(all.mean[1]));
        QVERIFY(std::isnan(all.token_share[0]));
        QCOMPARE(all.token_share[1],
                 1.0); // the mean of both sources is the same: all of it lies between tokens
        QVERIFY(all.token_share[2] < 1e-12);
    }

    void columnsHaveTheNamesOfTheirSources() {
        const std::vector<std::string> labels{"0", "4", "1 before", "own"};
        SignalInfo info = info_of({"token", "layer", "source"});
        info.description = with_column_labels("Weights.", labels);
        QCOMPARE(info.description, std::string("Weights. Sources: 0, 4, 1 before, own."));
        const auto map_of = [](const SignalInfo& one) {
            return DepthMap(packed(DType::f32, {1, 1, 4}, std::vector<float>{1, 2, 3, 4}), one, {0});
        };
        QCOMPARE(map_of(info).source_labels(), labels);
        const std::vector<std::string> numbers{"0", "1", "2", "3"};
        for (const char* other :
             {"", "Weights.", " Sources: .", "Weights. Sources: a, b.", "Sources: 0, 4, 1, own"}) {
            info.description = other;
            QCOMPARE(map_of(info).source_labels(), numbers);
        }
    }

    void whatDoesNotFitIsRefused() {
        QVERIFY(!DepthMap::fits(info_of({"token", "step"})));
        QVERIFY(!DepthMap::fits(info_of({"layer", "token", "source"})));
        QVERIFY(!DepthMap::fits(info_of({"token", "head", "layer", "source"})));
        QVERIFY(!DepthMap::fits(info_of({"token", "layer", "source", "colour"})));
    }

    void theViewFollowsTheSelection() {
        Stage stage;
        ChartPlot& plot = *stage.view.chart();
        const auto mark = [&](double layer, double source) {
            return testing::cell_at(plot.chart(), source, layer);
        };
        const auto value = [&](double layer, double source) {
            return static_cast<float>(testing::cell_value(plot.chart(), source, layer));
        };
        QVERIFY(!plot.hint().isEmpty()); // nothing is selected yet
        stage.selection.setToken(7);
        const DepthMap& map = *stage.view.depth();
        QTRY_COMPARE(value(3, 1), map.at(6, -1, 3, 1, -1)); // the row that predicted token 7
        QCOMPARE(plot.chart().y.names.size(), 4U);
        QVERIFY(std::isnan(value(1, 2))); // no later layer is a source
        stage.selection.setAttribution(Attribution::predicting);
        QTRY_COMPARE(value(3, 1), map.at(7, -1, 3, 1, -1));
        stage.selection.setHead(1);
        QCOMPARE(value(3, 1), map.at(7, -1, 3, 1, 1));
        stage.selection.setHover(9);
        QTRY_COMPARE(value(3, 1), map.at(9, -1, 3, 1, 1));
        stage.selection.setHover(-1);

        // A click chooses layer and source, and the map beside shows that source.
        QTest::qWait(20); // queued replots
        QTest::mouseClick(plot.canvas(), Qt::LeftButton, {}, plot.positionOf(mark(3, 2)).toPoint());
        QCOMPARE(stage.selection.layer(), 3);
        QCOMPARE(stage.view.source(), 2);
        QTRY_VERIFY(!stage.view.isBusy() && stage.view.map()->map() != nullptr);
        QCOMPARE(stage.view.map()->map()->rows(), StepMap::Rows::layers);
        QCOMPARE(stage.view.map()->map()->at(7, 3).value, map.at(7, -1, 3, 2, 1));
        QVERIFY(stage.view.map()->map()->at(7, 1).kind == StepMap::Kind::missing);
        QVERIFY(plot.textOf(mark(3, 0)).startsWith(u"layer 3, source 0: weight "_s));
        // Keys do the same.
        testing::move_mouse(plot.canvas(), plot.positionOf(mark(3, 0)));
        for (const int key : {Qt::Key_Up, Qt::Key_Return}) {
            QTest::keyClick(&plot, static_cast<Qt::Key>(key));
        }
        QCOMPARE(stage.selection.layer(), 2);
        QCOMPARE(stage.view.source(), 0);

        stage.view.setShown(DepthView::Shown::mean);
        QCOMPARE(value(3, 1), map.averages(-1, 1).mean[13]);
        QCOMPARE(plot.chart().y.names[2], u"2*"_s);
        QVERIFY(plot.chart().note.contains(u"*: "_s));
        stage.view.setShown(DepthView::Shown::spread);
        QCOMPARE(value(3, 1), map.averages(-1, 1).deviation[13]);
        QVERIFY(!stage.view.grab().isNull());
        stage.data.close(stage.trace);
        stage.selection.setRunA({});
        QVERIFY(!stage.view.depth().has_value());
    }

    void aRunWithoutWeightsIsToldWhatToDo() {
        Stage stage(false);
        QVERIFY(!stage.view.chart()->hint().isEmpty());
        QVERIFY(!stage.view.grab().isNull());
    }
};

QTEST_MAIN(DepthTest)
#include "depth_test.moc"
