// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/depth_mix.h"

#include "tests/core/kernels/cuda/kernel_cases.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace ponderscope::kernels {

namespace {

using namespace testing;

/// One call with all its memory.
struct Mixing {
    Element element = Element::f32;
    std::int64_t rows = 1, kv_heads = 1, group = 1, head_size = 1;
    bool in_place = false;
    Numbers q, k, v, out;
    std::vector<Numbers> keys, values; ///< of the sources
    std::vector<float> weights;        ///< empty: nobody listens

    const char* run() {
        DepthMix a;
        out = in_place ? v : Numbers(element, v.count(), nan);
        a.q = q.data();
        a.k = k.data();
        a.v = in_place ? out.data() : v.data();
        a.out = out.data();
        a.weights = weights.empty() ? nullptr : weights.data();
        for (std::size_t i = 0; i < keys.size(); ++i) {
            a.source_keys[i] = keys[i].data();
            a.source_values[i] = values[i].data();
        }
        a.sources = static_cast<std::int64_t>(keys.size());
        a.rows = rows;
        a.query_heads = kv_heads * group;
        a.kv_heads = kv_heads;
        a.head_size = head_size;
        a.element = element;
        return depth_mix_cuda(a, nullptr);
    }

    /// The largest excess over all values, and over all weights.
    [[nodiscard]] std::pair<double, double> worst() const {
        std::pair<double, double> most = {0, 0};
        const auto count = keys.size() + 1;
        for (std::int64_t place = 0; place < rows * kv_heads; ++place) {
            std::vector<double> alpha;
            for (std::size_t s = 0; s < count; ++s) {
                const Numbers& key = s < keys.size() ? keys[s] : k;
                double dot = 0;
                for (std::int64_t e = 0; e < head_size; ++e) {
                    double mean = 0;
                    for (std::int64_t j = 0; j < group; ++j) {
                        mean += q[(place * group + j) * head_size + e];
                    }
                    dot += mean / static_cast<double>(group) * key[place * head_size + e];
                }
                alpha.push_back(dot / std::sqrt(static_cast<double>(head_size)));
            }
            softmax(alpha);
            for (std::size_t s = 0; s < count && !weights.empty(); ++s) {
                const auto got = weights[static_cast<std::size_t>(place) * count + s];
                most.second = std::max(most.second, excess(static_cast<double>(got), alpha[s], Element::f32));
            }
            for (std::int64_t e = 0; e < head_size; ++e) {
                const double expected = softmax_sum(alpha, [&](std::size_t s) {
                    return (s < values.size() ? values[s] : v)[place * head_size + e];
                });
                most.first = std::max(most.first, excess(out[place * head_size + e], expected, element));
            }
        }
        return most;
    }
};

Mixing make_mixing(Random& random, Element element, std::int64_t head_size, std::int64_t sources,
                   bool want_weights) {
    Mixing m;
    m.element = element;
    m.head_size = head_size;
    m.rows = 1 + random.below(5);
    m.kv_heads = 1 + random.below(3);
    m.group = 1 + random.below(3);
    m.in_place = random.one_of(2);
    const auto fill = [&](std::int64_t heads) {
        Numbers numbers(element, m.rows * heads * head_size, 0);
        for (std::int64_t i = 0; i < numbers.count(); ++i) {
            numbers.set(i, random.normal());
        }
        return numbers;
    };
    m.q = fill(m.kv_heads * m.group);
    m.k = fill(m.kv_heads);
    m.v = fill(m.kv_heads);
    for (std::int64_t s = 0; s < sources; ++s) {
        m.keys.push_back(fill(m.kv_heads));
        m.values.push_back(fill(m.kv_heads));
    }
    if (want_weights) {
        m.weights.assign(static_cast<std::size_t>(m.rows * m.kv_heads * (sources + 1)), nan);
    }
    return m;
}

} // namespace

TEST(DepthMixKernel, EveryHeadSizeSourceCountAndDtype) {
    Random random(11);
    int shapes = 0;
    for (const Element element : elements) {
        double worst_value = 0;
        double worst_weight = 0;
        const auto check = [&](std::int64_t head_size, std::int64_t sources, bool want_weights) {
            auto m = make_mixing(random, element, head_size, sources, want_weights);
            host_cuda::set_order(orders[static_cast<std::size_t>(shapes++ % 3)], random.seed());
            ASSERT_EQ(m.run(), nullptr);
            const auto [value, weight] = m.worst();
            worst_value = std::max(worst_value, value);
            worst_weight = std::max(worst_weight, weight);
            ASSERT_LE(value, 2e-6) << name_of(element) << ", head size " << head_size << ", " << sources
                                   << " sources";
            ASSERT_LE(weight, 1e-6) << name_of(element) << ", head size " << head_size << ", " << sources
                                    << " sources";
        };
        for (std::int64_t round = 0; round < 160; round += shape_step) {
            check(8 * (1 + round % 32), random.below(12), random.one_of(2));
        }
        for (std::int64_t sources = 0; sources < 64; sources += shape_step) {
            for (const bool want_weights : {false, true}) {
                check(8 * (1 + random.below(32)), sources, want_weights);
            }
        }
        check(40, most_depth_sources, true);
        std::printf("%s: largest error beyond rounding %.1e, of a weight %.1e\n", name_of(element),
                    worst_value, worst_weight);
    }
    RecordProperty("shapes", shapes);
}

TEST(DepthMixKernel, AnyOrderOfLanesGivesTheSameBits) {
    Random random(12);
    for (int round = 0; round < 40; ++round) {
        auto m = make_mixing(random, elements[static_cast<std::size_t>(round % 3)],
                             8 * (1 + random.below(32)), random.below(20), true);
        host_cuda::set_order(host_cuda::Order::forward);
        ASSERT_EQ(m.run(), nullptr);
        const auto out = m.out.bytes();
        const auto weights = m.weights;
        for (const auto order : {host_cuda::Order::backward, host_cuda::Order::shuffled}) {
            host_cuda::set_order(order, random.seed());
            ASSERT_EQ(m.run(), nullptr);
            EXPECT_EQ(m.out.bytes(), out);
            EXPECT_EQ(m.weights, weights);
        }
    }
}

TEST(DepthMixKernel, InfinitiesAndNaN) {
    Random random(13);
    host_cuda::set_order(host_cuda::Order::shuffled, 13);
    for (int round = 0; round < 120; ++round) {
        const auto sources = 1 + random.below(9);
        auto m = make_mixing(random, elements[static_cast<std::size_t>(round % 3)],
                             8 * (1 + random.below(32)), sources, true);
        const float values[] = {-infinity, infinity, nan};
        // One element of a source's key in one place; the other places stay as they are.
        const auto place = random.below(m.rows * m.kv_heads);
        m.keys[static_cast<std::size_t>(random.below(sources))].set(
            place * m.head_size + random.below(m.head_size), values[round % 3]);
        if (round % 4 == 0) { // nothing weighs anything there, or everything is infinite
            for (auto& key : m.keys) {
                key.set(place * m.head_size, -infinity);
            }
            m.k.set(place * m.head_size, -infinity);
        }
        ASSERT_EQ(m.run(), nullptr);
        const auto [value, weight] = m.worst();
        EXPECT_LE(value, 2e-6) << "round " << round;
        EXPECT_LE(weight, 1e-6) << "round " << round;
    }
}

TEST(DepthMixKernel, RefusesWhatDoesNotFit) {
    Random random(14);
    auto m = make_mixing(random, Element::f32, 8, 2, false);
    for (const std::int64_t size : {0, 12, 264}) {
        m.head_size = size;
        EXPECT_STREQ(m.run(), "more elements, sources or rows than the kernel takes");
    }
    m.head_size = 8;
    m.rows = 0;
    EXPECT_EQ(m.run(), nullptr);
}

} // namespace ponderscope::kernels
