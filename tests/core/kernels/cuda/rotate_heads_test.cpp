// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/rotate_heads.h"

#include "tests/core/kernels/cuda/kernel_cases.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ponderscope::kernels {
namespace {

using namespace testing;

/// One call with all its memory.
struct Rotation {
    RotateHeads a;
    Numbers x, out;
    std::vector<float> cos, sin;
    std::vector<std::int64_t> rows;

    /// whole_chunks: sizes and strides that are multiples of eight, as most models have them.
    Rotation(Random& random, Element element, std::int64_t size, bool whole_chunks) {
        a.element = element;
        a.size = size;
        a.n = 1 + random.below(6);
        a.heads = 1 + random.below(4);
        const std::int64_t unit = whole_chunks ? chunk : 1;
        a.half = unit * random.below(size / (2 * unit) + 1);
        a.neighbours = !whole_chunks && random.one_of(2);
        a.head_stride = size + unit * random.below(3);
        a.row_stride = a.heads * a.head_stride + unit * random.below(5);
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
        out = Numbers(element, a.n * a.heads * size, nan);
    }

    const char* run() {
        a.x = x.data();
        a.out = out.data();
        a.cos = cos.data();
        a.sin = sin.data();
        a.rows = rows.data();
        return rotate_heads_cuda(a, nullptr);
    }

    /// The largest excess over all elements of `out`.
    [[nodiscard]] double worst() const {
        double most = 0;
        for (std::int64_t place = 0; place < out.count(); ++place) {
            const std::int64_t e = place % a.size, head = place / a.size % a.heads,
                               row = place / a.size / a.heads;
            const auto from = [&](std::int64_t i) {
                return x[row * a.row_stride + head * a.head_stride + i];
            };
            const std::int64_t pair = a.neighbours ? e / 2 : e % std::max<std::int64_t>(a.half, 1);
            const bool second = a.neighbours ? e % 2 == 1 : e >= a.half;
            const std::int64_t apart = a.neighbours ? 1 : a.half;
            double value = from(e);
            if (e < 2 * a.half) {
                const auto at = static_cast<std::size_t>(rows[static_cast<std::size_t>(row)] * a.half + pair);
                const double c = cos[at], s = sin[at];
                value = second ? from(e) * c + from(e - apart) * s : from(e) * c - from(e + apart) * s;
            }
            most = std::max(most, excess(out[place], value, a.element));
        }
        return most;
    }
};

TEST(RotateKernel, EveryHeadSizeAndDtype) {
    Random random(21);
    int shapes = 0;
    for (const Element element : elements) {
        for (std::int64_t size = 1; size <= 256; size += size < 20 ? 1 : 13) {
            for (const bool whole_chunks : {false, true}) {
                const std::int64_t rounded = whole_chunks ? (size + 7) / 8 * 8 : size;
                Rotation rotation(random, element, rounded, whole_chunks);
                host_cuda::set_order(orders[static_cast<std::size_t>(shapes++ % 3)], random.seed());
                ASSERT_EQ(rotation.run(), nullptr);
                ASSERT_LE(rotation.worst(), 1e-6)
                    << name_of(element) << ", head size " << rounded << ", half " << rotation.a.half
                    << (rotation.a.neighbours ? ", neighbours" : "");
            }
        }
    }
    host_cuda::set_order(host_cuda::Order::forward);
}

} // namespace
} // namespace ponderscope::kernels
