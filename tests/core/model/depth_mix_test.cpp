// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/depth_mix.h"

#include "core/model/depth_sources.h"
#include "tests/support/poison.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

struct Inputs {
    at::Tensor q, k, v;
    std::vector<DepthSource> sources;
};

Inputs inputs(std::int64_t n, std::int64_t query_heads, std::int64_t heads, std::int64_t size,
              std::int64_t sources, at::ScalarType dtype) {
    at::manual_seed(static_cast<std::uint64_t>(n * 31 + sources));
    const auto draw = [&](std::int64_t h) { return (at::randn({n, h, size}) * 1.5).to(dtype); };
    Inputs made{draw(query_heads), draw(heads), draw(heads), {}};
    for (std::int64_t s = 0; s < sources; ++s) {
        made.sources.push_back({draw(heads), draw(heads)});
    }
    return made;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) - b.to(at::kDouble)).abs().nan_to_num(1e9).max().item<double>();
}

/// The equations of methods.md section 3, one number after the other, in fp64.
DepthMixed by_the_book(const Inputs& in) {
    const at::Tensor q = in.q.to(at::kDouble);
    const std::int64_t heads = in.k.size(1);
    const std::int64_t size = in.k.size(2);
    const std::int64_t group = q.size(1) / heads;
    const auto count = static_cast<std::int64_t>(in.sources.size()) + 1;
    DepthMixed result{at::zeros(in.v.sizes(), at::kDouble),
                      at::zeros({q.size(0), heads, count}, at::kDouble)};
    for (std::int64_t n = 0; n < q.size(0); ++n) {
        for (std::int64_t g = 0; g < heads; ++g) {
            std::vector<at::Tensor> values;
            std::vector<double> e;
            const at::Tensor mean = q[n].narrow(0, g * group, group).mean(0);
            for (std::int64_t s = 0; s < count; ++s) {
                const bool own = s + 1 == count;
                const DepthSource source =
                    own ? DepthSource{in.k, in.v} : in.sources[static_cast<std::size_t>(s)];
                e.push_back(mean.dot(source.key[n][g].to(at::kDouble)).item<double>() /
                            std::sqrt(static_cast<double>(size)));
                values.push_back(source.value[n][g].to(at::kDouble));
            }
            double total = 0;
            for (const double score : e) {
                total += std::exp(score);
            }
            for (std::int64_t s = 0; s < count; ++s) {
                const double alpha = std::exp(e[static_cast<std::size_t>(s)]) / total;
                result.weights[n][g][s] = alpha;
                result.value[n][g] += alpha * values[static_cast<std::size_t>(s)];
            }
        }
    }
    return result;
}

TEST(DepthMix, FollowsTheEquations) {
    const testing::Poison poison;
    for (const auto& [dtype, tolerance] :
         {std::pair{at::kFloat, 1e-5}, std::pair{at::kBFloat16, 2e-2}, std::pair{at::kHalf, 3e-3}}) {
        for (const std::int64_t size : {1, 6, 32, 50, 64, 128, 200}) {
            for (const std::int64_t sources : {0, 1, 3, 4, 9, 130}) {
                SCOPED_TRACE(std::to_string(sources) + " sources, heads of " + std::to_string(size));
                const Inputs in = inputs(7, 6, 3, size, sources, dtype);
                const DepthMixed expected = by_the_book(in);
                const DepthMixed mixed = depth_mix(in.q, in.k, in.v, in.sources, true);
                ASSERT_EQ(mixed.value.scalar_type(), dtype);
                ASSERT_EQ(mixed.weights.scalar_type(), at::kFloat);
                EXPECT_LE(largest_difference(mixed.value, expected.value), tolerance);
                // The softmax is fp32 in every dtype.
                EXPECT_LE(largest_difference(mixed.weights, expected.weights), 1e-5);
                const DepthMixed quiet = depth_mix(in.q, in.k, in.v, in.sources, false);
                EXPECT_FALSE(quiet.weights.defined());
                EXPECT_TRUE(at::equal(quiet.value, mixed.value));
            }
        }
    }
}

TEST(DepthMix, HeadsOfNoSizeWeighAllAlike) {
    const Inputs in = inputs(5, 2, 1, 0, 3, at::kFloat);
    const DepthMixed mixed = depth_mix(in.q, in.k, in.v, in.sources, true);
    EXPECT_EQ(mixed.value.sizes(), in.v.sizes());
    EXPECT_TRUE(at::equal(mixed.weights, at::full({5, 1, 4}, 0.25)));
}

TEST(DepthMix, ASlotIsMixedByItself) {
    const Inputs in = inputs(40, 4, 2, 10, 3, at::kFloat);
    const DepthMixed together = depth_mix(in.q, in.k, in.v, in.sources, true);
    for (const std::int64_t row : {0, 17, 39}) {
        std::vector<DepthSource> sources;
        for (const DepthSource& source : in.sources) {
            sources.push_back({source.key.narrow(0, row, 1), source.value.narrow(0, row, 1)});
        }
        const DepthMixed alone =
            depth_mix(in.q.narrow(0, row, 1), in.k.narrow(0, row, 1), in.v.narrow(0, row, 1), sources, true);
        EXPECT_TRUE(at::equal(alone.value, together.value.narrow(0, row, 1)));
        EXPECT_TRUE(at::equal(alone.weights, together.weights.narrow(0, row, 1)));
    }
}

TEST(DepthMix, GradientsFlowThroughEverything) {
    Inputs in = inputs(3, 4, 2, 5, 2, at::kFloat);
    for (at::Tensor* tensor : {&in.q, &in.k, &in.v, &in.sources[0].key, &in.sources[0].value}) {
        tensor->set_requires_grad(true);
    }
    depth_mix(in.q, in.k, in.v, in.sources, false).value.square().sum().backward();
    for (const at::Tensor& tensor : {in.q, in.k, in.v, in.sources[0].key, in.sources[0].value}) {
        ASSERT_TRUE(tensor.grad().defined());
        EXPECT_GT(tensor.grad().abs().max().item<double>(), 1e-4);
    }
}

ModelConfig with(std::int64_t layers, std::int64_t stride, std::int64_t window) {
    ModelConfig config;
    config.layers = layers;
    config.depth.kind = DepthMixing::depth_attention;
    config.depth.stride = stride;
    config.depth.recent_window = window;
    return config;
}

std::vector<std::int64_t> layers_of(const std::vector<DepthSourceId>& sources) {
    std::vector<std::int64_t> layers;
    for (const DepthSourceId& source : sources) {
        layers.push_back(source.layer);
    }
    return layers;
}

TEST(DepthSources, AnchorsAndTheRecentWindow) {
    using Layers = std::vector<std::int64_t>;
    const ModelConfig both = with(6, 2, 2);
    EXPECT_EQ(layers_of(depth_sources(both, 0, 0)), Layers{});
    EXPECT_EQ(layers_of(depth_sources(both, 0, 3)), (Layers{0, 1, 2}));
    EXPECT_EQ(layers_of(depth_sources(both, 0, 5)), (Layers{0, 2, 3, 4}));
    EXPECT_EQ(layers_of(depth_sources(with(6, 3, 0), 0, 5)), (Layers{0, 3}));
    EXPECT_EQ(layers_of(depth_sources(with(6, 99, 0), 0, 5)), (Layers{0}));
    EXPECT_EQ(layers_of(depth_sources(with(6, 99, 99), 0, 3)), (Layers{0, 1, 2}));
    ModelConfig ablated = both;
    ablated.depth.ablations = {{2, -1}, {3, 5}};
    EXPECT_EQ(layers_of(depth_sources(ablated, 0, 5)), (Layers{0, 4}));
    EXPECT_EQ(layers_of(depth_sources(ablated, 0, 4)), (Layers{0, 3}));
}

TEST(DepthSources, LoopsReadTheAnchorsOfEarlierPasses) {
    ModelConfig config = with(5, 2, 0);
    config.architecture = Architecture::nanbeige;
    config.ponder.method = MethodKind::looped;
    config.ponder.max_steps = 1;
    const std::vector<DepthSourceId> expected{{0, 0}, {0, 2}, {0, 4}, {1, 0}};
    EXPECT_EQ(depth_sources(config, 1, 1), expected);
    EXPECT_EQ(depth_sources(config, 1, 0), std::vector<DepthSourceId>(expected.begin(), expected.end() - 1));
    const DepthColumns columns(config);
    EXPECT_EQ(columns.size(), 7);
    EXPECT_EQ(columns.of({1, 2}, 4), 4);
    EXPECT_EQ(columns.labels().at(4), "pass 1 layer 2");
}

TEST(DepthSources, EveryLayersSourcesHaveColumnsOfTheirOwn) {
    for (const std::int64_t stride : {1, 2, 3, 7, 50}) {
        for (const std::int64_t window : {0, 1, 2, 40}) {
            const ModelConfig config = with(7, stride, window);
            const DepthColumns columns(config);
            ASSERT_EQ(static_cast<std::int64_t>(columns.labels().size()), columns.size());
            for (std::int64_t l = 0; l < config.layers; ++l) {
                std::vector<int> taken(static_cast<std::size_t>(columns.size()), 0);
                ++taken.at(static_cast<std::size_t>(columns.own()));
                for (const DepthSourceId& source : depth_sources(config, 0, l)) {
                    EXPECT_EQ(taken.at(static_cast<std::size_t>(columns.of(source, l)))++, 0)
                        << stride << ' ' << window << " layer " << l << " source " << source.layer;
                }
            }
        }
    }
}

} // namespace
} // namespace ponderscope
