// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/method_info.h"
#include "core/policy/policy_spec.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/halting/halting_rules.h"
#include "core/ponder/halting/policy_halting.h"
#include "tests/core/ponder/engine_subjects.h"
#include "tests/core/ponder/tiny_models.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// What tests of every model of engine_subjects share.
namespace ponderscope::testing {

inline constexpr std::int64_t vocabulary = 61;

/// Two ways to the same numbers, as far as \p tolerance apart in fp32 on the CPU. In half precision it is the
/// middle one of many that says how far a run's rounding carries: single tokens may meet another word among
/// the likeliest.
inline void expect_near(const std::vector<float>& a, const std::vector<float>& b, double tolerance,
                        const std::string& what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    std::vector<double> apart{0.0};
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) || std::isnan(b[i])) {
            ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i])) << what << " at " << i;
            continue;
        }
        // Of numbers above 1, relative: that is what fp32 holds.
        const double size = std::max(1.0, std::abs(static_cast<double>(b[i])));
        apart.push_back(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) / size);
    }
    std::sort(apart.begin(), apart.end());
    const bool middle = half_precision() && apart.size() > 8;
    EXPECT_LE(middle ? 2 * apart[apart.size() / 2] : apart.back(), within(tolerance)) << what;
}

/// A quotient of small movements magnifies their rounding; of half precision's nothing is left to compare.
inline bool magnifies_rounding(const std::string& name) {
    return name == signal::acceleration || name == signal::update_cosine;
}

/// In half precision a method's own rule, of a gate beside its threshold, would decide by rounding; drawn
/// numbers of steps are the same however they are computed, and halt as many tokens. nullptr: its own rule.
inline std::shared_ptr<const HaltingRule> rule_beyond_rounding(Engine& engine) {
    const bool drawn =
        half_precision() && method_info(engine.config().ponder.method).own_rule.signal != nullptr;
    return drawn ? rule_of(PolicySpec::parse("uniform:rate=1,seed=4"), engine) : nullptr;
}

class EveryModel : public ::testing::TestWithParam<std::size_t> {
protected:
    void SetUp() override {
        const Subject subject = subjects().at(GetParam());
        if (half_precision() && subject.carries_rounding) {
            GTEST_SKIP()
                << "latents feed every later slot and random weights carry a rounding on, until nothing is "
                   "left of half precision's digits";
        }
        checkpoint_ =
            std::make_unique<Checkpoint>(make_checkpoint(folder_.path(), subject.config, 1, subject.method));
        engine_ = std::make_unique<Engine>(load_engine(*checkpoint_));
        if (engine_->config().ponder.method == MethodKind::ponderlm3) {
            halve(subject.config);
        }
        rule_ = rule_beyond_rounding(*engine_);
        if (rule_) {
            engine_->choose(&RunPlan::rule, rule_);
        }
    }
    /// How far apart two ways to the same number may be (expect_near), where \p on_cpu is what fp32 on the
    /// CPU allows. The shape of a product rounds (core/README.md): where a mixture is cut to the most likely
    /// words, two that are nearly alike change places, and latents that feed every later slot carry the
    /// rounding ten times as far, of half precision twice. Both together (ponderlm2_refreshed): one rounding
    /// of every weight moves the KL of a text by 1e-5 in the middle of 1,500 random texts, by more than 0.01
    /// in 12 of them and by up to 1.5. The CPU allows as much as a
    /// device there, since both leave the head to LibTorch. Of latents alone a device may make three times as
    /// much: hostgpu rounds every product by its shape. NLLs of 40 texts of mhc_ponderlm2 are then up to 6e-5
    /// from fp64 alone and 1e-4 in a batch (the middle text: 5e-6 both); one rounding of every weight moves
    /// them by up to 2e-4.
    [[nodiscard]] double tolerance(double on_cpu) const {
        if (half_precision() && carries()) {
            return within(0) / 5;
        }
        const bool on_device = test_device() != "cpu"; // within() allows ten times as much there
        if (engine_->config().ponder.interpolation_use_topk) {
            return (on_device ? 30 : 300) * on_cpu;
        }
        return carries() ? (on_device ? 3 : 10) * on_cpu : on_cpu;
    }

    /// Latents that feed every later slot carry a rounding on.
    [[nodiscard]] bool carries() const {
        const MethodKind method = engine_->config().ponder.method;
        return method == MethodKind::ponderlm2 || method == MethodKind::ponderlm3;
    }

    /// A random router says much the same of every token: puts the threshold where half of them stop early.
    void halve(nlohmann::json config) {
        engine_->choose(&RunPlan::rule, full_halting());
        const auto ids = random_ids(60, vocabulary, 16);
        const WindowResult full = scored_alone(*engine_, whole(ids), RecordLevel::basic);
        const auto gates = floats_of(full, signal::gate);
        const std::size_t decisions = gates.size() / 60;
        std::vector<float> last;
        for (std::size_t t = 0; t < 60; ++t) {
            last.push_back(gates[(t + 1) * decisions - 1]);
        }
        std::sort(last.begin(), last.end());
        config["pondering"]["threshold"] =
            (static_cast<double>(last[29]) + static_cast<double>(last[30])) / 2;
        std::ofstream(folder_.path() / "config.json") << config.dump(1);
        checkpoint_ = std::make_unique<Checkpoint>(Checkpoint::open(folder_.path()));
        engine_ = std::make_unique<Engine>(load_engine(*checkpoint_));
    }
    TemporaryFolder folder_;
    std::unique_ptr<Checkpoint> checkpoint_;
    std::unique_ptr<Engine> engine_;
    std::shared_ptr<const HaltingRule> rule_; ///< nullptr: the method's own
};

} // namespace ponderscope::testing
