// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/train_log.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <fstream>

namespace ponderscope {
namespace {

const std::string header =
    "step,tokens,loss,learning_rate,gradient_norm,held_out_nll,penalty,mean_steps,seconds\n";

TEST(TrainLog, WritesNumbersThatReadBackToTheSameValue) {
    const testing::TemporaryFolder folder;
    TrainLog log(folder / "log.csv");
    log.append({10, 2560, 0.1 + 0.2, 1e-3, 2, std::nullopt, 1.5});
    log.append({20, 5120, 4.0 / 3.0, 5e-324, 0, 4.25, 3, 0.5, 2.25});
    EXPECT_EQ(read_file(folder / "log.csv"), header +
                                                 "10,2560,0.30000000000000004,0.001,2,,,,1.5\n"
                                                 "20,5120,1.3333333333333333,5e-324,0,4.25,0.5,2.25,3\n");
}

TEST(TrainLog, ResumesAfterTheLastRowOfTheState) {
    const testing::TemporaryFolder folder;
    const auto path = folder / "log.csv";
    std::ofstream(path) << header << "10,1,1,1,1,,,,1\n20,2,1,1,1,,,,2\n30,3,1,1,1,,,,3\n";
    TrainLog(path, 20).append({25, 4, 2, 2, 2, std::nullopt, 4});
    EXPECT_EQ(read_file(path), header + "10,1,1,1,1,,,,1\n20,2,1,1,1,,,,2\n25,4,2,2,2,,,,4\n");
}

TEST(TrainLog, DropsALineThatWasCutOff) {
    const testing::TemporaryFolder folder;
    const auto path = folder / "log.csv";
    std::ofstream(path) << header << "10,1,1,1,1,,,,1\n20,2,1";
    TrainLog(path, 20).append({20, 2, 2, 2, 2, std::nullopt, 4});
    EXPECT_EQ(read_file(path), header + "10,1,1,1,1,,,,1\n20,2,2,2,2,,,,4\n");
}

TEST(TrainLog, BeginsAnewWithoutResume) {
    const testing::TemporaryFolder folder;
    const auto path = folder / "log.csv";
    std::ofstream(path) << header << "10,1,1,1,1,,,,1\n";
    { const TrainLog log(path); }
    EXPECT_EQ(read_file(path), header);
}

TEST(TrainLog, SaysWhereItCannotWrite) {
    const testing::TemporaryFolder folder;
    EXPECT_THROW(TrainLog(folder / "nowhere" / "log.csv"), Error);
}

} // namespace
} // namespace ponderscope
