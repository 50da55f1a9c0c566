// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/scan.h"

#include "core/stats/bootstrap.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ponderscope {
namespace {

TEST(WorkerPool, DoesEveryPartOnce) {
    for (const std::size_t workers : {1U, 3U, 8U}) {
        std::vector<std::atomic<int>> done(100);
        for_each_part(done.size(), workers, [&](std::size_t part, std::size_t worker) {
            EXPECT_LT(worker, workers);
            ++done[part];
        });
        for (const std::atomic<int>& one : done) {
            EXPECT_EQ(one, 1);
        }
    }
    for_each_part(0, 4, [](std::size_t, std::size_t) { FAIL() << "there is no part"; });
}

TEST(WorkerPool, ThrowsWhatTheFirstPartThrew) {
    const auto said = [](std::size_t workers) -> std::string {
        try {
            for_each_part(64, workers, [](std::size_t part, std::size_t) {
                if (part >= 5) {
                    throw std::runtime_error(std::to_string(part));
                }
            });
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "nothing";
    };
    EXPECT_EQ(said(1), "5");
    EXPECT_EQ(said(4), "5");
}

TEST(Bootstrap, AnErrorOfAHelperIsThrownToTheCaller) {
    TokenLayout layout(std::vector<std::int64_t>(64, 1));
    const std::vector<double> values(64, 1.0);
    const PrefixSums sums(values, 1, layout);
    BootstrapOptions options{.threads = 4};
    const Resampling how = choose_resampling(layout, {}, options);
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> helped{false};
    const auto fail_in_a_helper = [&](std::int64_t, std::span<const double>, std::int64_t) {
        if (std::this_thread::get_id() != caller) {
            helped = true;
            throw std::bad_alloc();
        }
        while (!helped) { // leave a replicate to a helper
            std::this_thread::yield();
        }
    };
    EXPECT_THROW(for_each_replicate(sums, how, options, fail_in_a_helper), std::bad_alloc);
}

} // namespace
} // namespace ponderscope
