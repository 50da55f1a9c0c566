// SPDX-License-Identifier: GPL-3.0-or-later
// Processes of one machine that talk to each other, over the loopback and under mpirun.
#include "core/dist/collectives.h"

#include "core/base/error.h"
#include "tests/support/launch.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <iostream>
#include <numeric>
#include <thread>
#include <unistd.h>

namespace ponderscope {
namespace {

using testing::free_port;
using testing::run_ranks;

std::unique_ptr<Collectives> opened(int seconds = 60) {
    std::string why;
    auto collectives =
        open_collectives(world_from_environment(), {.timeout = std::chrono::seconds(seconds)}, why);
    if (!collectives) {
        std::cerr << why << '\n';
    }
    return collectives;
}

#define REQUIRE(condition)                                                                                   \
    if (!(condition)) {                                                                                      \
        std::cerr << __LINE__ << ": " #condition "\n";                                                       \
        return 1;                                                                                            \
    }

/// Each of the calls, and several sums on their way at once. 0: all was right.
int speak() {
    const World world = world_from_environment();
    const auto collectives = opened();
    REQUIRE(collectives != nullptr);
    std::vector<float> large(300'000);
    std::iota(large.begin(), large.end(), static_cast<float>(world.rank));
    std::vector<double> small{1e-9 * static_cast<double>(world.rank + 1), 1.0};
    auto first = collectives->begin_sum({large.data(), static_cast<std::int64_t>(large.size())});
    auto second = collectives->begin_sum({small.data(), 2, true});
    first->wait();
    second->wait();
    const auto size = static_cast<double>(world.size);
    REQUIRE(small[1] == size);
    REQUIRE(std::abs(small[0] - 1e-9 * size * (size + 1) / 2) < 1e-20);
    for (std::size_t i = 0; i < large.size(); i += 997) {
        REQUIRE(static_cast<double>(large[i]) == size * static_cast<double>(i) + size * (size - 1) / 2);
    }
    std::vector<float> given(1000, static_cast<float>(world.rank) + 0.5F);
    collectives->broadcast({given.data(), 1000});
    REQUIRE(given.front() == 0.5F && given.back() == 0.5F);
    for (int round = 0; round < 2; ++round) {
        const auto said = collectives->gather(std::string(static_cast<std::size_t>(world.rank) * 3, 'x'));
        REQUIRE(said.size() == static_cast<std::size_t>(world.size));
        for (std::size_t rank = 0; rank < said.size(); ++rank) {
            REQUIRE(said[rank] == std::string(rank * 3, 'x'));
        }
    }
    collectives->leave();
    return 0;
}

int sentence(const std::string& expected, const std::function<void()>& what) {
    try {
        what();
    } catch (const Error& error) {
        if (std::string(error.what()).find(expected) != std::string::npos) {
            return 0;
        }
        std::cerr << "found: " << error.what() << '\n';
    }
    std::cerr << "expected: " << expected << '\n';
    return 1;
}

TEST(Collectives, OfC10dSpeakInWorldsOfTwoAndThree) {
    for (const int size : {2, 3}) {
        EXPECT_EQ(run_ranks(size, free_port(), [](int) { return speak(); }),
                  std::vector<int>(static_cast<std::size_t>(size), 0));
    }
}

TEST(Collectives, NameARankThatNeverCame) {
    EXPECT_EQ(run_ranks(4, free_port(),
                        [](int rank) {
                            if (rank == 1 || rank == 3) {
                                return 0;
                            }
                            return sentence("Ranks 1 and 3 of 4 did not come within 5 s", [] { opened(5); });
                        }),
              std::vector<int>(4, 0));
    EXPECT_EQ(run_ranks(2, free_port(),
                        [](int rank) {
                            return rank == 0
                                       ? 0
                                       : sentence(
                                             "Rank 0 did not come within 5 s: nobody answers at 127.0.0.1:",
                                             [] { opened(5); });
                        }),
              std::vector<int>(2, 0));
}

TEST(Collectives, SayThatAPortIsInUse) {
    const testing::Listener taken;
    EXPECT_EQ(run_ranks(1, taken.port(),
                        [](int) {
                            ::setenv("WORLD_SIZE", "2", 1);
                            return sentence("the port is in use; choose another one for all processes.",
                                            [] { opened(5); });
                        }),
              std::vector<int>(1, 0));
}

TEST(Collectives, NoticeThatAProcessEnded) {
    EXPECT_EQ(run_ranks(3, free_port(),
                        [](int rank) {
                            const auto collectives = opened();
                            static_cast<void>(collectives->gather("here"));
                            if (rank == 2) {
                                ::_exit(0);
                            }
                            return sentence("one of them ended", [&] {
                                std::vector<float> numbers(10);
                                collectives->sum({numbers.data(), 10});
                            });
                        }),
              std::vector<int>(3, 0));
}

TEST(Collectives, NameARankThatEndedBeforeItSpoke) {
    std::array<int, 2> door{};
    ASSERT_EQ(::pipe(door.data()), 0);
    EXPECT_EQ(run_ranks(3, free_port(),
                        [&](int rank) {
                            const auto collectives = opened();
                            char came = 0;
                            if (rank == 2) { // once the others are connected: else they end with it
                                for (int other = 0; other < 2; ++other) {
                                    REQUIRE(::read(door[0], &came, 1) == 1);
                                }
                                ::_exit(0);
                            }
                            REQUIRE(::write(door[1], &came, 1) == 1);
                            return sentence("Rank 2 of 3 ended before all had spoken",
                                            [&] { (void)collectives->gather("words"); });
                        }),
              std::vector<int>(3, 0));
}

TEST(Collectives, AreNotThereWhereNothingSaysWhere) {
    ::setenv("RANK", "0", 1);
    ::setenv("WORLD_SIZE", "2", 1);
    std::string why;
    EXPECT_EQ(open_collectives(world_from_environment(), {}, why), nullptr);
    EXPECT_NE(why.find("MASTER_ADDR"), std::string::npos);
    ::unsetenv("RANK");
    ::unsetenv("WORLD_SIZE");
}

TEST(Ranks, AreNamed) {
    EXPECT_EQ(name_ranks({3}), "rank 3");
    EXPECT_EQ(name_ranks({3, 5}), "ranks 3 and 5");
    EXPECT_EQ(name_ranks({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 others");
}

/// What mpirun starts, below.
TEST(UnderMpirun, DISABLED_Speaks) {
    EXPECT_EQ(speak(), 0);
}

TEST(Collectives, OfMpiSpeakUnderMpirun) {
    if (!testing::has_mpirun()) {
        GTEST_SKIP() << "there is no mpirun";
    }
    EXPECT_EQ(
        std::system((testing::mpirun(3) + " " + std::filesystem::read_symlink("/proc/self/exe").string() +
                     " --gtest_also_run_disabled_tests --gtest_filter=UnderMpirun.*")
                        .c_str()),
        0);
}

} // namespace
} // namespace ponderscope
