// SPDX-License-Identifier: GPL-3.0-or-later
// Losses and gradients of the methods with a penalty on steps, against references.
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/safetensors.h"
#include "core/ponder/engine/model.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace ponderscope {
namespace {

constexpr double tolerance = 1e-4;

std::map<std::string, at::Tensor> read_arrays(const std::filesystem::path& path) {
    std::map<std::string, at::Tensor> arrays;
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const TensorView& view : file.tensors()) {
        if (view.dtype != DType::f32 && view.dtype != DType::i64) {
            continue;
        }
        at::Tensor tensor = at::empty(view.shape, view.dtype == DType::f32 ? at::kFloat : at::kLong);
        std::memcpy(tensor.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
        arrays.emplace(view.name, std::move(tensor));
    }
    return arrays;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
    return (a.detach().to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

class PenaltyGolden : public ::testing::TestWithParam<const char*> {
protected:
    void compare(const std::string& prefix, const ForwardForm& form, const Model& model,
                 const PackedBatch& batch, double lambda, const std::map<std::string, at::Tensor>& golden) {
        for (const auto& [name, tensor] : model.parameters().items()) {
            tensor.mutable_grad() = at::Tensor();
        }
        const ForwardResult result = model.forward(batch, form);
        const at::Tensor total = result.cross_entropy + lambda * result.penalty;
        total.backward();
        check(prefix + "loss.ce", result.cross_entropy, golden);
        if (golden.contains(prefix + "loss.penalty")) {
            check(prefix + "loss.penalty", result.penalty, golden);
        }
        check(prefix + "loss.total", total, golden);
        int gradients = 0;
        for (const auto& [name, tensor] : model.parameters().items()) {
            const std::string key = prefix + "grad." + name;
            if (golden.contains(key)) {
                ASSERT_TRUE(tensor.grad().defined()) << key;
                check(key, tensor.grad(), golden);
                ++gradients;
            }
        }
        EXPECT_GT(gradients, 0);
    }

    static void check(const std::string& name, const at::Tensor& value,
                      const std::map<std::string, at::Tensor>& golden) {
        ASSERT_TRUE(golden.contains(name)) << name;
        const double difference = largest_difference(value.reshape_as(golden.at(name)), golden.at(name));
        std::printf("  %-48s max |difference| %.2e (tolerance %.0e)\n", name.c_str(), difference, tolerance);
        EXPECT_LE(difference, tolerance) << name;
    }
};

TEST_P(PenaltyGolden, LossAndGradientsEqualTheReference) {
    const std::string name = GetParam();
    PONDERSCOPE_REQUIRE_GOLDEN(name);
    const std::filesystem::path folder = testing::golden_case(name);
    nlohmann::json description;
    std::ifstream(folder / "case.json") >> description;
    const auto golden = read_arrays(folder / "golden.safetensors");
    const auto& settings = description.at("settings").at("training");

    const Checkpoint checkpoint = Checkpoint::open(folder);
    Parameters parameters =
        Parameters::load(parameter_layout(checkpoint.config), checkpoint, {at::kCPU}, at::kFloat);
    parameters.requires_grad(true);
    const Model model(checkpoint.config, std::move(parameters));
    const at::Tensor& ids = golden.at("train.input_ids");
    PackedBatch batch;
    std::vector<std::int64_t> targets;
    for (std::int64_t row = 0; row < ids.size(0); ++row) {
        const auto* begin = ids[row].const_data_ptr<std::int64_t>();
        batch.sequences.emplace_back(begin, begin + ids.size(1));
        targets.insert(targets.end(), begin + 1, begin + ids.size(1));
        targets.push_back(-1);
    }
    batch.targets = at::tensor(targets, at::kLong);

    ForwardForm form;
    form.training = true;
    form.penalty = {settings.value("k_s", 0.0), settings.value("beta", 0.0)};
    const double lambda = settings.at("lambda").get<double>();
    compare("", form, model, batch, lambda, golden);
    if (golden.contains("train.jacobi.loss.ce")) {
        form.refreshes = 3; // K + 4 passes
        compare("train.jacobi.", form, model, batch, lambda, golden);
    }
}

INSTANTIATE_TEST_SUITE_P(Train, PenaltyGolden,
                         ::testing::Values("adaponderlm_gpt_neox_tau_1e4", "adaponderlm_llama_tau_03",
                                           "adaptive_latent_cot_gpt_neox_tau_01",
                                           "adaptive_latent_cot_llama_tau_1e4",
                                           "adaptive_latent_cot_stories_router_per_step",
                                           "ponderlm3_llama_tau_1e4", "ponderlm3_stories_tau_02"),
                         [](const auto& one) { return std::string(one.param); });

} // namespace
} // namespace ponderscope
