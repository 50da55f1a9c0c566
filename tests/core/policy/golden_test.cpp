// SPDX-License-Identifier: GPL-3.0-or-later
// Replays of every reference case that holds policies: steps equal, NLL to 1e-5, from the signals that the
// case recorded.
#include "core/base/json.h"
#include "core/checkpoint/safetensors.h"
#include "core/policy/replay.h"
#include "tests/support/golden_policy.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace ponderscope {
namespace {

struct Golden {
    explicit Golden(const std::filesystem::path& folder)
        : file(SafetensorsFile::open(folder / "golden.safetensors")),
          description(read_json_file(folder / "case.json")) {}

    template <typename T>
    std::vector<T> values(const std::string& name) const {
        const TensorView* view = file.find(name);
        if (view == nullptr) {
            return {};
        }
        std::vector<T> numbers(view->bytes.size() / sizeof(T));
        std::memcpy(numbers.data(), view->bytes.data(), view->bytes.size());
        return numbers;
    }
    const std::vector<std::int64_t>& shape(const std::string& name) const { return file.find(name)->shape; }

    SafetensorsFile file;
    nlohmann::json description;
};

/// [B, T or T - 1, width] into columns; missing last tokens become NaN.
void put(ReplayTable& table, const Golden& golden, PolicySignal signal, const std::string& name) {
    const bool integers = golden.file.find(name)->dtype == DType::i64;
    const std::vector<std::int64_t> whole =
        integers ? golden.values<std::int64_t>(name) : std::vector<std::int64_t>();
    const std::vector<float> real = integers ? std::vector<float>() : golden.values<float>(name);
    const std::int64_t batch = golden.shape(name)[0];
    const std::int64_t given = golden.shape(name)[1];
    const std::int64_t width = golden.shape(name)[2];
    const std::int64_t length = static_cast<std::int64_t>(table.tokens()) / batch;
    table.columns.add(signal);
    for (std::int64_t k = 0; k < width; ++k) {
        const std::span<float> column = table.columns.column(signal, k);
        for (std::int64_t b = 0; b < batch; ++b) {
            for (std::int64_t t = 0; t < length; ++t) {
                const auto from = static_cast<std::size_t>((b * given + t) * width + k);
                column[static_cast<std::size_t>(b * length + t)] =
                    t >= given ? std::numeric_limits<float>::quiet_NaN()
                    : integers ? static_cast<float>(whole[from])
                               : real[from];
            }
        }
    }
}

ReplayTable table_of(const Golden& golden) {
    const std::vector<std::int64_t>& ids = golden.shape("input_ids");
    const std::int64_t last = golden.shape("full.signal.nll")[2] - 1;
    ReplayTable table;
    table.run = "golden";
    const auto tokens = static_cast<std::size_t>(ids[0] * ids[1]);
    table.columns = SignalColumns(last, tokens);
    table.ran.assign(tokens, static_cast<std::int32_t>(last));
    for (std::int64_t b = 0; b < ids[0]; ++b) {
        table.sequences.push_back(ids[1]);
        for (std::int64_t t = 0; t < ids[1]; ++t) {
            table.places.push_back({static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(t),
                                    static_cast<std::uint32_t>(ids[1])});
        }
    }
    put(table, golden, PolicySignal::nll, "full.signal.nll");
    put(table, golden, PolicySignal::entropy, "full.signal.entropy");
    put(table, golden, PolicySignal::margin, "full.signal.margin");
    put(table, golden, PolicySignal::argmax, "full.signal.argmax");
    put(table, golden, PolicySignal::kl, "full.signal.kl_previous_current");
    put(table, golden, PolicySignal::cosine, "full.signal.cosine");
    put(table, golden, PolicySignal::latent, "full.signal.latent_difference");
    const std::span<const float> nll = std::as_const(table.columns).column(PolicySignal::nll, last);
    table.nll.assign(nll.begin(), nll.end());

    const std::string method = golden.description["method"];
    if (method != "vanilla") {
        table.context.own_threshold = golden.description["settings"]["pondering"]["threshold"];
        if (method == "adaponderlm") {
            put(table, golden, PolicySignal::continue_value, "full.gate");
        } else if (method == "adaptive_latent_cot") {
            put(table, golden, PolicySignal::continue_value, "full.reach");
        } else {
            put(table, golden, PolicySignal::continue_value, "full.router.tail_mass");
        }
        if (method != "adaponderlm") { // what decides about step k + 1 stands at k + 1 there
            for (std::int64_t k = 0; k < last; ++k) {
                const std::span<float> next = table.columns.column(PolicySignal::continue_value, k + 1);
                std::copy(next.begin(), next.end(),
                          table.columns.column(PolicySignal::continue_value, k).begin());
            }
        }
    }
    table.finish();
    return table;
}

class ReplayGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(ReplayGolden, StepsAreEqualAndNllIsClose) {
    const std::string folder = GetParam();
    PONDERSCOPE_REQUIRE_GOLDEN(folder);
    const Golden golden(testing::golden_case(folder));
    const ReplayTable table = table_of(golden);
    int replays = 0;
    for (const nlohmann::json& entry : golden.description["replay"]) {
        const std::string name = entry["name"];
        const std::string text = testing::golden_policy(entry, true);
        SCOPED_TRACE(name + " = " + text);
        const PolicySpec spec = PolicySpec::parse(text);
        EXPECT_EQ(PolicySpec::parse(spec.text()), spec);
        const ReplayResult result = replay(table, spec);
        const std::vector<std::int64_t> steps = golden.values<std::int64_t>("replay." + name + ".steps");
        const std::vector<float> nll = golden.values<float>("replay." + name + ".nll");
        ASSERT_FALSE(steps.empty());
        const std::int64_t given = golden.shape("replay." + name + ".steps")[1];
        const bool nll_only = entry.contains("compare");
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const auto b = static_cast<std::int64_t>(i) / given;
            const auto t = static_cast<std::int64_t>(i) % given;
            const auto token = static_cast<std::size_t>(b * (given + 1) + t);
            if (!nll_only) {
                EXPECT_EQ(result.steps[token], steps[i]) << "token " << i;
            }
            EXPECT_NEAR(result.nll[token], nll[i], 1e-5) << "token " << i;
        }
        if (!nll_only) {
            EXPECT_NEAR(result.mean_steps, entry["mean_steps"].get<double>(), 1e-12);
        }
        EXPECT_NEAR(result.mean_nll, entry["mean_nll"].get<double>(), 1e-5);
        EXPECT_EQ(result.scored, static_cast<std::int64_t>(steps.size()));
        ++replays;
    }
    EXPECT_GE(replays, 16);
}

INSTANTIATE_TEST_SUITE_P(Cases, ReplayGolden,
                         ::testing::Values("adaponderlm_gpt_neox_tau_1e4", "adaponderlm_llama_tau_03",
                                           "adaptive_latent_cot_gpt_neox_tau_01",
                                           "adaptive_latent_cot_llama_tau_1e4",
                                           "adaptive_latent_cot_stories_router_per_step",
                                           "ponderlm3_llama_tau_1e4", "ponderlm3_stories_tau_02",
                                           "vanilla_gpt_neox_layers"),
                         [](const auto& one) { return one.param; });

} // namespace
} // namespace ponderscope
