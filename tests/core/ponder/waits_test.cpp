// SPDX-License-Identifier: GPL-3.0-or-later
// How often the host waits for a device that is not the CPU, by operation: what core/README.md promises.
#include "core/policy/policy_spec.h"
#include "core/ponder/halting/policy_halting.h"
#include "tests/core/ponder/every_model.h"
#include "tests/support/host_device/host_device.h"
#include "tests/support/host_device/host_graph.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

using namespace testing;
using Waits = std::map<std::string, std::int64_t>;

class Waiting : public ::testing::TestWithParam<std::size_t> {
protected:
    void SetUp() override {
        const Subject subject = subjects().at(GetParam());
        checkpoint_ =
            std::make_unique<Checkpoint>(make_checkpoint(folder_.path(), subject.config, 1, subject.method));
        LoadOptions options{.device = "hostgpu"};
        engine_ = std::make_unique<Engine>(Engine::load(*checkpoint_, options));
        if (!engine_->config().experts.layers.empty()) {
            GTEST_SKIP() << "the library's grouped product waits on this device";
        }
        (void)scoring(RecordLevel::steps, 24); // rotations and places of columns travel once
    }

    /// Of two texts of different lengths in one batch, at the level.
    Waits scoring(RecordLevel level, std::int64_t tokens) {
        const auto first = random_ids(tokens, vocabulary, 71);
        const auto second = random_ids(tokens / 2, vocabulary, 72);
        const std::vector<Window> windows{whole(first), whole(second)};
        (void)take_host_waits();
        (void)engine_->score(windows, level);
        return take_host_waits();
    }

    [[nodiscard]] bool interleaved() const {
        const MethodKind method = engine_->config().ponder.method;
        return method == MethodKind::ponderlm2 || method == MethodKind::ponderlm3;
    }

    /// By the method's own rule.
    [[nodiscard]] bool tokens_stop() const {
        const MethodKind method = engine_->config().ponder.method;
        return method == MethodKind::adaponderlm || method == MethodKind::adaptive_latent_cot ||
               method == MethodKind::ponderlm3;
    }

    TemporaryFolder folder_;
    std::unique_ptr<Checkpoint> checkpoint_;
    std::unique_ptr<Engine> engine_;
};

/// The results' own journey, and who goes on after each step but the last.
void expect_one_a_step(const Waits& waits, bool may_stop, std::int64_t steps, const std::string& what) {
    for (const auto& [name, count] : waits) {
        if (name == "event") {
            EXPECT_EQ(count, 1) << what;
        } else {
            EXPECT_EQ(name, "nonzero") << what << ": " << count;
            EXPECT_LE(count, may_stop ? steps : 0) << what;
        }
    }
}

TEST_P(Waiting, TheHostWaitsForWhoGoesOnAndForTheResults) {
    if (interleaved()) {
        GTEST_SKIP() << "waits once a slot";
    }
    for (const RecordLevel level : {RecordLevel::nll, RecordLevel::basic, RecordLevel::steps}) {
        for (const std::int64_t tokens : {12, 24}) {
            expect_one_a_step(scoring(level, tokens), tokens_stop(), engine_->max_steps(),
                              "level " + std::to_string(static_cast<int>(level)) + ", " +
                                  std::to_string(tokens) + " tokens");
        }
    }
}

TEST_P(Waiting, AFixedNumberOfRefreshesWaitsForNothing) {
    if (!interleaved() || tokens_stop()) {
        GTEST_SKIP() << "not interleaved, or tokens stop";
    }
    engine_->choose(&RunPlan::refreshes, 2);
    expect_one_a_step(scoring(RecordLevel::steps, 24), false, 0, "two refreshes");
}

TEST_P(Waiting, APolicyLooksOnceAStep) {
    const MethodKind method = engine_->config().ponder.method;
    if (interleaved() || method == MethodKind::pause || method == MethodKind::vanilla) {
        GTEST_SKIP() << "no steps, or waits once a slot";
    }
    engine_->choose(&RunPlan::rule, rule_of(PolicySpec::parse("entropy:theta=2.2"), *engine_));
    const Waits waits = scoring(RecordLevel::nll, 24);
    for (const auto& [name, count] : waits) {
        // What it looks at travels down, its answer up, and then who goes on is known.
        EXPECT_LE(count, name == "event" ? 1 + engine_->max_steps() : engine_->max_steps()) << name;
        EXPECT_TRUE(name == "event" || name == "nonzero" || name == "copy to host" ||
                    name == "copy to device")
            << name;
    }
}

/// What is told of each new token of each prompt.
using Told = std::map<std::int64_t, std::vector<WindowResult>>;

TEST_P(Waiting, StepsOfDecodingThatAreAlikeAreCapturedOnce) {
    const std::vector<std::vector<std::int32_t>> prompts{
        random_ids(5, vocabulary, 81), random_ids(1, vocabulary, 82), random_ids(9, vocabulary, 83)};
    constexpr std::int64_t more = 12;
    for (const auto& [level, temperature] :
         {std::pair{RecordLevel::steps, 0.0}, {RecordLevel::basic, 1.2}, {RecordLevel::nll, 0.0}}) {
        GenerateOptions options{.max_new_tokens = more, .temperature = temperature};
        const auto continued = [&](bool repeats, Told& told) {
            options.repeat_steps = repeats;
            return engine_->generate(prompts, options, level,
                                     [&](std::int64_t prompt, std::int32_t, const WindowResult& result) {
                                         told[prompt].push_back(result);
                                         return true;
                                     });
        };
        // An end that only some of the prompts come to, where there is one.
        options.stop_ids.clear();
        Told ignored;
        const auto unstopped = continued(false, ignored);
        for (const std::int32_t id : unstopped[1]) {
            const auto meets = [id](const auto& text) {
                return std::find(text.begin(), text.end() - 1, id) < text.end() - 1;
            };
            if (std::count_if(unstopped.begin(), unstopped.end(), meets) == 1) {
                options.stop_ids = {id};
            }
        }
        Told anew, again;
        const auto expected = continued(false, anew);
        EXPECT_EQ(take_graph_counts().captures, 0);
        (void)take_host_waits();
        EXPECT_EQ(continued(true, again), expected);
        const GraphCounts graphs = take_graph_counts();
        if (tokens_stop()) {
            EXPECT_EQ(graphs.captures, 0) << "who goes on is the host's to know";
        } else {
            EXPECT_GE(graphs.captures, 1);
            EXPECT_LE(graphs.captures, 3) << "of three prompts, two, one";
            // The prompts' own step and, after each change of who is there, one step more.
            EXPECT_GE(graphs.replays, more - 1 - 3);
            for (const auto& [name, count] : take_host_waits()) {
                EXPECT_TRUE(name == "event" || name == "copy to host" || name == "copy to device") << name;
                EXPECT_LE(count, more + 3) << name;
            }
        }
        for (const auto& [prompt, results] : anew) {
            ASSERT_EQ(results.size(), again[prompt].size());
            for (std::size_t i = 0; i < results.size(); ++i) {
                EXPECT_EQ(results[i].tokens.entropy.size(), 1U);
                ASSERT_EQ(results[i].signals.size(), again[prompt][i].signals.size());
                for (std::size_t j = 0; j < results[i].signals.size(); ++j) {
                    EXPECT_EQ(results[i].signals[j].second.data, again[prompt][i].signals[j].second.data)
                        << results[i].signals[j].first << " of token " << i << " of prompt " << prompt;
                }
                EXPECT_EQ(results[i].tokens.flops, again[prompt][i].tokens.flops);
            }
        }
    }
}

TEST_P(Waiting, WhereACaptureFailsTheStepsGoOn) {
    const std::vector<std::vector<std::int32_t>> prompts{random_ids(5, vocabulary, 84)};
    GenerateOptions options{.max_new_tokens = 6, .repeat_steps = false};
    const auto expected = engine_->generate(prompts, options);
    options.repeat_steps = true;
    (void)take_graph_counts();
    for (const std::size_t operations : {std::size_t{0}, std::size_t{20}}) {
        limit_captures(operations);
        GraphUse graphs;
        options.graphs = &graphs;
        EXPECT_EQ(engine_->generate(prompts, options), expected) << operations;
        EXPECT_EQ(graphs.failure.empty(), tokens_stop()) << "a failure says why";
        EXPECT_EQ(graphs.captures, 0);
        EXPECT_EQ(take_graph_counts().replays, 0) << operations;
    }
    limit_captures(std::numeric_limits<std::size_t>::max());
}

/// As the tests of this device would see it where the engine let go of what a graph reads.
TEST(Graphs, AReplayOnMemoryThatNobodyKeepsFails) {
    const at::Device device("hostgpu:0");
    const c10::NoGradGuard no_grad;
    at::Tensor given = at::arange(6, at::TensorOptions(device).dtype(at::kFloat));
    at::Tensor made;
    const auto graph = HostGraph::capture(device, [&] {
        at::Tensor grown = at::empty({0}, given.options());
        at::add_out(grown, given, given); // gets its memory here: the graph's own
        made = grown + 1;
    });
    graph->replay();
    EXPECT_TRUE(made.cpu().equal(at::arange(6).to(at::kFloat) * 2 + 1));
    at::Tensor view = given.narrow(0, 0, 1);
    given.reset();
    EXPECT_NO_THROW(graph->replay()) << "a view keeps it";
    view.reset();
    EXPECT_THROW(graph->replay(), c10::Error);
    (void)take_graph_counts(); // the others count their own
}

INSTANTIATE_TEST_SUITE_P(Models, Waiting, ::testing::Range<std::size_t>(0, subjects().size()),
                         [](const auto& one) { return std::string(subjects().at(one.param).name); });

} // namespace
} // namespace ponderscope
