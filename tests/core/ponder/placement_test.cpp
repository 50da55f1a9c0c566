// SPDX-License-Identifier: GPL-3.0-or-later
// Where the blocks of a model go; that a model computes the same there is shown by the golden tests over two
// devices.
#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/model/device.h"
#include "core/model/parameters.h"
#include "core/model/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace ponderscope {
namespace {

/// Tables of so many elements, and blocks.
ParameterLayout layout_of(std::int64_t tables, const std::vector<std::int64_t>& blocks) {
    ParameterLayout layout;
    layout.embedding = "embed";
    layout.head = "head";
    layout.tied = true;
    layout.tensors = {{"embed", {tables}}, {"head", {tables}}};
    for (std::size_t l = 0; l < blocks.size(); ++l) {
        layout.blocks.push_back("blocks." + std::to_string(l) + ".");
        layout.tensors.push_back({layout.blocks.back() + "weight", {blocks[l]}});
    }
    return layout;
}

const char* const both = "hostgpu:0,hostgpu:1";

std::int64_t on_the_first(const Placement& placement, std::int64_t blocks) {
    std::int64_t count = 0;
    for (std::int64_t l = 0; l < blocks; ++l) {
        count += placement.of(l) == placement.home() ? 1 : 0;
    }
    return count;
}

TEST(Placement, BlocksGoInOrderSoThatEachDeviceHoldsAboutTheSame) {
    const Placement placement = Placement::of(both, layout_of(20, {10, 10, 10, 10, 10, 10}), at::kFloat);
    EXPECT_EQ(on_the_first(placement, 6), 2) << "the tables lie there, too";
    EXPECT_EQ(placement.of(-1), placement.home());
    EXPECT_EQ(placement.text(), "hostgpu:0 (blocks 0 to 1) and hostgpu:1 (blocks 2 to 5)");
    EXPECT_EQ(on_the_first(Placement::of(both, layout_of(500, {10, 10, 10}), at::kFloat), 3), 1)
        << "tables that are most of the model leave one block beside them";

    for (std::uint64_t draw = 0; draw < 300; ++draw) {
        std::vector<std::int64_t> blocks(2 + bounded(splitmix64(draw, 0), 12));
        for (std::size_t l = 0; l < blocks.size(); ++l) {
            blocks[l] = 1 + static_cast<std::int64_t>(bounded(splitmix64(draw, l + 1), 50));
        }
        const auto tables = static_cast<std::int64_t>(bounded(splitmix64(draw, 99), 100));
        const Placement drawn = Placement::of(both, layout_of(tables, blocks), at::kFloat);
        const auto count = static_cast<std::int64_t>(blocks.size());
        const std::int64_t first = on_the_first(drawn, count);
        ASSERT_GE(first, 1);
        ASSERT_LT(first, count);
        for (std::int64_t l = 0; l < count; ++l) {
            ASSERT_EQ(drawn.of(l) == drawn.home(), l < first) << "in order";
        }
        const auto sum = [&](std::int64_t from, std::int64_t to) {
            return std::accumulate(blocks.begin() + from, blocks.begin() + to, std::int64_t{0});
        };
        const auto apart = [&](std::int64_t split) {
            return std::abs(tables + sum(0, split) - sum(split, count));
        };
        for (std::int64_t split = 1; split < count; ++split) {
            ASSERT_LE(apart(first), apart(split)) << "no other place divides them better, draw " << draw;
        }
    }
}

TEST(Placement, OneDeviceHoldsEverything) {
    const ParameterLayout layout = layout_of(5, {1, 2});
    for (const char* const name : {"cpu", "hostgpu", "hostgpu:1"}) {
        const Placement placement = Placement::of(name, layout, at::kFloat);
        EXPECT_EQ(placement.of(1), placement.home());
        EXPECT_EQ(placement.devices().size(), 1U);
        EXPECT_EQ(placement.text(), device_from_string(name).str());
    }
    EXPECT_EQ(Placement::of("auto", layout, at::kFloat).home().is_cpu(), !has_cuda_gpu());
}

TEST(Placement, WrongDevicesAreOneSentence) {
    const ParameterLayout layout = layout_of(5, {1});
    const auto refusal = [&](const std::string& devices) -> std::string {
        try {
            (void)Placement::of(devices, layout, at::kFloat);
        } catch (const InputError& error) {
            return error.what();
        }
        return "taken";
    };
    EXPECT_NE(refusal("hostgpu:0,hostgpu").find("names hostgpu:0 twice"), std::string::npos);
    EXPECT_NE(refusal("hostgpu:0,hostgpu:1").find("2 devices, and this model has 1 blocks"),
              std::string::npos);
    EXPECT_NE(refusal("hostgpu:0,cpu").find("not between them and the CPU"), std::string::npos);
    EXPECT_NE(refusal("hostgpu:7").find("this machine has 2 GPUs"), std::string::npos);
    EXPECT_NE(refusal(",").find("is not known"), std::string::npos);
    EXPECT_NE(refusal("hostgpu:").find("is not known"), std::string::npos);
    EXPECT_NE(refusal("hostgpu:-1").find("is not known"), std::string::npos);
}

} // namespace
} // namespace ponderscope
