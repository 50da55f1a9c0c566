// SPDX-License-Identifier: GPL-3.0-or-later
// What is counted (methods.md section 11) against what LibTorch's profiler counts of the same run.
#include "core/policy/flops_model.h"
#include "tests/core/ponder/every_model.h"

#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/profiler/util.h>

#include <cstdio>
#include <set>
#include <string_view>

namespace ponderscope {
namespace {

using namespace testing;

/// The profiler's `with_flops` of matrix products, and the products into a given place that it leaves out;
/// without those of the head and of expected embeddings, which have a side as long as the vocabulary.
std::uint64_t products_of(const at::RecordFunction& function) {
    for (const c10::IValue& input : function.inputs()) {
        if (input.isTensor() && input.toTensor().defined() &&
            std::ranges::count(input.toTensor().sizes(), vocabulary) > 0) {
            return 0;
        }
    }
    static const std::set<std::string> known{"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"};
    if (known.contains(function.name())) {
        return torch::profiler::impl::computeFlops(function.name(),
                                                   torch::profiler::impl::saveExtraArgs(function));
    }
    if (std::string_view(function.name()) == "aten::addmm_") {
        const auto left = function.inputs()[1].toTensor();
        const auto right = function.inputs()[2].toTensor();
        return static_cast<std::uint64_t>(2 * left.size(0) * left.size(1) * right.size(1));
    }
    return 0;
}

class Profiled {
public:
    Profiled() {
        counted = 0;
        inside_attention = 0;
        handle_ = at::addThreadLocalCallback(
            at::RecordFunctionCallback(
                [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
                    inside_attention += is_attention(function);
                    counted += inside_attention > 0 ? 0 : products_of(function);
                    return nullptr;
                },
                [](const at::RecordFunction& function, at::ObserverContext*) {
                    inside_attention -= is_attention(function);
                })
                .needsInputs(true)
                .scopes({at::RecordScope::FUNCTION}));
    }
    ~Profiled() { at::removeCallback(handle_); }
    Profiled(const Profiled&) = delete;
    Profiled& operator=(const Profiled&) = delete;
    inline static thread_local std::uint64_t counted = 0;

private:
    static int is_attention(const at::RecordFunction& function) {
        return std::string_view(function.name()) == "ponderscope::attend" ? 1 : 0;
    }

    inline static thread_local int inside_attention = 0;
    at::CallbackHandle handle_;
};

class Flops : public EveryModel {};

TEST_P(Flops, BlocksAndDecisionsAreWhatTheProfilerCounts) {
    const ModelConfig& config = engine_->config();
    const MethodKind method = config.ponder.method;
    if (method == MethodKind::ponderlm2 || method == MethodKind::ponderlm3) {
        GTEST_SKIP() << "computed in passes over all slots; what decoding costs is counted";
    }
    if (test_device() != "cpu") {
        GTEST_SKIP() << "elsewhere attention, the head and mixtures are products that the profiler sees, too";
    }
    const auto ids = random_ids(30, vocabulary, 51);
    std::uint64_t profiled = 0;
    WindowResult result;
    {
        const Profiled profiler;
        result = scored_alone(*engine_, whole(ids), RecordLevel::nll);
        profiled = Profiled::counted;
    }
    const FlopsModel model = FlopsModel::from_json(engine_->flops_model()).value();
    std::int64_t products = 0; // of blocks, depth mixing and decisions
    std::int64_t total = 0;
    std::int64_t slots = 0;
    for (std::size_t t = 0; t < ids.size(); ++t) {
        const auto last = static_cast<std::size_t>(result.tokens.steps[t]);
        for (std::size_t k = 0; k <= last; ++k) {
            products += model.steps[k] + (k < model.decisions.size() ? model.decisions[k] : 0);
            ++slots;
        }
        total += result.tokens.flops[t];
    }
    std::printf("  profiler %llu, counted %lld of %lld with attention and heads\n",
                static_cast<unsigned long long>(profiled), static_cast<long long>(products),
                static_cast<long long>(total));
    EXPECT_LT(products, total); // which has attention and heads, too
    // Products of attention are left out on both sides. Scores and sums over sources of depth mixing are
    // products of vectors in loops of our own, which no profiler of LibTorch sees.
    std::int64_t mixing = 0;
    switch (config.depth.kind) {
    case DepthMixing::none:
        break;
    case DepthMixing::depth_attention: // 4 g d_h (sources + 1) a layer that has sources
        mixing = products - static_cast<std::int64_t>(profiled);
        EXPECT_GT(mixing, 0);
        EXPECT_LE(mixing, 4 * config.kv_heads * config.head_dim * (config.layers + 1) * config.layers *
                              slots * (config.ponder.max_steps + 1));
        EXPECT_EQ(mixing % (4 * config.kv_heads * config.head_dim), 0);
        break;
    case DepthMixing::mhc: {
        const std::int64_t n = config.depth.streams;
        const std::int64_t d = config.hidden_size;
        // The maps and the mixing of the streams are matrices, and so counted by both.
        mixing = slots * (2 * config.layers * (2 * n * d + 2 * n * d) + 2 * n * d);
        break;
    }
    case DepthMixing::attnres: {
        // block 4, four layers: the aggregations see 2, 2, 3, 3 sources for both sublayers, the last one 4.
        ASSERT_EQ(config.layers, 4);
        ASSERT_EQ(config.depth.block_size, 4);
        mixing = slots * 4 * config.hidden_size * (2 * (2 + 2 + 3 + 3) + 4);
        break;
    }
    case DepthMixing::denseformer: {
        // dilation 2, period 2, four layers: after the second 2 elements, after the fourth 3.
        ASSERT_EQ(config.layers, 4);
        ASSERT_EQ(config.depth.dilation, 2);
        ASSERT_EQ(config.depth.period, 2);
        mixing = slots * 2 * config.hidden_size * (2 + 3);
        break;
    }
    }
    if (config.embed_dim != config.hidden_size) {
        mixing -= slots * 2 * 2 * config.embed_dim *
                  config.hidden_size; // OPT's projections lie outside of the blocks
    }
    // The profiler sees the sum over the likeliest words, which makes the input of each further step.
    mixing -= (slots - static_cast<std::int64_t>(ids.size())) * 2 * config.ponder.top_k * config.embed_dim;
    EXPECT_EQ(static_cast<std::int64_t>(profiled) + mixing, products);
}

INSTANTIATE_TEST_SUITE_P(Models, Flops, ::testing::Range<std::size_t>(0, subjects().size()),
                         [](const auto& one) { return std::string(subjects().at(one.param).name); });

} // namespace
} // namespace ponderscope
