// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/policy/flops_fixture.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

std::vector<std::int64_t> count(const FlopsModel& model, const std::vector<std::int32_t>& steps, bool head,
                                std::vector<WindowSpan> windows = {}) {
    const auto n = static_cast<std::int64_t>(steps.size());
    if (windows.empty()) {
        windows = {{0, n, 0, n}};
    }
    std::vector<std::int64_t> flops(steps.size());
    model.count(steps, head, windows, flops);
    return flops;
}

TEST(FlopsModel, PerStepTokensSeeATokenEach) {
    // Token t, step k: keys t + 1 in the first layer, at most 3 in the second.
    EXPECT_EQ(count(testing::adaptive_flops(), {0, 1, 2, 0, 2}, false),
              (std::vector<std::int64_t>{1000 + 10 * 2 + 7 + 103, 2 * (1000 + 10 * 4) + 500 + 18 + 103,
                                         3 * (1000 + 10 * 6) + 2 * 500 + 18 + 103, 1000 + 10 * 7 + 7 + 103,
                                         3 * (1000 + 10 * 8) + 2 * 500 + 18 + 103}));
}

TEST(FlopsModel, InterleavedTokensSeeAllSlotsBefore) {
    FlopsModel model = testing::adaptive_flops();
    model.visibility = FlopsModel::Visibility::interleaved;
    // Slots before token 1: 2. Its slots see 3 and 4 keys; the second layer at most 3.
    EXPECT_EQ(count(model, {1, 1}, false),
              (std::vector<std::int64_t>{2 * 1000 + 10 * (2 + 4) + 500 + 18 + 103,
                                         2 * 1000 + 10 * (6 + 7) + 500 + 18 + 103}));
}

TEST(FlopsModel, TwoDimensionalTokensSeeSlotsOfLowerSteps) {
    FlopsModel model = testing::adaptive_flops();
    model.visibility = FlopsModel::Visibility::two_dimensional;
    model.windows = {0};
    // Steps 2, 0, 2: token 2 sees 3 slots of step 0, 2 of step 1, 2 of step 2.
    EXPECT_EQ(count(model, {2, 0, 2}, false),
              (std::vector<std::int64_t>{3000 + 10 * (1 + 2 + 3) + 1000 + 18 + 103, 1000 + 10 * 2 + 7 + 103,
                                         3000 + 10 * (3 + 5 + 7) + 1000 + 18 + 103}));
}

TEST(FlopsModel, ARuleThatReadsTheOutputRunsTheHead) {
    const std::vector<std::int64_t> silent = count(testing::adaptive_flops(), {0, 2}, false);
    const std::vector<std::int64_t> reading = count(testing::adaptive_flops(), {0, 2}, true);
    EXPECT_EQ(reading[0], silent[0]); // decided at its last step, where the head runs anyway
    EXPECT_EQ(reading[1], silent[1] + 2 * 103);
    FlopsModel mixture = testing::adaptive_flops();
    mixture.input_reads_out = true;
    EXPECT_EQ(count(mixture, {0, 2}, true), silent);
}

TEST(FlopsModel, StepsMayCostDifferently) {
    FlopsModel model = testing::adaptive_flops();
    model.steps = {1000, 1010, 1030}; // later passes mix more sources
    EXPECT_EQ(count(model, {2, 0}, false),
              (std::vector<std::int64_t>{3040 + 3 * 10 * 2 + 2 * 500 + 18 + 103, 1000 + 10 * 4 + 7 + 103}));
}

TEST(FlopsModel, AWindowsTokensSeeTheWindowAlone) {
    // Windows of 4 tokens, two apart; the last token of a window is read out in the next.
    const std::vector<std::int32_t> steps{0, 2, 1, 0, 2, 1};
    const std::vector<WindowSpan> windows = plan_windows(6, 4, 2);
    for (const auto visibility : {FlopsModel::Visibility::per_step, FlopsModel::Visibility::interleaved,
                                  FlopsModel::Visibility::two_dimensional}) {
        FlopsModel model = testing::adaptive_flops();
        model.visibility = visibility;
        const std::vector<std::int64_t> all = count(model, steps, true, windows);
        for (const WindowSpan& window : windows) {
            const std::vector<std::int64_t> alone =
                count(model, {steps.begin() + window.begin, steps.begin() + window.end}, true);
            for (std::int64_t t = window.report_begin; t < window.report_end; ++t) {
                EXPECT_EQ(all[static_cast<std::size_t>(t)], alone[static_cast<std::size_t>(t - window.begin)])
                    << t;
            }
        }
    }
}

TEST(FlopsModel, AnExitOverLayersPaysForKeysAbove) {
    FlopsModel model;
    model.steps = {1000, 1000, 1000, 1000};
    model.key = 10;
    model.windows = {0, 0, 2, 2};
    model.read_out = 100;
    model.exited = {30, 30, 30, 32};
    EXPECT_EQ(model.max_steps(), 3);
    EXPECT_EQ(count(model, {0, 3, 2}, false),
              (std::vector<std::int64_t>{1000 + 10 * 1 + 92 + 100, 4000 + 10 * (2 + 2 + 2 + 2) + 100,
                                         3000 + 10 * (3 + 3 + 2) + 32 + 100}));
    EXPECT_EQ(count(model, {0, 3, 2}, true),
              (std::vector<std::int64_t>{1000 + 10 * 1 + 92 + 100, 4000 + 10 * 8 + 4 * 100,
                                         3000 + 10 * 8 + 32 + 3 * 100}));
    EXPECT_EQ(FlopsModel::from_json(model.to_json()), model);
}

TEST(FlopsModel, StepsOverTheMiddlePayForWhatIsAroundThem) {
    FlopsModel model = testing::adaptive_flops();
    model.prelude = 300;
    model.prelude_layers = 2;
    model.coda_layers = 4;
    // The prelude once, the coda once: 6 layers more that see t + 1 keys.
    EXPECT_EQ(count(model, {0, 2}, false),
              (std::vector<std::int64_t>{300 + 1000 + 10 * (2 + 6) + 7 + 103,
                                         300 + 3 * (1000 + 10 * 4) + 10 * 12 + 2 * 500 + 18 + 103}));
    // A rule that reads the output runs the coda after each step.
    EXPECT_EQ(count(model, {0, 2}, true),
              (std::vector<std::int64_t>{300 + 1000 + 10 * (2 + 6) + 7 + 103, 300 + 3 * (1000 + 10 * 4) +
                                                                                  10 * 2 * (2 + 3 * 4) +
                                                                                  2 * 500 + 18 + 3 * 103}));
    EXPECT_EQ(FlopsModel::from_json(model.to_json()), model);
    // Windows of these layers: one of the prelude's two and all of the coda's see the own key alone.
    FlopsModel windowed = model;
    windowed.prelude_windows = {1, 0};
    windowed.coda_windows = {1, 1, 1, 1};
    EXPECT_EQ(count(model, {0, 2}, false)[1] - count(windowed, {0, 2}, false)[1], 10 * (1 + 4));
    EXPECT_EQ(FlopsModel::from_json(windowed.to_json()), windowed);
    for (std::int64_t FlopsModel::*const one :
         {&FlopsModel::prelude, &FlopsModel::prelude_layers, &FlopsModel::coda_layers}) {
        FlopsModel alone = testing::adaptive_flops();
        alone.*one = 5;
        EXPECT_EQ(FlopsModel::from_json(alone.to_json()), alone);
    }
}

TEST(FlopsModel, TokensThatAreSkippedAreSeenByNobody) {
    FlopsModel model = testing::adaptive_flops();
    model.visibility = FlopsModel::Visibility::skip;
    model.windows = {0};
    // Steps 2, 0, 1: token 2 sees three tokens at step 0 and, at step 1, token 0 and itself.
    EXPECT_EQ(count(model, {2, 0, 1}, false),
              (std::vector<std::int64_t>{3 * (1000 + 10) + 2 * 500 + 18 + 103, 1000 + 10 * 2 + 7 + 103,
                                         2 * 1000 + 10 * (3 + 2) + 500 + 18 + 103}));
    // A window counts tokens: of two, token 2 at step 1 sees itself alone.
    model.windows = {2};
    EXPECT_EQ(count(model, {2, 0, 1}, false)[2], 2 * 1000 + 10 * (2 + 1) + 500 + 18 + 103);
}

TEST(FlopsModel, ComesBackFromJson) {
    FlopsModel model = testing::adaptive_flops();
    model.visibility = FlopsModel::Visibility::interleaved;
    model.input_reads_out = true;
    EXPECT_EQ(FlopsModel::from_json(model.to_json()), model);
}

TEST(FlopsModel, AStrangersTextIsRefused) {
    const std::string sound = testing::adaptive_flops().to_json();
    EXPECT_TRUE(FlopsModel::from_json(sound));
    for (const std::string text :
         {"", "{}", "[]", "null", "{\"visibility\":3}", "{\"visibility\":\"per_step\"}"}) {
        EXPECT_FALSE(FlopsModel::from_json(text)) << text;
    }
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = sound;
        text.replace(text.find(from), from.size(), to);
        return text;
    };
    EXPECT_FALSE(FlopsModel::from_json(with("[7,11]", "[7]")));
    EXPECT_FALSE(FlopsModel::from_json(with("\"exited\":[]", "\"exited\":[1]")));
    EXPECT_FALSE(FlopsModel::from_json(with("1000", "-1")));
    EXPECT_FALSE(FlopsModel::from_json(with("1000", "1e3")));
    EXPECT_FALSE(FlopsModel::from_json(with("1000", "18446744073709551615")));
    EXPECT_FALSE(FlopsModel::from_json(with("[0,3]", "[0,\"3\"]")));
    EXPECT_FALSE(FlopsModel::from_json(with("[0,3]", "3")));
    std::string endless = "[0";
    for (int i = 0; i < 5000; ++i) {
        endless += ",0";
    }
    EXPECT_FALSE(FlopsModel::from_json(with("[0,3]", endless + "]")));
    EXPECT_FALSE(FlopsModel::from_json(with("false", "0")));
    for (const char* around : {"prelude_layers", "coda_layers"}) {
        const auto layers = [&](const char* number) {
            return FlopsModel::from_json(with("{", "{\"" + std::string(around) + "\":" + number + ","));
        };
        EXPECT_TRUE(layers("65536")) << around;
        EXPECT_FALSE(layers("65537")) << around;
    }
}

} // namespace
} // namespace ponderscope
