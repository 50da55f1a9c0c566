// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/halting/halting_rules.h"
#include "tests/core/ponder/engine_subjects.h"
#include "tests/core/ponder/tiny_models.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// What tests of every model of engine_subjects share.
namespace ponderscope::testing {

inline constexpr std::int64_t vocabulary = 61;

inline Window whole(const std::vector<std::int32_t>& ids) {
    return {ids, 0, static_cast<std::int64_t>(ids.size())};
}

template <typename T>
std::vector<T> values(const WindowResult& result, const std::string& name) {
    for (const auto& [signal_name, chunk] : result.signals) {
        if (signal_name == name) {
            std::vector<T> all(chunk.data.size() / sizeof(T));
            std::memcpy(all.data(), chunk.data.data(), chunk.data.size());
            return all;
        }
    }
    ADD_FAILURE() << "no signal " << name;
    return {};
}

inline void expect_near(const std::vector<float>& a, const std::vector<float>& b, double tolerance,
                        const std::string& what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) || std::isnan(b[i])) {
            ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i])) << what << " at " << i;
            continue;
        }
        // Of numbers above 1, relative: that is what fp32 holds.
        const double size = std::max(1.0, std::abs(static_cast<double>(b[i])));
        largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) / size);
    }
    EXPECT_LE(largest, tolerance * testing::device_slack()) << what;
}

class EveryModel : public ::testing::TestWithParam<std::size_t> {
protected:
    void SetUp() override {
        const Subject subject = subjects().at(GetParam());
        checkpoint_ =
            std::make_unique<Checkpoint>(make_checkpoint(folder_.path(), subject.config, 1, subject.method));
        engine_ = std::make_unique<Engine>(load_engine(*checkpoint_));
        if (engine_->config().ponder.method == MethodKind::ponderlm3) {
            halve(subject.config);
        }
    }

    /// A random router says much the same of every token: puts the threshold where half of them stop early.
    void halve(nlohmann::json config) {
        engine_->use_halting(full_halting());
        const auto ids = random_ids(60, vocabulary, 16);
        const Window window = whole(ids);
        const WindowResult full = engine_->score(std::span(&window, 1), RecordLevel::basic).front();
        const auto gates = values<float>(full, signal::gate);
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
};

} // namespace ponderscope::testing
