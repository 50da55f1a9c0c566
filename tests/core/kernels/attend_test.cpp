// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/attend.h"

#include "core/kernels/cuda/range_trim.h"
#include "core/model/device.h"
#include "tests/support/poison.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

at::Tensor normal(at::IntArrayRef sizes, std::uint64_t seed) {
    return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}

struct Packing {
    at::Tensor q, k, v;
    Visibility visibility;
    at::Tensor bias;
    double scale = 0.2;
};

struct Shape {
    std::int64_t query_heads = 4;
    std::int64_t kv_heads = 2;
    std::int64_t head_size = 16;
};

void fill(Packing& packing, std::int64_t queries, std::int64_t rows, const Shape& shape, std::uint64_t seed) {
    packing.q = normal({queries, shape.query_heads, shape.head_size}, seed);
    packing.k = normal({rows, shape.kv_heads, shape.head_size}, seed + 1);
    packing.v = normal({rows, shape.kv_heads, shape.head_size}, seed + 2);
    packing.scale = 1 / std::sqrt(static_cast<double>(shape.head_size));
}

/// Sequences of the given lengths, each after `past` cached rows, with unused rows between them that hold
/// NaN.
Packing causal(const std::vector<std::int64_t>& lengths, const std::vector<std::int64_t>& pasts,
               std::int64_t gap, const Shape& shape, std::uint64_t seed) {
    Packing packing;
    std::int64_t queries = 0;
    std::int64_t rows = gap;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        packing.visibility.causal.push_back({queries, lengths[i], rows, pasts[i]});
        queries += lengths[i];
        rows += pasts[i] + lengths[i] + gap;
    }
    fill(packing, queries, rows, shape, seed);
    auto used = at::zeros({rows}, at::kBool);
    for (const auto& block : packing.visibility.causal) {
        used.narrow(0, block.row_begin, block.past + block.length).fill_(true);
    }
    for (auto* tensor : {&packing.k, &packing.v}) {
        tensor->masked_fill_(used.logical_not().view({rows, 1, 1}), std::numeric_limits<double>::quiet_NaN());
    }
    return packing;
}

/// The reference multiplies zeros with every row, so it must not see the NaN of rows that nobody reads.
at::Tensor reference(const Packing& p) {
    return attend_plain(p.q.to(at::kDouble), p.k.to(at::kDouble).nan_to_num(),
                        p.v.to(at::kDouble).nan_to_num(), p.visibility, p.scale, p.bias);
}

at::Tensor run(const Packing& p) {
    return attend(p.q, p.k, p.v, p.visibility, p.scale, p.bias);
}

double difference(const at::Tensor& a, const at::Tensor& b) {
    EXPECT_EQ(a.sizes(), b.sizes());
    return (a.to(at::kDouble) - b.to(at::kDouble)).abs().nan_to_num(1e9).max().item<double>();
}

at::Tensor ranges_of(const std::vector<std::vector<std::pair<int, int>>>& queries) {
    std::size_t most = 1;
    for (const auto& query : queries) {
        most = std::max(most, query.size());
    }
    auto ranges =
        at::zeros({static_cast<std::int64_t>(queries.size()), static_cast<std::int64_t>(most), 2}, at::kInt);
    auto numbers = ranges.accessor<std::int32_t, 3>();
    for (std::size_t i = 0; i < queries.size(); ++i) {
        for (std::size_t m = 0; m < queries[i].size(); ++m) {
            numbers[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(m)][0] = queries[i][m].first;
            numbers[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(m)][1] = queries[i][m].second;
        }
    }
    return ranges;
}

/// The active tokens of a step: each token of each sequence takes part with probability `rate`, and sees its
/// sequence up to itself.
Packing halted(const std::vector<std::int64_t>& lengths, double rate, const Shape& shape,
               std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::vector<std::pair<int, int>>> queries;
    int rows = 0;
    for (const auto length : lengths) {
        for (int t = 0; t < length; ++t) {
            if (std::uniform_real_distribution<double>(0, 1)(random) < rate) {
                queries.push_back({{rows, rows + t + 1}});
            }
        }
        rows += static_cast<int>(length);
    }
    Packing packing;
    packing.visibility.ranges = ranges_of(queries);
    fill(packing, static_cast<std::int64_t>(queries.size()), rows, shape, seed);
    return packing;
}

TEST(Attend, CausalPackingsEqualTheReference) {
    for (const auto& shape : {Shape{1, 1, 4}, Shape{4, 4, 64}, Shape{4, 2, 16}, Shape{6, 1, 33},
                              Shape{8, 2, 80}, Shape{64, 1, 8}}) {
        for (const std::int64_t window : {0, 1, 7, 60}) {
            SCOPED_TRACE(std::to_string(shape.query_heads) + "/" + std::to_string(shape.kv_heads) +
                         " heads of " + std::to_string(shape.head_size) + ", window " +
                         std::to_string(window));
            auto p = causal({1, 300, 17, 48, 49, 2, 5}, {0, 0, 130, 1, 0, 40, 3}, 3, shape, 3);
            p.visibility.window = window;
            EXPECT_LE(difference(run(p), reference(p)), 3e-6);
        }
    }
}

TEST(Attend, GatheredQueriesOfHaltedTokens) {
    for (const double rate : {1.0, 0.5, 0.1, 0.02}) {
        for (const std::int64_t window : {0, 20}) {
            SCOPED_TRACE(std::to_string(rate) + ", window " + std::to_string(window));
            auto p = halted({400, 3, 77, 250}, rate, {4, 2, 32}, 5);
            p.visibility.window = window;
            EXPECT_LE(difference(run(p), reference(p)), 3e-6);
            p.bias = normal({p.k.size(0)}, 6);
            EXPECT_LE(difference(run(p), reference(p)), 3e-6);
        }
    }
}

TEST(Attend, TwoDimensionalRangesWithEmptyOnes) {
    // Steps lie one behind the other, each with its active tokens only; token t of step k sees the tokens up
    // to t of steps 0..k.
    std::mt19937_64 random(9);
    const int tokens = 90;
    const int steps = 4;
    std::vector<std::vector<int>> active(steps);
    for (int t = 0; t < tokens; ++t) {
        for (int k = 0; k < steps && (k == 0 || random() % 3 != 0); ++k) {
            active[static_cast<std::size_t>(k)].push_back(t);
        }
    }
    std::vector<std::vector<std::pair<int, int>>> queries;
    int rows = 0;
    std::vector<int> first_row;
    for (const auto& step : active) {
        first_row.push_back(rows);
        rows += static_cast<int>(step.size());
    }
    for (int k = 0; k < steps; ++k) {
        for (const int t : active[static_cast<std::size_t>(k)]) {
            std::vector<std::pair<int, int>> seen;
            for (int s = 0; s <= k; ++s) {
                const auto& step = active[static_cast<std::size_t>(s)];
                const auto count = std::upper_bound(step.begin(), step.end(), t) - step.begin();
                seen.emplace_back(first_row[static_cast<std::size_t>(s)],
                                  first_row[static_cast<std::size_t>(s)] + static_cast<int>(count));
            }
            queries.push_back(seen);
        }
    }
    Packing p;
    p.visibility.ranges = ranges_of(queries);
    fill(p, static_cast<std::int64_t>(queries.size()), rows, {4, 2, 24}, 10);
    for (const std::int64_t window : {0, 1, 50}) {
        p.visibility.window = window;
        EXPECT_LE(difference(run(p), reference(p)), 3e-6) << "window " << window;
    }
}

TEST(Attend, RandomRanges) {
    std::mt19937_64 random(17);
    for (int round = 0; round < 40; ++round) {
        const int rows = 1 + static_cast<int>(random() % 400);
        const auto count = 1 + random() % 60;
        std::vector<std::vector<std::pair<int, int>>> queries;
        for (std::size_t i = 0; i < count; ++i) {
            std::vector<std::pair<int, int>> seen;
            int at = 0;
            const auto most = 1 + random() % 4;
            while (seen.size() < most && at < rows) {
                const int begin = at + static_cast<int>(random() % static_cast<unsigned>(rows - at));
                const int end = begin + static_cast<int>(random() % static_cast<unsigned>(rows - begin + 1));
                seen.emplace_back(begin, end);
                at = end + 1;
            }
            if (std::all_of(seen.begin(), seen.end(),
                            [](auto range) { return range.first == range.second; })) {
                seen = {{rows - 1, rows}};
            }
            queries.push_back(seen);
        }
        Packing p;
        p.visibility.ranges = ranges_of(queries);
        p.visibility.window = round % 3 == 0 ? 1 + static_cast<std::int64_t>(random() % 100) : 0;
        fill(p, static_cast<std::int64_t>(count), rows, {6, 3, 8}, random());
        if (round % 2 == 0) {
            p.bias = normal({rows}, random());
        }
        EXPECT_LE(difference(run(p), reference(p)), 3e-6) << "round " << round;
    }
}

TEST(Attend, TheLastRowsThatRangesCanName) {
    const std::int64_t rows = std::numeric_limits<std::int32_t>::max();
    const auto q = normal({3, 2, 1}, 18);
    const auto k = normal({1, 1, 1}, 19).expand({rows, 1, 1}); // one row, seen over and over
    const auto v = normal({1, 1, 1}, 20).expand({rows, 1, 1});
    Visibility visibility;
    visibility.ranges = ranges_of({{{static_cast<int>(rows) - 300, static_cast<int>(rows)}},
                                   {{static_cast<int>(rows) - 1, static_cast<int>(rows)}},
                                   {{7, 9}}});
    EXPECT_LE((attend(q, k, v, visibility, 1) - v[0]).abs().max().item<double>(), 1e-5);
    EXPECT_THROW(attend(q, k.select(0, 0).expand({rows + 1, 1, 1}), v.select(0, 0).expand({rows + 1, 1, 1}),
                        visibility, 1),
                 c10::Error);
}

TEST(Attend, HalfPrecision) {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
        auto p = causal({100, 33}, {0, 20}, 0, {4, 2, 64}, 23);
        p.q = p.q.to(type);
        p.k = p.k.to(type);
        p.v = p.v.to(type);
        const auto got = run(p);
        EXPECT_EQ(got.scalar_type(), type);
        // Only the result is rounded.
        EXPECT_LE(difference(got, reference(p).to(type)), type == at::kHalf ? 2e-3 : 2e-2);
        EXPECT_LE(difference(got, reference(p)), (type == at::kHalf ? 0x1p-11 : 0x1p-8) * 3.0);
    }
}

Packing brain_floats(Packing p) {
    for (auto* tensor : {&p.q, &p.k, &p.v}) {
        *tensor = tensor->to(at::kBFloat16);
    }
    return p;
}

TEST(Attend, SoftcapsAndSinks) {
    for (const auto& shape : {Shape{1, 1, 4}, Shape{4, 2, 16}, Shape{6, 1, 34}}) {
        const auto sinks = normal({shape.query_heads}, 8);
        for (const ScoreExtras& extras :
             {ScoreExtras{0.7, {}}, ScoreExtras{0.0, sinks}, ScoreExtras{2.5, sinks}}) {
            auto whole = causal({1, 90, 17, 2}, {0, 0, 130, 40}, 3, shape, 3);
            auto gathered = halted({100, 30}, 0.5, shape, 7);
            auto biased = halted({100, 30}, 0.5, shape, 9);
            biased.bias = normal({130}, 6);
            whole.visibility.window = 60;
            for (auto* packing : {&whole, &gathered, &biased}) {
                const auto& p = *packing;
                const auto exactly = [&](const Packing& one) {
                    return attend_plain(one.q.to(at::kDouble), one.k.to(at::kDouble).nan_to_num(),
                                        one.v.to(at::kDouble).nan_to_num(), one.visibility, one.scale,
                                        one.bias, extras);
                };
                const auto expected = exactly(p);
                EXPECT_GT(difference(run(p), expected), 1e-2) << "the extras change something";
                EXPECT_LE(difference(attend(p.q, p.k, p.v, p.visibility, p.scale, p.bias, extras), expected),
                          3e-6);
                const auto b = brain_floats(p);
                const auto got = attend(b.q, b.k, b.v, b.visibility, b.scale, b.bias, extras);
                const auto rounded = exactly(b);
                const auto off = (got.to(at::kDouble) - rounded).abs() - rounded.abs() * 0x1p-8;
                EXPECT_LE(off.nan_to_num(1e9).max().item<double>(), 3e-5);
            }
        }
    }
    // A sink is a key of its own whose value is zero.
    auto p = causal({5}, {0}, 0, {2, 2, 4}, 11);
    const auto sinks = normal({2}, 12);
    const auto with = attend(p.q, p.k, p.v, p.visibility, p.scale, {}, {0.0, sinks});
    const auto scores = at::einsum("qhd,rhd->hqr", {p.q, p.k}) * p.scale;
    const auto seen = at::ones({5, 5}, at::kBool).tril();
    const auto weights = scores.exp().masked_fill(seen.logical_not(), 0);
    const auto shares = weights / (weights.sum(-1, true) + sinks.exp().view({2, 1, 1}));
    EXPECT_LE(difference(with, at::einsum("hqr,rhd->qhd", {shares, p.v})), 3e-6);
}

TEST(Attend, ASequenceDoesNotKnowItsNeighbours) {
    const std::vector<std::int64_t> lengths = {30, 130, 7, 1, 64};
    const std::vector<std::int64_t> pasts = {0, 12, 0, 9, 0};
    const auto fp32 = causal(lengths, pasts, 0, {6, 2, 40}, 31);
    for (const auto& p : {fp32, brain_floats(fp32)}) {
        // Products round by where their factors lie: a half may become its neighbour.
        const double unit = p.q.scalar_type() == at::kFloat ? 1e-6 : 0x1p-6;
        const auto together = run(p);
        for (const auto& block : p.visibility.causal) {
            Packing alone = p;
            alone.q = p.q.narrow(0, block.query_begin, block.length);
            alone.k = p.k.narrow(0, block.row_begin, block.past + block.length);
            alone.v = p.v.narrow(0, block.row_begin, block.past + block.length);
            alone.visibility.causal = {{0, block.length, 0, block.past}};
            EXPECT_LE(difference(run(alone), together.narrow(0, block.query_begin, block.length)), unit);
        }
        const int threads = at::get_num_threads();
        for (const int other : {1, 3, 8}) {
            at::set_num_threads(other);
            EXPECT_LE(difference(run(p), together), unit);
        }
        at::set_num_threads(threads);
    }
}

TEST(Attend, ADecodedTokenEqualsTheFullForward) {
    const auto p = causal({96}, {0}, 0, {4, 2, 32}, 37);
    const auto full = run(p);
    for (const std::int64_t t : {0L, 1L, 47L, 48L, 95L}) {
        Packing one = p;
        one.q = p.q.narrow(0, t, 1);
        one.visibility.causal = {{0, 1, 0, t}};
        EXPECT_LE(difference(run(one), full.narrow(0, t, 1)), 1e-6);
    }
}

TEST(Attend, BothFormsOfOneVisibility) {
    auto p = causal({40, 11}, {5, 0}, 2, {4, 2, 16}, 41);
    const auto expected = run(p);
    std::vector<std::vector<std::pair<int, int>>> queries;
    for (const auto& block : p.visibility.causal) {
        for (std::int64_t i = 0; i < block.length; ++i) {
            queries.push_back({{static_cast<int>(block.row_begin),
                                static_cast<int>(block.row_begin + block.past + i + 1)}});
        }
    }
    p.visibility.causal.clear();
    p.visibility.ranges = ranges_of(queries);
    EXPECT_LE(difference(run(p), expected), 1e-6);
}

TEST(Attend, StridedInputs) {
    auto p = causal({50, 50}, {0, 0}, 0, {4, 4, 16}, 43);
    const auto expected = run(p);
    // One fused projection, interleaved per head as GPT-NeoX stores it.
    const auto fused = at::stack({p.q, p.k, p.v}, 2).contiguous();
    p.q = fused.select(2, 0);
    p.k = fused.select(2, 1);
    p.v = fused.select(2, 2);
    EXPECT_LE(difference(run(p), expected), 1e-6);
    p.v = p.v.transpose(0, 2).contiguous().transpose(0, 2);
    EXPECT_LE(difference(run(p), expected), 1e-6);
}

TEST(Attend, GradientsOfEveryForm) {
    for (const int form : {0, 1, 2, 3}) {
        SCOPED_TRACE(form);
        auto p = causal({20, 20, 9}, {0, 0, 0}, 0, {4, 2, 8}, 47);
        if (form == 1) {
            p.bias = normal({p.k.size(0)}, 48);
        } else if (form == 2) {
            p.visibility.window = 5;
        } else if (form == 3) {
            p = halted({30, 12}, 0.5, {4, 2, 8}, 49);
        }
        const auto weight = normal(p.q.sizes(), 50);
        const auto gradients = [&](bool through_reference) {
            std::vector<at::Tensor> leaves;
            auto with = p;
            for (auto* tensor : {&with.q, &with.k, &with.v, &with.bias}) {
                if (tensor->defined()) {
                    *tensor = tensor->detach().clone().requires_grad_(true);
                    leaves.push_back(*tensor);
                }
            }
            const auto out = through_reference ? attend_plain(with.q, with.k, with.v, with.visibility,
                                                              with.scale, with.bias)
                                               : run(with);
            (out * weight).sum().backward();
            std::vector<at::Tensor> result;
            for (const auto& leaf : leaves) {
                result.push_back(leaf.grad());
            }
            return result;
        };
        const auto expected = gradients(true);
        const auto got = gradients(false);
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            EXPECT_LE(difference(got[i], expected[i]), 2e-5) << "input " << i;
        }
    }
}

/// Asked before a gradient is: from then on LibTorch would not look for its CUDA half.
const bool gpu_is_there = device_for("auto", 0).is_cuda();

TEST(Attend, OnTheGpu) {
    if (!gpu_is_there) {
        GTEST_SKIP() << "no CUDA device";
    }
    const testing::Poison poison;
    const auto on_device = [](Packing p) {
        for (auto* tensor : {&p.q, &p.k, &p.v, &p.bias, &p.visibility.ranges}) {
            *tensor = tensor->defined() ? tensor->to(at::kCUDA) : *tensor;
        }
        return run(p).cpu();
    };
    for (const auto& shape : {Shape{1, 1, 4}, Shape{4, 2, 16}, Shape{6, 1, 33}, Shape{8, 2, 64},
                              Shape{4, 4, 80}, Shape{2, 1, 128}, Shape{2, 2, 256}}) {
        for (const std::int64_t window : {0, 7}) {
            SCOPED_TRACE(std::to_string(shape.head_size) + ", window " + std::to_string(window));
            auto whole = causal({100, 100, 17}, {0, 0, 0}, 0, shape, 61);
            auto cached = causal({1, 30, 17}, {40, 0, 130}, 3, shape, 62);
            auto gathered = halted({300, 3, 77}, 0.3, shape, 63);
            for (auto* packing : {&whole, &cached, &gathered}) {
                packing->visibility.window = window;
                EXPECT_LE(difference(on_device(*packing), reference(*packing)), 2e-5);
                packing->bias = normal({packing->k.size(0)}, 64);
                EXPECT_LE(difference(on_device(*packing), reference(*packing)), 2e-5);
            }
            // So many queries that tiles of them go to the matrix unit.
            auto many = halted({900, 3, 200}, 0.5, shape, 65);
            many.visibility.window = window;
            many.bias = normal({many.k.size(0)}, 66);
            for (const auto type : {at::kBFloat16, at::kHalf}) {
                for (Packing half : {gathered, many}) {
                    half.q = half.q.to(type);
                    half.k = half.k.to(type);
                    half.v = half.v.to(type);
                    EXPECT_LE(difference(on_device(half), reference(half)),
                              (type == at::kHalf ? 0x1p-11 : 0x1p-8) * 4.0);
                }
            }
        }
    }
}

TEST(RangeTrim, KeepsTheLastRowsOfAllRanges) {
    std::mt19937_64 random(71);
    for (int round = 0; round < 200; ++round) {
        std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
        std::vector<std::int32_t> rows;
        std::int32_t at = 0;
        for (std::size_t i = 0; i < 1 + random() % 5; ++i) {
            const auto begin = at + static_cast<std::int32_t>(random() % 4);
            const auto end = begin + static_cast<std::int32_t>(random() % 6);
            ranges.emplace_back(begin, end);
            for (auto row = begin; row < end; ++row) {
                rows.push_back(row);
            }
            at = end;
        }
        const auto window = static_cast<std::int64_t>(random() % 12);
        const auto kept = window == 0 ? rows.size() : std::min(rows.size(), static_cast<std::size_t>(window));
        const std::vector<std::int32_t> expected(rows.end() - static_cast<std::ptrdiff_t>(kept), rows.end());
        std::vector<std::int32_t> got;
        auto trim = kernels::RangeTrim::of(static_cast<std::int64_t>(rows.size()), window);
        for (const auto& [begin, end] : ranges) {
            for (auto row = trim.first(begin, end); row < end; ++row) {
                got.push_back(row);
            }
        }
        EXPECT_EQ(got, expected) << "window " << window;
    }
}

TEST(Attend, RefusesWhatDoesNotFit) {
    const auto p = causal({5, 6}, {0, 2}, 0, {4, 2, 8}, 51);
    const auto with = [&](auto change) {
        auto other = p;
        change(other);
        run(other);
    };
    EXPECT_THROW(with([](Packing& x) { x.visibility.causal.pop_back(); }), c10::Error);
    EXPECT_THROW(with([](Packing& x) { x.visibility.causal[0].past = 100; }), c10::Error);
    EXPECT_THROW(with([](Packing& x) { x.k = x.k.narrow(2, 0, 7); }), c10::Error);
    EXPECT_THROW(with([](Packing& x) { x.q = x.q.narrow(1, 0, 3); }), c10::Error);
    EXPECT_THROW(with([](Packing& x) { x.bias = at::zeros({3}); }), c10::Error);
    EXPECT_THROW(with([](Packing& x) { x.visibility.ranges = at::zeros({11, 1, 2}, at::kInt); }), c10::Error);
    EXPECT_THROW(with([](Packing& x) {
                     x.visibility.causal.clear();
                     x.visibility.ranges = at::tensor({0, 99}, at::kInt).view({1, 1, 2}).expand({11, 1, 2});
                 }),
                 c10::Error);
    EXPECT_EQ(attend(p.q.narrow(0, 0, 0), p.k, p.v, {}, 1).size(0), 0);
}

} // namespace
} // namespace ponderscope
