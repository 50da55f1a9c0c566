// SPDX-License-Identifier: GPL-3.0-or-later
// The differentiable head on a device that is not the CPU, under autocast: products of halves.
#include "core/kernels/autocast.h"
#include "core/kernels/head.h"
#include "core/model/device.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace ponderscope {
namespace {

struct HeadCase {
    at::Tensor h, head, embedding, bias, targets;
};

HeadCase make_head_case() {
    at::Generator generator = at::detail::createCPUGenerator(5);
    const auto normal = [&](at::IntArrayRef sizes, double size) {
        return at::normal(0.0, size, sizes, generator);
    };
    return {normal({40, 24}, 1), normal({90, 24}, 0.4), normal({90, 24}, 0.4), normal({90}, 0.3),
            at::arange(40, at::kLong).sub(1)}; // the first has no target
}

/// Loss of both parts and its gradients with respect to h, head, embedding and bias, on the CPU.
std::vector<at::Tensor> outcome(const HeadCase& given, at::Device device, bool half) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& tensor : {given.h, given.head, given.embedding, given.bias}) {
        leaves.push_back(tensor.to(device).detach().requires_grad_(true));
    }
    at::Tensor loss;
    {
        const Autocast autocast(device.type(), half);
        const HeadWeights weights{leaves[1], leaves[3], leaves[2]};
        loss = cross_entropy(leaves[0], weights, given.targets.to(device)) +
               expected_embedding(leaves[0], weights, 0.8, 0).square().sum();
    }
    EXPECT_EQ(loss.scalar_type(), at::kFloat);
    loss.backward();
    std::vector<at::Tensor> all{loss.detach().cpu()};
    for (const at::Tensor& leaf : leaves) {
        EXPECT_EQ(leaf.grad().scalar_type(), at::kFloat);
        all.push_back(leaf.grad().cpu());
    }
    return all;
}

double difference(const at::Tensor& a, const at::Tensor& b) {
    return ((a - b).abs().max() / b.abs().max()).item<double>();
}

TEST(HeadOnADevice, AutocastMultipliesHalves) {
    const at::Device device = device_from_string(testing::test_accelerator());
    const HeadCase given = make_head_case();
    const auto exact = outcome(given, at::kCPU, false);
    const auto plain = outcome(given, device, false);
    const auto half = outcome(given, device, true);
    for (std::size_t i = 0; i < exact.size(); ++i) {
        SCOPED_TRACE(i);
        EXPECT_LE(difference(plain[i], exact[i]), 1e-5);
        // Logits are halves, too: of one of 4 to 8, 2^-6 is rounded away, which is 1.6e-2 of a probability.
        EXPECT_LE(difference(half[i], exact[i]), 4e-2);
        EXPECT_GT(difference(half[i], exact[i]), 1e-6) << "the products are of halves";
    }
}

TEST(HeadOnADevice, ManyRowsOfALargeVocabulary) {
    const at::Device device = device_from_string(testing::test_accelerator());
    at::Generator generator = at::detail::createCPUGenerator(6);
    const std::int64_t rows = 512, words = 33000, d = 16;
    HeadWeights given;
    given.head = at::normal(0.0, 1.0, {words, d}, generator).to(at::kBFloat16);
    given.embedding = given.head;
    given.head_bias = at::normal(0.0, 0.5, {words}, generator);
    const at::Tensor h = at::normal(0.0, 1.0, {rows, d}, generator).to(at::kBFloat16);
    HeadRequest request;
    request.targets = at::arange(rows, at::kLong).mul(64).sub(1); // the first has none
    request.distribution = true;
    request.candidates = 7;
    request.mixture = true;
    request.top_k = 30;
    request.previous = h + 0.3 * at::normal(0.0, 1.0, {rows, d}, generator).to(at::kBFloat16);
    request.previous_rows = at::arange(rows, at::kLong).remainder(5) > 0;
    const HeadResult expected = read_out(h, given, request);
    HeadWeights there = given;
    for (at::Tensor HeadWeights::*const table :
         {&HeadWeights::head, &HeadWeights::embedding, &HeadWeights::head_bias}) {
        there.*table = (given.*table).to(device);
    }
    for (at::Tensor HeadRequest::*const field :
         {&HeadRequest::targets, &HeadRequest::previous, &HeadRequest::previous_rows}) {
        request.*field = (request.*field).to(device);
    }
    const HeadResult got = read_out(h.to(device), there, request);
    for (const auto field : head_result_fields) {
        ASSERT_EQ((got.*field).defined(), (expected.*field).defined());
        if ((got.*field).defined()) {
            // A word as likely as the target, but for the last digit, may be counted before it or after.
            const double apart = field == &HeadResult::rank ? 2 : 1e-5;
            EXPECT_TRUE(at::allclose((got.*field).cpu(), expected.*field, 1e-4, apart, /*equal_nan=*/true));
        }
    }
}

} // namespace
} // namespace ponderscope
