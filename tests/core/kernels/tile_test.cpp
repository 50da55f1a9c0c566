// SPDX-License-Identifier: GPL-3.0-or-later
// What attention on the CPU is made of: loops over tiles.
#include "core/kernels/cpu/tile.h"
#include "tests/core/kernels/head_cases.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ponderscope {

namespace {

using testing::infinity;
using testing::nan;
using testing::normal;

TEST(TileKernels, EverySetOfThisProcessorAgrees) {
    int sets = 0;
    for (const char* name : {"baseline", "avx2"}) {
        const auto* k = kernels::tile_kernels(name);
        if (k == nullptr) {
            continue;
        }
        SCOPED_TRACE(name);
        ++sets;
        // exp: every float of a fine grid, against double.
        std::vector<float> x;
        for (double v = 0; v > -87.3; v -= 1.7e-4) {
            x.push_back(static_cast<float>(v));
        }
        std::vector<float> e(x.size());
        k->exponential(x.data(), static_cast<std::int64_t>(x.size()), e.data());
        double worst = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double exact = std::exp(static_cast<double>(x[i]));
            worst = std::max(worst, std::abs(e[i] - exact) / exact);
        }
        EXPECT_LE(worst, 1.5 * 0x1p-23);
        const std::vector<float> odd = {static_cast<float>(nan), static_cast<float>(-infinity), -88.0F,
                                        -3e38F, 0.0F};
        std::vector<float> out(odd.size());
        k->exponential(odd.data(), 5, out.data());
        EXPECT_TRUE(std::isnan(out[0]));
        EXPECT_EQ(out[1], 0);
        EXPECT_EQ(out[2], 0);
        EXPECT_EQ(out[3], 0);
        EXPECT_EQ(out[4], 1);
        for (int vectors = 1; vectors <= k->max_vectors; ++vectors) {
            const std::int64_t width = static_cast<std::int64_t>(k->lanes) * vectors;
            const std::int64_t rows = 37;
            const std::int64_t depth = 21;
            const auto table = normal({rows, depth}, 1);
            const auto queries = normal({depth, width}, 2);
            const auto bias = normal({rows}, 3);
            auto tile = at::empty({rows, width});
            k->product(table.const_data_ptr<float>(), depth, rows, depth, queries.const_data_ptr<float>(),
                       vectors, tile.data_ptr<float>(), bias.const_data_ptr<float>());
            EXPECT_LE((tile - at::addmm(bias.unsqueeze(1), table, queries)).abs().max().item<double>(), 2e-5);
            auto mixed = normal({depth, width}, 4);
            const auto expected = mixed + at::mm(table.t(), tile);
            k->mix(table.const_data_ptr<float>(), depth, rows, depth, tile.const_data_ptr<float>(), vectors,
                   mixed.data_ptr<float>());
            EXPECT_LE((mixed - expected).abs().max().item<double>(), 2e-4);
        }
        std::vector<float> wide(9);
        std::vector<std::uint16_t> halves;
        const auto source =
            at::tensor({0.0, -0.0, 1.5, -2.25, 65504.0, 6e-8, 3e-5, infinity, -infinity}, at::kFloat);
        const auto half = source.to(at::kHalf);
        k->widen_f16(static_cast<const std::uint16_t*>(half.const_data_ptr()), 9, wide.data());
        EXPECT_TRUE(at::equal(at::tensor(wide), half.to(at::kFloat)));
        const auto brain = source.to(at::kBFloat16);
        k->widen_bf16(static_cast<const std::uint16_t*>(brain.const_data_ptr()), 9, wide.data());
        EXPECT_TRUE(at::equal(at::tensor(wide), brain.to(at::kFloat)));
    }
    EXPECT_GE(sets, 1);
}

} // namespace

} // namespace ponderscope
