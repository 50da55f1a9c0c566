// SPDX-License-Identifier: GPL-3.0-or-later
// The content of maps of tokens and steps.
#include "tests/views/heatmap/made_up_maps.h"
#include "views/heatmap/step_map.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace ponderscope;
using testing::none;
using testing::shared_sequence;
using testing::steps_of;

namespace {

/// What columns() promises, said again in the slowest way.
StepMap::Cell brute(const StepMap& map, double first, double last, int count, int column, std::int64_t step) {
    const double per = (last - first) / count;
    const auto begin = static_cast<std::int64_t>(std::floor(first + column * per));
    const auto end = std::max(begin + 1, static_cast<std::int64_t>(std::floor(first + (column + 1) * per)));
    double sum = 0;
    int values = 0;
    int halted = 0;
    int others = 0;
    for (std::int64_t token = begin; token < end; ++token) {
        const StepMap::Cell cell = map.at(token, step);
        if (cell.kind == StepMap::Kind::value) {
            sum += cell.value;
            ++values;
        } else if (cell.kind == StepMap::Kind::halted) {
            ++halted;
        } else {
            ++others;
        }
    }
    if (values > 0) {
        return {StepMap::Kind::value, static_cast<float>(sum / values)};
    }
    // A token that shows no row says nothing; one that ran without a value does.
    if (halted > 0 && others == 0) {
        return {StepMap::Kind::halted, 0};
    }
    return {StepMap::Kind::missing, 0};
}

} // namespace

class StepMapTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void cellsFollowTheAttribution() {
        const auto data = shared_sequence({1, 0, 1});
        const SignalChunk chunk = steps_of({1, 2, 3, 9, 5, none}, 2);
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
        QTest::newRow("three columns") << 0.0 << 500.0 << 3;
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
            const StepMap map(shared_sequence(steps), steps_of(values, 4),
                              {"x", {"token", "step"}, "", "", ""}, attribution);
            const auto cells = map.columns(first, last, count);
            QCOMPARE(cells.size(), static_cast<std::size_t>(count) * 4);
            for (int column = 0; column < count; ++column) {
                for (std::int64_t step = 0; step < 4; ++step) {
                    const auto& got =
                        cells[static_cast<std::size_t>(column) * 4 + static_cast<std::size_t>(step)];
                    const StepMap::Cell want = brute(map, first, last, count, column, step);
                    if (attribution == Attribution::predicted && want.kind == StepMap::Kind::missing &&
                        column == 0) {
                        continue; // the first token shows no row: its neighbours in the column decide
                    }
                    QCOMPARE(got.kind, want.kind);
                    if (want.kind == StepMap::Kind::value) {
                        QVERIFY(std::abs(got.value - want.value) < 1e-5F);
                    }
                }
            }
        }
    }

    void scales() {
        const auto scale = [](const char* name, const char* unit, std::vector<float> values) {
            std::vector<std::int32_t> steps(values.size(), 0);
            return StepMap(shared_sequence(steps), steps_of(values, 1),
                           {name, {"token", "step"}, unit, "", ""}, Attribution::predicting)
                .scale();
        };
        QCOMPARE(scale("gate", "probability", {0.2F, 0.7F}).high, 1.0);
        QCOMPARE(scale("nll", "nats", {0.2F, 7.2F}).low, 0.0);
        QVERIFY(scale("nll", "nats", std::vector<float>(200, 7.2F)).high >= 7.2);
        QVERIFY(scale("rank", "", {1, 5, 3000}).logarithmic);
        QVERIFY(scale("cosine", "", {-0.5F, 0.9F}).low <= -0.5);
        QCOMPARE(scale("x", "", {none, none}).high, 1.0);
    }
};

QTEST_GUILESS_MAIN(StepMapTest)
#include "step_map_test.moc"
