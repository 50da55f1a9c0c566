// SPDX-License-Identifier: GPL-3.0-or-later
// How often the host waits for a device that is not the CPU, by operation: what core/README.md promises.
#include "core/policy/policy_spec.h"
#include "core/ponder/halting/policy_halting.h"
#include "tests/core/ponder/every_model.h"
#include "tests/support/host_device/host_device.h"

#include <gtest/gtest.h>

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
        LoadOptions options;
        options.device = "hostgpu";
        engine_ = std::make_unique<Engine>(Engine::load(*checkpoint_, options));
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
        GTEST_SKIP() << "waits for its inputs to rest";
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
    engine_->use_scoring(2);
    expect_one_a_step(scoring(RecordLevel::steps, 24), false, 0, "two refreshes");
}

TEST_P(Waiting, APolicyLooksOnceAStep) {
    const MethodKind method = engine_->config().ponder.method;
    if (interleaved() || method == MethodKind::pause || method == MethodKind::vanilla) {
        GTEST_SKIP() << "no steps, or waits for its inputs to rest";
    }
    engine_->use_halting(rule_of(PolicySpec::parse("entropy:theta=2.2"), *engine_));
    const Waits waits = scoring(RecordLevel::nll, 24);
    for (const auto& [name, count] : waits) {
        // What it looks at travels down, its answer up, and then who goes on is known.
        EXPECT_LE(count, name == "event" ? 1 + engine_->max_steps() : engine_->max_steps()) << name;
        EXPECT_TRUE(name == "event" || name == "nonzero" || name == "copy to host" ||
                    name == "copy to device")
            << name;
    }
}

INSTANTIATE_TEST_SUITE_P(Models, Waiting, ::testing::Range<std::size_t>(0, subjects().size()),
                         [](const auto& one) { return std::string(subjects().at(one.param).name); });

} // namespace
} // namespace ponderscope
