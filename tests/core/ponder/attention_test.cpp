// SPDX-License-Identifier: GPL-3.0-or-later
// Recorded sequence attention: against the plain reference of attention, which gives back the weights when
// the values are the rows of a unit matrix; and as a property of every model.
#include "core/base/error.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/recording/part_recorders.h"
#include "core/ponder/schedule/visibility.h"
#include "core/trace/reader.h"
#include "tests/core/ponder/engine_subjects.h"
#include "tests/core/ponder/every_model.h"
#include "tests/core/ponder/tiny_models.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace ponderscope {
namespace {

using namespace testing;

constexpr std::int64_t rows = 96; ///< enough that queries come in several portions
const AttentionChoice choice{{0, 2}, {1, 2}};

/// Weights [n, heads, R] by the slow way.
at::Tensor reference(const Attending& attending) {
    const at::Tensor unit =
        at::eye(rows).unsqueeze(1).expand({rows, attending.keys.size(1), rows}).contiguous();
    const at::Tensor all = attend_plain(attending.query, attending.keys, unit, attending.visibility,
                                        attending.scale, attending.row_bias);
    return all.index_select(1, at::tensor(choice.heads, at::kLong));
}

Attending random_attention(std::int64_t queries) {
    Attending attending;
    attending.layer = 2;
    attending.query = at::randn({queries, 4, rows});
    attending.keys = at::randn({rows, 2, rows});
    attending.scale = 0.3;
    return attending;
}

at::Tensor integers(const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::kLong);
}

TEST(AttentionRecorder, PlainlyCausalSequencesAndWindows) {
    at::manual_seed(1);
    for (const std::int64_t window : {0, 7}) {
        Attending attending = random_attention(rows);
        attending.visibility.causal = {{0, 70, 0, 0}, {70, 26, 70, 0}};
        attending.visibility.window = window;
        // Only the tokens from 40 on are reported, at step 1.
        const at::Tensor place = at::arange(rows) - 40;
        const at::Tensor values = at::zeros({56, 2, 2, 2, 70}, at::kHalf);
        const auto recorder = attention_recorder(choice, values, place.clamp_min(-1));
        attending.step = 1;
        recorder->attends(attending);
        attending.layer = 1; // nobody asked for it
        attending.query = attending.query * 100;
        const at::Tensor before = values.clone();
        recorder->attends(attending);
        EXPECT_TRUE(at::equal(before, values));
        attending.layer = 2;
        attending.query = attending.query / 100;

        const at::Tensor expected = reference(attending);
        EXPECT_EQ(values.select(1, 0).count_nonzero().item<std::int64_t>(), 0) << "step 0";
        EXPECT_EQ(values.select(2, 0).count_nonzero().item<std::int64_t>(), 0) << "layer 0";
        const at::Tensor got = values.select(1, 1).select(1, 1).to(at::kFloat);
        at::Tensor wanted = at::zeros({56, 2, 70});
        for (std::int64_t t = 40; t < rows; ++t) {
            const std::int64_t begin = t < 70 ? 0 : 70;
            for (std::int64_t other = begin; other <= t; ++other) {
                wanted.select(0, t - 40).select(1, t - other).copy_(expected.select(0, t).select(1, other));
            }
        }
        EXPECT_LE((got - wanted).abs().max().item<float>(), 5e-4F);
        EXPECT_NEAR(got.sum().item<float>(), 56 * 2, 0.1);
    }
}

TEST(AttentionRecorder, InterleavedSlotsWithBiases) {
    at::manual_seed(2);
    // Tokens of two sequences with 1 to 3 slots each.
    std::vector<std::int64_t> slots;
    std::vector<std::int64_t> sequence;
    for (std::int64_t left = rows, t = 0; left > 0; ++t) {
        slots.push_back(std::min<std::int64_t>(1 + t * 7 % 3, left));
        sequence.push_back(t < 20 ? 0 : 1);
        left -= slots.back();
    }
    const auto tokens = static_cast<std::int64_t>(slots.size());
    const InterleavedRows packed = interleaved_rows(integers(slots), integers(sequence));
    Attending attending = random_attention(rows);
    attending.visibility.ranges = packed.ranges;
    attending.row_bias = at::randn({rows});
    attending.tokens = packed.tokens;
    attending.steps = packed.steps;
    const at::Tensor values = at::zeros({tokens, 3, 2, 2, 3, tokens}, at::kHalf);
    const auto recorder = attention_recorder(choice, values, {});
    recorder->attends(attending);
    const at::Tensor expected = reference(attending);
    at::Tensor wanted = at::zeros({tokens, 3, 2, 3, tokens}); // token, step, head, key step, back
    for (std::int64_t q = 0; q < rows; ++q) {
        const auto t = packed.tokens[q].item<std::int64_t>();
        const auto begin = packed.ranges[q][0][0].item<std::int64_t>();
        for (std::int64_t r = begin; r <= q; ++r) {
            wanted.select(0, t)
                .select(0, packed.steps[q].item<std::int64_t>())
                .select(1, packed.steps[r].item<std::int64_t>())
                .select(1, t - packed.tokens[r].item<std::int64_t>())
                .copy_(expected.select(0, q).select(1, r));
        }
    }
    EXPECT_LE((values.select(2, 1).to(at::kFloat) - wanted).abs().max().item<float>(), 5e-4F);
}

TEST(AttentionRecorder, HaltedTokensAreSeenWhereTheyStopped) {
    at::manual_seed(3);
    // Two dimensions: at step 1 only every third token runs; its queries see both segments.
    constexpr std::int64_t tokens = 60;
    std::vector<std::int64_t> first(tokens, 0);
    std::vector<std::int64_t> position(tokens);
    std::iota(position.begin(), position.end(), 0);
    StepRowPlanner planner(VisibilityRule::two_dimensional,
                           {tokens, integers(first), integers(first), integers(position)}, true);
    std::vector<std::int64_t> active;
    for (std::int64_t t = 0; t < tokens; t += 3) {
        active.push_back(t);
    }
    const StepRows zero = planner.next({});
    const StepRows one = planner.next(integers(active));
    const at::Tensor values = at::zeros({tokens, 2, 2, 2, 2, tokens}, at::kHalf);
    const auto recorder = attention_recorder(choice, values, {});
    Attending attending = random_attention(tokens);
    attending.visibility.ranges = zero.ranges;
    attending.rows = zero.rows;
    recorder->attends(attending);
    attending.query = at::randn({20, 4, rows});
    attending.visibility.ranges = one.ranges;
    attending.rows = one.rows;
    attending.tokens = integers(active);
    attending.step = 1;
    recorder->attends(attending);
    const at::Tensor expected = reference(attending);
    const at::Tensor got = values.select(1, 1).select(1, 1).to(at::kFloat); // [t, head, key, back]
    double largest = 0;
    for (std::int64_t i = 0; i < 20; ++i) {
        const std::int64_t t = active[static_cast<std::size_t>(i)];
        for (std::int64_t other = 0; other <= t; ++other) {
            largest =
                std::max(largest, (got[t].select(1, 0).select(1, t - other) - expected[i].select(1, other))
                                      .abs()
                                      .max()
                                      .item<double>());
            if (other % 3 == 0) {
                const auto row = one.rows[other / 3].item<std::int64_t>();
                largest =
                    std::max(largest, (got[t].select(1, 1).select(1, t - other) - expected[i].select(1, row))
                                          .abs()
                                          .max()
                                          .item<double>());
            }
        }
    }
    EXPECT_LE(largest, 5e-4);
    EXPECT_EQ(got[1].count_nonzero().item<std::int64_t>(), 0) << "a slot that did not run";
}

TEST(AttentionChoice, LayersAndHeadsByNumbersAndRanges) {
    ModelConfig config;
    config.layers = 6;
    config.query_heads = 4;
    const AttentionChoice some = AttentionChoice::parse("4,0-2:3,1", config);
    EXPECT_EQ(some.layers, (std::vector<std::int64_t>{0, 1, 2, 4}));
    EXPECT_EQ(some.heads, (std::vector<std::int64_t>{1, 3}));
    EXPECT_EQ(some.text(), "layers 0-2, 4; heads 1, 3");
    EXPECT_EQ(AttentionChoice::parse("5", config).heads.size(), 4U);
    EXPECT_EQ(AttentionChoice::parse("all:0", config).layers.size(), 6U);
    for (const char* wrong : {"", "6", "0:4", "2-1", "1,", "a", "0:", "-1", "0-", "0 ", "1:2:3", "0x1"}) {
        EXPECT_THROW(AttentionChoice::parse(wrong, config), InputError) << wrong;
    }
}

class Attention : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Attention, IsOneForEverySlotAndChangesNoNumber) {
    const Subject subject = subjects().at(GetParam());
    const TemporaryFolder folder;
    Engine engine = load_engine(make_checkpoint(folder.path(), subject.config, 1, subject.method));
    constexpr std::int64_t vocabulary = 61;
    const auto a = random_ids(21, vocabulary, 31);
    const auto b = random_ids(9, vocabulary, 32);
    const std::vector<Window> windows{{b, 0, 9, 0}, {a, 4, 21, 1}};
    if (const auto rule = rule_beyond_rounding(engine)) {
        engine.choose(&RunPlan::rule, rule);
    }
    const auto without = engine.score(windows, RecordLevel::basic);
    EXPECT_EQ(find(without[1], signal::attention), nullptr) << "never by default";
    engine.choose(&RunPlan::attention, AttentionChoice::parse("all", engine.config()));
    const std::int64_t pair = engine.attention_pair_bytes();
    const auto with = engine.score(windows, RecordLevel::basic);
    const WindowResult alone = engine.score(std::span(&windows[1], 1), RecordLevel::basic).front();
    for (std::size_t t = 0; t + 1 < 17; ++t) { // the last one has no target
        EXPECT_EQ(without[1].tokens.nll[t], with[1].tokens.nll[t]) << "who listens changes nothing";
    }
    EXPECT_EQ(without[1].tokens.flops, with[1].tokens.flops);

    const SignalChunk* chunk = find(with[1], signal::attention);
    ASSERT_NE(chunk, nullptr);
    EXPECT_EQ(static_cast<std::int64_t>(chunk->data.size()), 17 * 21 * pair);
    const std::vector<float> all = to_floats(*chunk);
    const std::vector<float> by_itself = floats_of(alone, signal::attention);
    ASSERT_EQ(all.size(), by_itself.size());
    const auto steps = static_cast<std::size_t>(chunk->shape[1]);
    const auto of_step = static_cast<std::size_t>(chunk->shape[2] * chunk->shape[3]); // layers and heads
    const auto slots = all.size() / 17 / steps / of_step / 21;
    std::size_t at = 0;
    std::vector<float> heard, alone_heard;
    for (std::size_t t = 0; t < 17; ++t) {
        for (std::size_t k = 0; k < steps; ++k) {
            const bool ran = static_cast<std::int32_t>(k) <= with[1].tokens.steps[t];
            for (std::size_t i = 0; i < of_step; ++i) {
                double sum = 0;
                for (std::size_t j = 0; j < slots * 21; ++j, ++at) {
                    if (!ran) { // said by the key that every slot has; the rest ends in zeros
                        EXPECT_EQ(std::isnan(all[at]), j % 21 == 0) << "token " << t << " step " << k;
                        EXPECT_EQ(std::isnan(by_itself[at]), j % 21 == 0);
                        EXPECT_TRUE(j % 21 == 0 || all[at] == 0);
                        continue;
                    }
                    sum += all[at];
                    heard.push_back(all[at]);
                    alone_heard.push_back(by_itself[at]);
                    EXPECT_TRUE(j % 21 <= t + 4 || all[at] == 0) << "nobody sees beyond the beginning";
                }
                if (ran) {
                    EXPECT_NEAR(sum, 1.0, 4e-3) << "token " << t << " step " << k;
                }
            }
        }
    }
    expect_near(heard, alone_heard, 3e-4, "alone and in the batch");
    engine.choose(&RunPlan::attention, {});
    EXPECT_EQ(find(engine.score(windows, RecordLevel::basic)[1], signal::attention), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Models, Attention, ::testing::Range<std::size_t>(0, subjects().size()),
                         [](const auto& one) { return std::string(subjects().at(one.param).name); });

} // namespace
} // namespace ponderscope
