// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/rotate_rows.h"

#include "tests/core/kernels/cuda/kernel_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace ponderscope::kernels {

namespace {

using namespace testing;

/// One call with all its memory; rows of `out` that nothing goes to stay NaN.
struct Rotation {
    RotateRows a;
    Numbers x, out;
    std::vector<float> cos, sin;
    std::vector<std::int64_t> rows, places;
    std::int64_t out_rows = 0;

    /// whole_chunks: sizes and strides that are multiples of eight, as most models have them.
    Rotation(Random& random, Element element, std::int64_t size, bool whole_chunks = false) {
        a.element = element;
        a.size = size;
        a.n = 1 + random.below(6);
        a.heads = 1 + random.below(4);
        a.half = random.below(size / 2 + 1);
        a.neighbours = random.one_of(2);
        a.head_stride = size + random.below(3);
        a.row_stride = a.heads * a.head_stride + random.below(5);
        if (whole_chunks) {
            a.half = 8 * random.below(size / 16 + 1);
            a.neighbours = false;
            a.head_stride = size + 8 * random.below(2);
            a.row_stride = a.heads * a.head_stride + 8 * random.below(3);
        }
        x = Numbers(element, (a.n - 1) * a.row_stride + (a.heads - 1) * a.head_stride + size, 0);
        for (std::int64_t i = 0; i < x.count(); ++i) {
            x.set(i, random.normal());
        }
        const std::int64_t angles = 1 + random.below(9);
        for (std::int64_t i = 0; i < angles * a.half; ++i) {
            const float angle = 3 * random.normal();
            cos.push_back(std::cos(angle));
            sin.push_back(std::sin(angle));
        }
        for (std::int64_t i = 0; i < a.n; ++i) {
            rows.push_back(random.below(angles));
        }
        out_rows = a.n;
        if (random.one_of(2)) {
            out_rows = a.n + random.below(5);
            places.resize(static_cast<std::size_t>(out_rows));
            std::iota(places.begin(), places.end(), 0);
            for (std::size_t i = places.size(); i > 1; --i) {
                std::swap(places[i - 1],
                          places[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
            }
            places.resize(static_cast<std::size_t>(a.n));
        }
        out = Numbers(element, out_rows * a.heads * size, nan);
    }

    const char* run() {
        a.x = x.data();
        a.out = out.data();
        a.cos = a.half > 0 ? cos.data() : nullptr;
        a.sin = a.half > 0 ? sin.data() : nullptr;
        a.rows = a.half > 0 ? rows.data() : nullptr;
        a.places = places.empty() ? nullptr : places.data();
        return rotate_rows_cuda(a, nullptr);
    }

    /// The largest excess over all elements of `out`.
    [[nodiscard]] double worst() const {
        std::vector<double> expected(static_cast<std::size_t>(out.count()), static_cast<double>(nan));
        for (std::int64_t i = 0; i < a.n; ++i) {
            const std::int64_t place = places.empty() ? i : places[static_cast<std::size_t>(i)];
            for (std::int64_t h = 0; h < a.heads; ++h) {
                const auto from = [&](std::int64_t e) { return x[i * a.row_stride + h * a.head_stride + e]; };
                for (std::int64_t e = 0; e < a.size; ++e) {
                    const bool turns = e < 2 * a.half;
                    const std::int64_t j = a.neighbours ? e / 2 : e % std::max<std::int64_t>(a.half, 1);
                    const bool second = a.neighbours ? e % 2 == 1 : e >= a.half;
                    const std::int64_t apart = a.neighbours ? 1 : a.half;
                    double value = from(e);
                    if (turns) {
                        const auto at =
                            static_cast<std::size_t>(rows[static_cast<std::size_t>(i)] * a.half + j);
                        const auto c = static_cast<double>(cos[at]);
                        const auto s = static_cast<double>(sin[at]);
                        value =
                            second ? from(e) * c + from(e - apart) * s : from(e) * c - from(e + apart) * s;
                    }
                    expected[static_cast<std::size_t>((place * a.heads + h) * a.size + e)] = value;
                }
            }
        }
        double most = 0;
        for (std::int64_t i = 0; i < out.count(); ++i) {
            most = std::max(most, excess(out[i], expected[static_cast<std::size_t>(i)], a.element));
        }
        return most;
    }
};

} // namespace

TEST(RotateKernel, EveryHeadSizeAndDtype) {
    Random random(21);
    int shapes = 0;
    for (const Element element : elements) {
        for (std::int64_t size = 1; size <= 256; size += shape_step) {
            for (int round = 0; round < 3; ++round) {
                Rotation rotation(random, element, size);
                host_cuda::set_order(orders[static_cast<std::size_t>(shapes++ % 3)], random.seed());
                ASSERT_EQ(rotation.run(), nullptr);
                ASSERT_LE(rotation.worst(), 1e-6)
                    << name_of(element) << ", head size " << size << ", half " << rotation.a.half
                    << (rotation.a.neighbours ? ", neighbours" : "");
            }
        }
    }
    RecordProperty("shapes", shapes);
}

TEST(RotateKernel, RowsOfWholeChunks) {
    Random random(23);
    for (const Element element : elements) {
        for (std::int64_t size = 8; size <= 256; size += 8) {
            for (int round = 0; round < 4; ++round) {
                Rotation rotation(random, element, size, true);
                host_cuda::set_order(orders[static_cast<std::size_t>(round % 3)], random.seed());
                ASSERT_EQ(rotation.run(), nullptr);
                ASSERT_LE(rotation.worst(), 1e-6)
                    << name_of(element) << ", head size " << size << ", half " << rotation.a.half;
            }
        }
    }
}

TEST(RotateKernel, NothingToTurn) {
    Random random(22);
    Rotation rotation(random, Element::f16, 8);
    rotation.a.n = 0;
    EXPECT_EQ(rotation.run(), nullptr);
    EXPECT_TRUE(std::isnan(rotation.out[0]));
}

} // namespace ponderscope::kernels
