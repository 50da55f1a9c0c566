// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/head.h"
#include "core/model/device.h"
#include "tests/core/kernels/head_cases.h"
#include "tests/support/poison.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

using namespace testing;

HeadResult in_double(const Case& c) {
    auto weights = c.weights;
    for (auto* tensor : {&weights.head, &weights.head_bias, &weights.embedding}) {
        *tensor = tensor->defined() ? tensor->to(at::kDouble) : *tensor;
    }
    auto request = c.request;
    request.previous = request.previous.defined() ? request.previous.to(at::kDouble) : request.previous;
    return reference_read_out(c.h.to(at::kDouble), weights, request);
}

struct Tolerances {
    double nll = 3e-6;
    double entropy = 1e-5;
    double mixture = 1e-5;
};

void expect_close(const HeadResult& got, const HeadResult& expected, const Tolerances& tolerance) {
    const double scale = 1 + expected.nll.nan_to_num(0, 0, 0).abs().max().item<double>();
    EXPECT_LE(largest_difference(got.nll, expected.nll), tolerance.nll * scale);
    EXPECT_LE(largest_difference(got.entropy, expected.entropy), tolerance.entropy);
    EXPECT_LE(largest_difference(got.max_probability, expected.max_probability), tolerance.entropy);
    EXPECT_LE(largest_difference(got.margin, expected.margin), tolerance.entropy);
    EXPECT_LE(largest_difference(got.candidate_probabilities, expected.candidate_probabilities),
              tolerance.entropy);
    EXPECT_LE(largest_difference(got.kl_previous_current, expected.kl_previous_current), tolerance.entropy);
    EXPECT_LE(largest_difference(got.kl_current_previous, expected.kl_current_previous), tolerance.entropy);
    EXPECT_LE(largest_difference(got.mixture, expected.mixture), tolerance.mixture);
}

void expect_same_bits(const HeadResult& a, const HeadResult& b) {
    for (const auto field : head_result_fields) {
        const auto& x = a.*field;
        const auto& y = b.*field;
        ASSERT_EQ(x.defined(), y.defined());
        if (x.defined()) {
            EXPECT_TRUE(at::allclose(x, y, 0, 0, /*equal_nan=*/true));
        }
    }
}

HeadResult rows_of(const HeadResult& all, std::int64_t begin, std::int64_t length) {
    HeadResult part;
    for (const auto field : head_result_fields) {
        if ((all.*field).defined()) {
            part.*field = (all.*field).narrow(0, begin, length);
        }
    }
    return part;
}

/// Weights and states in bfloat16.
Case brain_floats(Case c) {
    for (auto* tensor : {&c.h, &c.weights.head, &c.weights.embedding, &c.request.previous}) {
        *tensor = tensor->defined() ? tensor->to(at::kBFloat16) : *tensor;
    }
    return c;
}

Case narrowed(const Case& c, std::int64_t begin, std::int64_t length) {
    Case part = c;
    part.h = c.h.narrow(0, begin, length);
    part.request.targets = c.request.targets.narrow(0, begin, length);
    part.request.previous = c.request.previous.narrow(0, begin, length);
    return part;
}

} // namespace

TEST(ReadOut, EqualsTheReferenceInDouble) {
    struct Shape {
        std::int64_t n, vocabulary, d;
        double spread;
    };
    for (const auto& shape : {Shape{1, 1, 1, 1}, Shape{1, 2, 3, 1}, Shape{5, 17, 8, 2}, Shape{48, 512, 64, 3},
                              Shape{49, 2049, 33, 4}, Shape{130, 5000, 64, 6}, Shape{257, 3000, 24, 15},
                              Shape{16, 9001, 512, 2}}) {
        SCOPED_TRACE(std::to_string(shape.n) + " x " + std::to_string(shape.vocabulary) + ", d " +
                     std::to_string(shape.d));
        auto c = make_case(shape.n, shape.vocabulary, shape.d, shape.spread,
                           7 * static_cast<std::uint64_t>(shape.n));
        const auto expected = in_double(c);
        const auto got = read_out(c.h, c.weights, c.request);
        // Logits of +-60 carry rounding errors of their own.
        const double wide = shape.spread > 8 ? 4 : 1;
        expect_close(got, expected, {3e-6, wide * 1e-5, wide * 1e-5});
        // Ids and ranks are exact but where two logits are closer than rounding.
        EXPECT_TRUE(at::equal(got.argmax, expected.argmax));
        EXPECT_GE(got.candidate_ids.eq(expected.candidate_ids).to(at::kFloat).mean().item<double>(), 0.999);
        EXPECT_LE((got.rank - expected.rank).abs().max().item<std::int64_t>(), 1);
        EXPECT_GE(got.rank.eq(expected.rank).to(at::kFloat).mean().item<double>(), 0.97);
        EXPECT_GE(at::minimum(got.kl_current_previous, got.kl_previous_current).min().item<double>(), 0);
    }
}

TEST(ReadOut, BiasTemperatureAndTruncation) {
    auto c = make_case(70, 2500, 48, 3, 11);
    c.weights.head_bias = normal({2500}, 12);
    for (const double temperature : {0.7, 1.0, 2.5}) {
        for (const std::int64_t top_k : {0L, 1L, 7L, 100L, 2499L, 2500L, 4000L}) {
            SCOPED_TRACE(std::to_string(temperature) + ", top " + std::to_string(top_k));
            c.request.temperature = temperature;
            c.request.top_k = top_k;
            expect_close(read_out(c.h, c.weights, c.request), in_double(c), {});
        }
    }
}

TEST(ReadOut, WhatIsNotAskedForIsNotThere) {
    auto c = make_case(9, 300, 16, 2, 5);
    c.request = {};
    const auto nothing = read_out(c.h, c.weights, c.request);
    for (const auto& tensor :
         {nothing.nll, nothing.rank, nothing.entropy, nothing.max_probability, nothing.margin, nothing.argmax,
          nothing.candidate_ids, nothing.candidate_probabilities, nothing.kl_current_previous,
          nothing.kl_previous_current, nothing.mixture}) {
        EXPECT_FALSE(tensor.defined());
    }
    const auto none = read_out(c.h.narrow(0, 0, 0), c.weights, make_case(0, 300, 16, 2, 5).request);
    EXPECT_EQ(none.nll.sizes(), at::IntArrayRef({0}));
    EXPECT_EQ(none.mixture.sizes(), at::IntArrayRef({0, 16}));
}

TEST(ReadOut, ARowDependsNeitherOnTheOthersNorOnThreads) {
    const auto c = make_case(301, 6001, 40, 4, 21);
    const auto whole = read_out(c.h, c.weights, c.request);
    for (const std::int64_t length : {1L, 2L, 17L, 48L, 129L, 200L}) {
        for (const std::int64_t begin : {0L, 1L, 100L}) {
            const auto part = narrowed(c, begin, length);
            SCOPED_TRACE(std::to_string(begin) + " + " + std::to_string(length));
            expect_close(read_out(part.h, part.weights, part.request), rows_of(whole, begin, length), {});
        }
    }
    const int threads = at::get_num_threads();
    for (const int other : {1, 2, 3, 7}) {
        at::set_num_threads(other);
        expect_close(read_out(c.h, c.weights, c.request), whole, {});
    }
    at::set_num_threads(threads);
}

TEST(ReadOut, EqualLogitsKeepTheLowerIdAndShareARank) {
    // Words 3k, 3k+1, 3k+2 have the same row; the best word of token t is chosen by a one-hot state.
    const std::int64_t vocabulary = 5001;
    auto distinct = normal({vocabulary / 3, 24}, 31);
    Case c;
    c.weights.head = distinct.repeat_interleave(3, 0).contiguous();
    c.h = normal({64, 24}, 32);
    c.request.distribution = true;
    c.request.candidates = 12;
    c.request.targets = at::arange(64, at::kLong) * 71;
    const auto got = read_out(c.h, c.weights, c.request);
    EXPECT_EQ(got.argmax.remainder(3).max().item<std::int64_t>(), 0);
    EXPECT_EQ(got.margin.abs().max().item<double>(), 0);
    const auto ids = got.candidate_ids.view({64, 4, 3});
    EXPECT_TRUE(at::equal(ids.select(2, 0) + 1, ids.select(2, 1)));
    EXPECT_TRUE(at::equal(ids.select(2, 0) + 2, ids.select(2, 2)));
    EXPECT_EQ((got.rank - 1).remainder(3).max().item<std::int64_t>(), 0);
    // Whatever the place in the vocabulary: the best word as the target has rank 1.
    c.request.targets = got.argmax + 2;
    EXPECT_EQ(read_out(c.h, c.weights, c.request).rank.max().item<std::int64_t>(), 1);
}

TEST(ReadOut, RowsWithoutAStepBefore) {
    auto c = make_case(37, 700, 32, 3, 41);
    const auto all = read_out(c.h, c.weights, c.request);
    auto counts = at::arange(37, at::kLong).remainder(3).eq(0);
    for (const auto& rows :
         {counts, counts.logical_or(counts.logical_not()), counts.logical_and(counts.logical_not())}) {
        c.request.previous_rows = rows;
        const auto got = read_out(c.h, c.weights, c.request);
        auto expected = all;
        for (const auto field : {&HeadResult::kl_current_previous, &HeadResult::kl_previous_current}) {
            expected.*field = at::where(rows, all.*field, at::full_like(all.*field, nan));
        }
        expect_same_bits(got, expected);
        expect_close(got, in_double(c), {});
    }
}

TEST(ReadOut, StrangeNumbersStayWhereTheyAre) {
    const auto fp32 = make_case(20, 400, 16, 2, 51);
    for (auto c : {fp32, brain_floats(fp32)}) {
        c.request.targets = at::full({20}, 5, at::kLong);
        const auto before = read_out(c.h, c.weights, c.request);
        c.h = c.h.clone();
        c.h[3][2] = nan;
        c.h[4][0] = infinity;
        const auto got = read_out(c.h, c.weights, c.request);
        for (const std::int64_t row : {3L, 4L}) {
            EXPECT_TRUE(std::isnan(got.nll[row].item<double>()));
            EXPECT_TRUE(std::isnan(got.entropy[row].item<double>()));
            EXPECT_TRUE(std::isnan(got.max_probability[row].item<double>()));
            EXPECT_TRUE(got.mixture[row].isnan().all().item<bool>());
            EXPECT_GE(got.candidate_ids[row].min().item<std::int64_t>(), 0);
            EXPECT_LT(got.candidate_ids[row].max().item<std::int64_t>(), 400);
        }
        expect_same_bits(rows_of(got, 0, 3), rows_of(before, 0, 3));
        expect_same_bits(rows_of(got, 5, 15), rows_of(before, 5, 15));
    }
}

TEST(ReadOut, EndsOfTheNumbersAgreeWithTheReference) {
    // h chooses a column of the head: products of 1e20 reach the infinities, exactly in every order of
    // adding.
    const std::int64_t vocabulary = 700;
    const auto column = [&](std::initializer_list<std::pair<std::int64_t, double>> words) {
        auto logits = normal({vocabulary}, 71, 2);
        for (const auto& [word, logit] : words) {
            logits[word] = logit;
        }
        return logits;
    };
    const auto all = [&](double logit) { return at::full({vocabulary}, logit, at::kFloat); };
    auto stepped = all(-1e35);
    stepped.narrow(0, 650, 50).copy_(normal({50}, 72));
    auto falling = all(-1e35);
    falling.narrow(0, 0, 50).copy_(normal({50}, 73));
    const std::vector<at::Tensor> columns = {
        column({}),
        column({{3, -infinity}}),
        column({{3, -30}, {650, -infinity}}),
        column({{3, -infinity}, {400, -infinity}, {699, 5000}}),
        column({{5, infinity}}),
        column({{0, infinity}, {699, infinity}}),
        stepped,
        falling,
        all(-1e35),
        all(-infinity),
    };
    for (std::size_t p = 0; p < columns.size(); ++p) {
        for (std::size_t q = 0; q < columns.size(); ++q) {
            SCOPED_TRACE(std::to_string(p) + " against " + std::to_string(q));
            Case c;
            c.weights.head = at::stack({columns[p], columns[q]}, 1).mul(1e-20).clamp(-1e20, 1e20);
            c.weights.embedding = normal({vocabulary, 2}, 74);
            c.h = at::tensor({1e20F, 0.0F}).view({1, 2});
            c.request.previous = at::tensor({0.0F, 1e20F}).view({1, 2});
            c.request.targets = at::full({1}, 3, at::kLong);
            c.request.distribution = true;
            c.request.candidates = 10;
            c.request.mixture = true;
            for (const std::int64_t top_k : {0L, 20L}) {
                c.request.top_k = top_k;
                const auto expected = reference_read_out(c.h, c.weights, c.request);
                const auto got = read_out(c.h, c.weights, c.request);
                for (const auto field : head_result_fields) {
                    if (field != &HeadResult::candidate_ids && field != &HeadResult::argmax) {
                        const auto& wanted = expected.*field;
                        const auto size = wanted.to(at::kDouble).nan_to_num(0, 0, 0).abs().max();
                        EXPECT_LE(largest_difference(got.*field, wanted), 1e-5 * (1 + size.item<double>()))
                            << "got " << got.*field << ", expected " << wanted;
                    }
                }
            }
        }
    }
    // A NaN is in no list of the largest, but leaves no distribution to mix.
    auto c = make_case(4, 400, 16, 2, 75);
    c.h[2][3] = nan;
    c.request.top_k = 7;
    const auto got = read_out(c.h, c.weights, c.request);
    const auto expected = reference_read_out(c.h, c.weights, c.request);
    EXPECT_LE(largest_difference(got.mixture, expected.mixture), 1e-5);
    EXPECT_LE(largest_difference(got.entropy, expected.entropy), 1e-5);
    EXPECT_TRUE(got.entropy[2].isnan().item<bool>());
}

TEST(ReadOut, WordsOfNoProbability) {
    auto c = make_case(20, 400, 16, 2, 52);
    c.request.previous = at::Tensor();
    c.weights.head_bias = at::zeros({400});
    c.weights.head_bias.narrow(0, 3, 394).fill_(-infinity);
    c.request.targets = at::full({20}, 1, at::kLong);
    const auto got = read_out(c.h, c.weights, c.request);
    expect_close(got, in_double(c), {});
    // Six words are left; the four others of a list of ten are the lowest ids among the impossible ones.
    EXPECT_TRUE(at::equal(got.candidate_ids.narrow(1, 6, 4), at::arange(3, 7, at::kLong).expand({20, 4})));
    EXPECT_EQ(got.candidate_probabilities.narrow(1, 6, 4).max().item<double>(), 0);
}

TEST(ReadOut, DistributionsFarApart) {
    // Logits of +-200: differences under -87 have a probability of 0 in fp32, but count in a divergence.
    auto c = make_case(40, 300, 16, 70, 61);
    c.request.previous = normal({40, 16}, 62);
    const auto got = read_out(c.h, c.weights, c.request);
    const auto expected = in_double(c);
    const auto relative =
        (got.kl_current_previous - expected.kl_current_previous).abs() / expected.kl_current_previous;
    EXPECT_LE(relative.max().item<double>(), 1e-5);
    EXPECT_LE((got.nll - expected.nll).abs().nan_to_num(0.0).max().item<double>(), 2e-4);
}

TEST(ReadOut, HalfPrecisionWeights) {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
        for (const std::int64_t d : {64L, 33L}) {
            SCOPED_TRACE(std::string(at::toString(type)) + ", d " + std::to_string(d));
            auto c = make_case(75, 3000, d, 4, 71);
            c.weights.head = c.weights.head.to(type);
            c.weights.embedding = c.weights.embedding.to(type);
            for (const bool states_too : {false, true}) {
                if (states_too) {
                    c.h = c.h.to(type);
                    c.request.previous = c.request.previous.to(type);
                }
                // The products are exact in fp32 sums; nothing is rounded to the weights' type on the way.
                expect_close(read_out(c.h, c.weights, c.request), in_double(c), {3e-6, 2e-5, 2e-5});
            }
        }
    }
}

TEST(ReadOut, ImpossibleWordsOfBrainFloats) {
    auto c = brain_floats(make_case(20, 400, 16, 2, 175));
    c.weights.head_bias = at::zeros({400});
    c.weights.head_bias.narrow(0, 3, 394).fill_(-infinity);
    c.request.targets = at::full({20}, 1, at::kLong);
    expect_close(read_out(c.h, c.weights, c.request), in_double(c), {});
    c.weights.head_bias.narrow(0, 3, 394).fill_(-1e35);
    expect_close(read_out(c.h, c.weights, c.request), in_double(c), {});
    c.request.previous = at::Tensor();
    for (const double all : {-infinity, infinity}) {
        SCOPED_TRACE(all);
        c.weights.head_bias = at::zeros({400});
        c.weights.head_bias.narrow(0, 0, all > 0 ? 1 : 400).fill_(all);
        expect_close(read_out(c.h, c.weights, c.request), in_double(c), {});
    }
}

TEST(ReadOut, TiedAndStridedTables) {
    auto c = make_case(30, 900, 32, 3, 81);
    c.weights.embedding = c.weights.head;
    expect_close(read_out(c.h, c.weights, c.request), in_double(c), {});
    const auto wide = normal({900, 64}, 82, 0.5);
    c.weights.head = wide.narrow(1, 16, 32);
    c.weights.embedding = wide.t().contiguous().t().narrow(1, 0, 32);
    c.h = normal({30, 64}, 83).narrow(1, 7, 32);
    expect_close(read_out(c.h, c.weights, c.request), in_double(c), {});
}

TEST(ReadOut, LongLists) {
    auto c = make_case(30, 2000, 16, 3, 85);
    c.request.top_k = 600;
    c.request.candidates = 515;
    expect_close(read_out(c.h, c.weights, c.request), in_double(c), {});
}

TEST(ReadOut, OnTheGpu) {
    if (!device_for("auto", 0).is_cuda()) {
        GTEST_SKIP() << "no CUDA device";
    }
    const Poison poison;
    const auto on_device = [](Case c) {
        for (auto* tensor : {&c.h, &c.weights.head, &c.weights.head_bias, &c.weights.embedding,
                             &c.request.targets, &c.request.previous, &c.request.previous_rows}) {
            *tensor = tensor->defined() ? tensor->to(at::kCUDA) : *tensor;
        }
        auto result = read_out(c.h, c.weights, c.request);
        for (const auto field : head_result_fields) {
            result.*field = (result.*field).defined() ? (result.*field).cpu() : at::Tensor();
        }
        return result;
    };
    for (const std::int64_t vocabulary : {2L, 300L, 5003L}) {
        auto c = make_case(70, vocabulary, 32, 3, 131);
        c.weights.head_bias = normal({vocabulary}, 132);
        c.request.previous_rows = at::arange(70, at::kLong).remainder(2).eq(0);
        for (const std::int64_t top_k : {0L, 1L, 100L}) {
            for (const double temperature : {1.0, 0.7}) {
                c.request.top_k = top_k;
                c.request.temperature = temperature;
                const auto expected = in_double(c);
                const auto got = on_device(c);
                expect_close(got, expected, {5e-6, 3e-5, 3e-5});
                EXPECT_TRUE(at::equal(got.argmax, expected.argmax));
                EXPECT_GE(got.candidate_ids.eq(expected.candidate_ids).to(at::kFloat).mean().item<double>(),
                          0.99);
                EXPECT_LE((got.rank - expected.rank).abs().max().item<std::int64_t>(), 1);
            }
        }
    }
    // Equal logits: all words the same.
    auto equal = make_case(3, 4000, 8, 1, 133);
    equal.weights.head = equal.weights.head.narrow(0, 0, 1).expand({4000, 8}).contiguous();
    const auto got = on_device(equal);
    EXPECT_TRUE(at::equal(got.candidate_ids, std::get<0>(got.candidate_ids.sort(1))));
    EXPECT_EQ(got.rank.max().item<std::int64_t>(), 1);
}

TEST(ReadOut, RefusesWhatDoesNotFit) {
    const auto c = make_case(4, 30, 8, 1, 91);
    const auto with = [&](auto change) {
        auto other = c;
        change(other);
        read_out(other.h, other.weights, other.request);
    };
    EXPECT_THROW(with([](Case& x) { x.h = x.h.narrow(1, 0, 7); }), c10::Error);
    EXPECT_THROW(with([](Case& x) { x.request.targets = x.request.targets.narrow(0, 0, 3); }), c10::Error);
    EXPECT_THROW(with([](Case& x) { x.request.targets = at::full({4}, 30, at::kLong); }), c10::Error);
    EXPECT_THROW(with([](Case& x) { x.request.candidates = 31; }), c10::Error);
    EXPECT_THROW(with([](Case& x) { x.request.temperature = 0; }), c10::Error);
    EXPECT_THROW(with([](Case& x) { x.request.previous = x.request.previous.narrow(0, 0, 3); }), c10::Error);
}

TEST(FullLogits, AreTheProduct) {
    auto c = make_case(6, 90, 12, 2, 95);
    c.weights.head_bias = normal({90}, 96);
    EXPECT_LE(largest_difference(full_logits(c.h, c.weights),
                                 at::addmm(c.weights.head_bias, c.h, c.weights.head.t())),
              1e-5);
}

} // namespace ponderscope
