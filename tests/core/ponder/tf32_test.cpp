// SPDX-License-Identifier: GPL-3.0-or-later
// Products of rounded fp32 where they are asked for and nowhere else, on a device that rounds as a GPU does.
#include "core/model/device.h"
#include "tests/core/ponder/every_model.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace ponderscope {
namespace {

using namespace testing;

std::vector<float> nll_of(const Engine& engine) {
    const auto ids = random_ids(24, vocabulary, 31);
    auto nll = scored_alone(engine, whole(ids), RecordLevel::steps).tokens.nll;
    nll.pop_back();
    return nll;
}

class Tf32 : public ::testing::TestWithParam<std::size_t> {
protected:
    void SetUp() override {
        const Subject subject = subjects().at(GetParam());
        checkpoint_ =
            std::make_unique<Checkpoint>(make_checkpoint(folder_.path(), subject.config, 1, subject.method));
    }
    [[nodiscard]] Engine load(const std::string& device, Precision precision) const {
        return Engine::load(*checkpoint_, {.device = device, .precision = precision});
    }
    TemporaryFolder folder_;
    std::unique_ptr<Checkpoint> checkpoint_;
};

TEST_P(Tf32, RoundsTheProductsOfItsEngineAlone) {
    const Engine exact = load(testing::test_accelerator(), Precision::float32);
    const auto before = nll_of(exact);
    const Engine rounding = load(testing::test_accelerator(), Precision::tf32);
    const auto rounded = nll_of(rounding);
    EXPECT_EQ(nll_of(exact), before) << "another engine's switch is not its";
    EXPECT_EQ(nll_of(rounding), rounded);
    EXPECT_FALSE(at::globalContext().allowTF32CuBLAS()) << "as it was before";
    std::vector<double> gaps;
    for (std::size_t t = 0; t < before.size(); ++t) {
        gaps.push_back(std::abs(static_cast<double>(rounded[t]) - static_cast<double>(before[t])));
    }
    // The first tokens, where latents carry a rounding on; of them the middle one, as single ones may take
    // another decision.
    gaps.resize(5);
    std::sort(gaps.begin(), gaps.end());
    EXPECT_GT(gaps.back(), 0.0);
    EXPECT_LE(gaps[2], 100 * 0x1p-11);
}

INSTANTIATE_TEST_SUITE_P(Models, Tf32, ::testing::Range(std::size_t{0}, subjects().size()),
                         [](const auto& one) { return subjects().at(one.param).name; });

TEST(Tf32OfTheProcess, DecisionsAndOthersStayExact) {
    const auto allowed = [] { return at::globalContext().allowTF32CuBLAS(); };
    const GpuProducts rounded(Precision::tf32);
    EXPECT_TRUE(allowed());
    {
        const GpuProducts exact(Precision::float32);
        EXPECT_FALSE(allowed());
        const GpuProducts halves(Precision::bfloat16);
        EXPECT_FALSE(allowed());
    }
    EXPECT_TRUE(allowed());
    EXPECT_EQ(at::globalContext().allowBF16ReductionCuBLAS(),
              at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK);
    EXPECT_EQ(at::globalContext().allowFP16ReductionCuBLAS(),
              at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK);
}

TEST(Tf32OfTheProcess, AProcessorComputesTheSameAndSaysSo) {
    const TemporaryFolder folder;
    const Subject subject = subjects().front();
    const Checkpoint checkpoint = make_checkpoint(folder.path(), subject.config, 1, subject.method);
    LoadOptions options;
    const Engine exact = Engine::load(checkpoint, options);
    options.precision = Precision::tf32;
    const Engine rounding = Engine::load(checkpoint, options);
    EXPECT_EQ(nll_of(rounding), nll_of(exact));
    EXPECT_EQ(std::ranges::count(rounding.notices(), NoticeId::device_precision, &Notice::id), 1);
}

} // namespace
} // namespace ponderscope
