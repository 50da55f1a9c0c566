// SPDX-License-Identifier: GPL-3.0-or-later
// What the CPU's read-out is made of: loops over tiles, and the shares of its threads.
#include "core/model/head_shares.h"
#include "core/model/kernels/tile.h"
#include "tests/core/model/head_cases.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ponderscope {

namespace {

using testing::infinity;
using testing::nan;
using testing::normal;

TEST(TileKernels, AFewRowsAreTheSameBesideAnyOthers) {
    for (const char* name : {"baseline", "avx2", "avx512", "avx512_bf16"}) {
        const auto* k = kernels::tile_kernels(name);
        if (k == nullptr) {
            continue;
        }
        SCOPED_TRACE(name);
        for (const std::int64_t depth : {1, 6, 32, 100, 5000}) {
            const std::int64_t rows = 77;
            const std::int64_t count = 11;
            const auto table = normal({rows, depth + 3}, 1); // rows lie apart
            const auto x = normal({count, depth + 2}, 2);
            const auto bias = normal({rows}, 3);
            const auto before = normal({count, rows}, 4);
            const auto exact = before.to(at::kDouble) + bias.to(at::kDouble) +
                               0.5 * x.narrow(1, 0, depth)
                                         .to(at::kDouble)
                                         .matmul(table.narrow(1, 0, depth).to(at::kDouble).t());
            auto together = before.clone();
            const auto dots = [&](std::int64_t first, std::int64_t some, at::Tensor& out) {
                k->dots(table.const_data_ptr<float>(), depth + 3, rows, depth,
                        x.const_data_ptr<float>() + first * (depth + 2), depth + 2, some, 0.5F,
                        bias.const_data_ptr<float>(), out.mutable_data_ptr<float>() + first * rows, rows,
                        true);
            };
            dots(0, count, together);
            EXPECT_LE((together - exact).abs().max().item<double>(), 2e-6 * std::sqrt(depth) + 1e-6);
            auto alone = before.clone();
            for (std::int64_t j = 0; j < count; ++j) {
                dots(j, 1, alone);
            }
            EXPECT_TRUE(at::equal(together, alone));
            auto mixed = at::empty({depth});
            const auto weights = normal({rows}, 5);
            k->weigh(table.const_data_ptr<float>(), depth + 3, rows, depth, weights.const_data_ptr<float>(),
                     mixed.mutable_data_ptr<float>());
            const auto sum = table.narrow(1, 0, depth).to(at::kDouble).t().mv(weights.to(at::kDouble));
            EXPECT_LE((mixed - sum).abs().max().item<double>(), 2e-5);
        }
    }
}

TEST(TileKernels, EverySetOfThisProcessorAgrees) {
    int sets = 0;
    for (const char* name : {"baseline", "avx2", "avx512", "avx512_bf16"}) {
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

/// Shares are whole, in order, and none has much more than its part: fewer tokens must be less work for the
/// slowest thread too.
TEST(Head, ThreadsShareTheWorkEvenly) {
    const auto slowest = [](std::int64_t tokens, std::int64_t chunks, std::int64_t threads) {
        const HeadShares shares = share_head(tokens, chunks, 16, 4, 4, threads);
        const std::int64_t block = shares.groups_per_block * 64;
        const std::int64_t blocks = (tokens + block - 1) / block;
        EXPECT_EQ(static_cast<std::int64_t>(shares.ends.size()), threads);
        EXPECT_EQ(shares.ends.back(), blocks * chunks);
        EXPECT_TRUE(shares.groups_per_block >= 2 && shares.groups_per_block <= 4);
        std::int64_t begin = 0;
        std::int64_t most = 0;
        for (const std::int64_t end : shares.ends) {
            EXPECT_GE(end, begin);
            std::int64_t work = 0;
            for (; begin < end; ++begin) {
                work += std::min(block, tokens - begin / chunks * block);
            }
            most = std::max(most, work);
        }
        return most;
    };
    for (const std::int64_t threads : {1, 2, 3, 7, 16}) {
        for (const std::int64_t chunks : {1, 2, 25}) {
            for (const std::int64_t tokens : {1, 63, 64, 65, 500, 922, 1024, 3686, 4096}) {
                EXPECT_LE(slowest(tokens, chunks, threads), tokens * chunks / threads + 256)
                    << tokens << " tokens, " << chunks << " chunks, " << threads << " threads";
            }
        }
    }
    EXPECT_LE(slowest(922, 2, 2), 960) << "of 1,844: as evenly as groups of 64 allow";
    EXPECT_EQ(slowest(1024, 2, 2), 1024);
}

} // namespace

} // namespace ponderscope
