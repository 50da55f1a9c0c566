// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/reader.h"
#include "tests/support/half.h"
#include "tests/support/packed.h"
#include "tests/views/view_stage.h"
#include "views/attention/attention_view.h"
#include "views/heatmap/map_header.h"
#include "views/heatmap/step_map_canvas.h"

#include <QComboBox>
#include <QtTest>

#include <cmath>
#include <set>

using namespace Qt::StringLiterals;
using namespace ponderscope;
using testing::packed;

namespace {

struct Stage : testing::PanelStage<AttentionView> {
    explicit Stage(bool attention = true) : PanelStage({900, 220}) {
        open(write("read.ponder", {.sequences = 2, .tokens = 120, .withAttention = attention}));
        selection.setRunA(run(0));
        testing::wait_for([&] { return data.sequence(selection.runA(), 0) != nullptr && data.idle(); });
    }
    [[nodiscard]] bool shows(qint64 row) {
        return QTest::qWaitFor(
            [&] {
                return !view.isBusy() && view.attention() && view.attention()->row() == row &&
                       view.map()->map();
            },
            10'000);
    }
};

SignalInfo info_of(std::vector<std::string> axes, std::string description = {}) {
    return {"attention", std::move(axes), "weight", "Attention", std::move(description)};
}

} // namespace

class AttentionTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void slotsOfAKeyAreAddedAndHeadsAveraged() {
        // Two steps, one layer, two heads, two key steps, three distances; the value says where it stands.
        std::vector<float> values;
        for (int i = 0; i < 2 * 1 * 2 * 2 * 3; ++i) {
            values.push_back(static_cast<float>(i));
        }
        const SignalInfo info = info_of({"token", "step", "layer", "head", "key_step", "back"});
        QVERIFY(AttentionRow::fits(info));
        const AttentionRow row(packed(DType::f32, {1, 2, 1, 2, 2, 3}, values), info, 5);
        // Step 1, head 0: key steps 12.. and 15..; distance 0 is the row itself.
        QCOMPARE(row.weights(1, 0, 0), (std::vector<float>{0, 0, 0, 14 + 17, 13 + 16, 12 + 15}));
        QCOMPARE(row.weights(1, 0, -1)[5], (12 + 15 + 18 + 21) / 2.0F);
        // At the beginning of a sequence nothing lies before it, whatever was recorded.
        const AttentionRow first(packed(DType::f32, {1, 2, 1, 2, 2, 3}, values), info, 0);
        QCOMPARE(first.weights(0, 0, 0), (std::vector<float>{0 + 3}));
    }

    void whatDoesNotFitIsRefused() {
        QVERIFY(!AttentionRow::fits(info_of({"token", "step"})));
        QVERIFY(!AttentionRow::fits(info_of({"token", "step", "layer", "head", "source"})));
    }

    void numbersOfLayersComeFromTheDescription() {
        const auto numbers = chosen_numbers(info_of({}, "of layers 0, 3-5; heads 1, 2 in that order"), 4, 2);
        QCOMPARE(numbers.layers, (std::vector<int>{0, 3, 4, 5}));
        QCOMPARE(numbers.heads, (std::vector<int>{1, 2}));
        QCOMPARE(chosen_numbers(info_of({}, "nothing"), 2, 1).layers, (std::vector<int>{0, 1}));
        QCOMPARE(chosen_numbers(info_of({}, "layers 0-999999999"), 2, 1).layers, (std::vector<int>{0, 1}));
    }

    void thePinnedTokensRowIsShown() {
        Stage stage;
        QVERIFY(stage.view.map()->map() == nullptr);
        QVERIFY(!stage.view.map()->hint().isEmpty());
        stage.selection.setToken(60);
        const qint64 row = stage.selection.rowOf(60); // what predicted it
        QVERIFY(stage.shows(row));
        QCOMPARE(stage.view.rowsBox()->count(), 3);
        QCOMPARE(stage.view.rowsBox()->itemText(2), u"Heads of layer 5"_s);
        const auto sequence = stage.data.sequence(stage.selection.runA(), 0);
        const std::int64_t step = sequence->tokens.steps[static_cast<std::size_t>(row)];
        const auto half = [](float value) { return float16_to_float(float_to_float16(value)); };
        const StepMap& layers = *stage.view.map()->map();
        QCOMPARE(layers.steps(), 2);
        const float mean = (half(testing::sample_attention(step, 1, 0, 3)) +
                            half(testing::sample_attention(step, 1, 1, 3))) /
                           2;
        QVERIFY(std::abs(layers.at(row - 3, 1).value - mean) < 1e-6F);
        QVERIFY(layers.at(row + 1, 0).kind == StepMap::Kind::missing);
        QVERIFY(stage.view.header()->readout().contains(u"reads"_s));

        // The heads of layer 5, and another step.
        stage.view.rowsBox()->setCurrentIndex(2);
        Q_EMIT stage.view.rowsBox()->activated(2);
        QCOMPARE(stage.view.map()->map()->at(row - 2, 1).value,
                 half(testing::sample_attention(step, 1, 1, 2)));
        stage.selection.setStep(0);
        QCOMPARE(stage.view.map()->map()->at(row, 1).value, half(testing::sample_attention(0, 1, 1, 0)));
        stage.selection.setHover(20); // the map stays while the cursor reads it
        QVERIFY(stage.view.attention()->row() == row);
    }

    void whatItCouldReadFillsTheMap() {
        Stage stage;
        // Of every number of steps: what a token that stopped early read lies in its last step.
        const auto& steps = stage.data.sequence(stage.selection.runA(), 0)->tokens.steps;
        std::set<std::int32_t> seen;
        for (qint64 token = 100; token > 60; --token) {
            const qint64 row = stage.selection.rowOf(token);
            if (!seen.insert(steps[static_cast<std::size_t>(row)]).second) {
                continue;
            }
            stage.selection.setToken(token);
            QVERIFY(stage.shows(row));
            const double first = stage.view.map()->viewFirst();
            const double oldest = static_cast<double>(row + 1 - testing::sample_attention_reach);
            QVERIFY2(first <= oldest && oldest - first < 2, qPrintable(QString::number(first - oldest)));
            QVERIFY(stage.view.map()->viewLast() > static_cast<double>(row + 1));
        }
        QVERIFY(seen.size() > 1);
    }

    void theCellUnderTheCursorIsToldInNumbers() {
        Stage stage;
        stage.selection.setToken(60);
        QVERIFY(stage.shows(stage.selection.rowOf(60)));
        const QString before = stage.view.header()->readout();
        Q_EMIT stage.view.map()->cellHovered(55, 1);
        QVERIFY(stage.view.header()->readout().startsWith(u"layer 5 · “"_s));
        Q_EMIT stage.view.map()->cellHovered(90, 0);
        QVERIFY(stage.view.header()->readout() != before);
        QVERIFY(stage.view.map()->map()->at(90, 0).kind != StepMap::Kind::value);
        Q_EMIT stage.view.map()->cellHovered(-1, -1);
        QCOMPARE(stage.view.header()->readout(), before);
    }

    void aRunWithoutItSaysWhatToRecord() {
        Stage stage(false);
        stage.selection.setToken(10);
        QVERIFY(stage.view.map()->hint().contains(u"--attention"_s));
        QVERIFY(!stage.view.rowsBox()->isVisible());
    }
};

QTEST_MAIN(AttentionTest)
#include "attention_test.moc"
