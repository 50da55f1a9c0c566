// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/signal_sums.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/half.h"
#include "core/base/splitmix.h"
#include "core/trace/shard.h"
#include "core/trace/tools/check.h"
#include "core/trace/tools/export_csv.h"
#include "core/trace/tools/merge.h"
#include "core/trace/tools/run_edits.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace ponderscope {
namespace {

const std::string summed_weights = std::string(signal::depth_weights) + std::string(summed_suffix);
const std::vector<std::int64_t> shape{2, 3}; // of a token: step, source

/// fp16 of [tokens, 2, 3]: the second step runs every third time, source 2 does not exist at step 0.
SignalChunk weights(std::int64_t sequence, std::int64_t first, std::int64_t tokens) {
    SignalChunk chunk{first, DType::f16, {tokens, 2, 3}, {}};
    std::vector<std::uint16_t> values;
    for (std::int64_t t = first; t < first + tokens; ++t) {
        for (std::uint64_t place = 0; place < 6; ++place) {
            const double draw =
                token_draw(place, static_cast<std::uint64_t>(sequence), static_cast<std::uint64_t>(t));
            values.push_back(float_to_float16(place >= 3 && t % 3 != 0
                                                  ? std::numeric_limits<float>::quiet_NaN()
                                              : place == 2 ? 0
                                                           : static_cast<float>(draw)));
        }
    }
    chunk.data.resize(values.size() * sizeof(std::uint16_t));
    std::memcpy(chunk.data.data(), values.data(), chunk.data.size());
    return chunk;
}

std::vector<SignalInfo> announced() {
    return {{summed_weights,
             {"token", "step", "source"},
             "weight",
             "Weights",
             "Weights.",
             DType::f16,
             SignalStorage::summed}};
}

void write_sequence(TraceWriter& writer, std::int64_t sequence, std::optional<std::int64_t> joined = {}) {
    constexpr std::int64_t length = 50;
    writer.begin_sequence("s", testing::sample_text(length), {}, joined);
    for (std::int64_t first = 0; first < length; first += 20) {
        const std::int64_t count = std::min<std::int64_t>(20, length - first);
        writer.append(testing::sample_tokens(1, first, count, length),
                      {{summed_weights, weights(sequence, first, count)}});
    }
    writer.end_sequence();
}

/// Sequences 0..5 by so many processes.
void write(const std::filesystem::path& trace, std::int64_t world) {
    for (std::int64_t rank = 0; rank < world; ++rank) {
        TraceWriter writer(world == 1 ? trace : shard_path(trace, rank, world));
        writer.begin_run(testing::sample_run("r"), announced(), ShardInfo{rank, world, 1});
        for (std::int64_t s = rank; s < 6; s += world) {
            write_sequence(writer, s, s);
        }
        writer.end_run(1);
        writer.finish();
    }
}

SignalSums sums_in(const std::filesystem::path& trace) {
    const TraceReader reader = TraceReader::open(trace);
    const auto sums = signal_sums(reader, reader.runs().front(), announced().front());
    EXPECT_TRUE(sums.has_value());
    return sums.value_or(SignalSums());
}

/// Of the signal, one line each: the sample run's digests are none.
std::string fault_lines(const std::filesystem::path& trace) {
    std::string lines;
    for (const TraceFault& fault : check_trace(trace).faults) {
        lines += fault.place.ends_with(summed_weights) ? fault.place + ": " + fault.message + "\n" : "";
    }
    return lines;
}

void expect_same(const SignalSums& a, const SignalSums& b) {
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.counts, b.counts);
    EXPECT_EQ(a.sums, b.sums);
    EXPECT_EQ(a.squares, b.squares);
}

TEST(SignalSums, AreMeansAndVariancesOfAllTokens) {
    const testing::TemporaryFolder folder;
    write(folder / "t.ponder", 1);
    const SignalSums sums = sums_in(folder / "t.ponder");
    ASSERT_EQ(sums.shape, shape);
    for (std::size_t place = 0; place < 6; ++place) {
        std::vector<double> values;
        for (std::int64_t s = 0; s < 6; ++s) {
            const std::vector<float> all = to_floats(weights(s, 0, 50));
            for (std::size_t at = place; at < all.size(); at += 6) {
                if (!std::isnan(all[at])) {
                    values.push_back(static_cast<double>(all[at]));
                }
            }
        }
        double mean = 0, variance = 0;
        for (const double value : values) {
            mean += value / static_cast<double>(values.size());
        }
        for (const double value : values) {
            variance += (value - mean) * (value - mean) / static_cast<double>(values.size());
        }
        EXPECT_EQ(sums.counts[place], static_cast<std::int64_t>(values.size()));
        EXPECT_NEAR(sums.mean(place), mean, 1e-12);
        EXPECT_NEAR(sums.variance(place), variance, 1e-8);
        EXPECT_EQ(sums.any(place), place != 2);
    }
    // Nothing was kept by token.
    const TraceReader reader = TraceReader::open(folder / "t.ponder");
    EXPECT_FALSE(reader.signal(reader.runs().front().id, 0, summed_weights, 0, 10).has_value());
    EXPECT_EQ(fault_lines(folder / "t.ponder"), "");
}

TEST(SignalSums, OfShardsAndCopiesAreThoseOfTheRun) {
    const testing::TemporaryFolder folder;
    write(folder / "t.ponder", 1);
    const SignalSums whole = sums_in(folder / "t.ponder");
    std::filesystem::create_directory(folder / "w");
    write(folder / "w/t.ponder", 4);
    expect_same(sums_in(folder / "w/t.ponder"), whole);
    join_shards({folder / "w"}, folder / "joined.ponder");
    expect_same(sums_in(folder / "joined.ponder"), whole);
    EXPECT_EQ(fault_lines(folder / "joined.ponder"), "");
    export_csv(TraceReader::open(folder / "t.ponder"), folder / "a");
    export_csv(TraceReader::open(folder / "joined.ponder"), folder / "b");
    const std::string table = "signals/depth_weights.sum.csv";
    EXPECT_EQ(read_file(folder / "a" / table), read_file(folder / "b" / table));
    EXPECT_TRUE(
        read_file(folder / "a" / table).starts_with("run,step,source,tokens,mean,variance\n1,0,0,300,"));
    // Gone with its run.
    const RunInfo run = TraceReader::open(folder / "joined.ponder").runs().front();
    remove_run(folder / "joined.ponder", run);
    EXPECT_EQ(testing::sql_value(folder / "joined.ponder", "SELECT count(*) FROM signal_sum"), "0");
}

TEST(SignalSums, AreOfFinishedSequencesAndGoOnBehindThem) {
    const testing::TemporaryFolder folder;
    write(folder / "t.ponder", 1);
    const std::filesystem::path cut = folder / "cut.ponder";
    testing::write_trace(cut, [&](TraceWriter& writer) {
        writer.begin_run(testing::sample_run("r"), announced());
        write_sequence(writer, 0);
        write_sequence(writer, 1);
        writer.begin_sequence("s", testing::sample_text(50));
        writer.append(testing::sample_tokens(1, 0, 20, 50), {{summed_weights, weights(2, 0, 20)}});
    });
    EXPECT_EQ(sums_in(cut).counts.front(), 100);
    testing::write_trace(cut, [&](TraceWriter& writer) {
        EXPECT_EQ(writer.resume_run(1, announced()), 2);
        for (std::int64_t s = 2; s < 6; ++s) {
            write_sequence(writer, s);
        }
        writer.end_run(1);
    });
    expect_same(sums_in(cut), sums_in(folder / "t.ponder"));
}

TEST(SignalSums, ThatWereChangedAreASentence) {
    const testing::TemporaryFolder folder;
    write(folder / "t.ponder", 1);
    for (const char* damage :
         {"UPDATE signal_sum SET shape = '[2,4]'", "UPDATE signal_sum SET shape = '[2,-3]'",
          "UPDATE signal_sum SET shape = '[1152921504606846976,8]'", "UPDATE signal_sum SET shape = 'x'",
          "UPDATE signal_sum SET data = zeroblob(7)", "UPDATE signal_sum SET data = zeroblob(144)"}) {
        const std::filesystem::path copy = folder / "copy.ponder";
        std::filesystem::copy_file(folder / "t.ponder", copy,
                                   std::filesystem::copy_options::overwrite_existing);
        testing::sql(copy, damage);
        const TraceReader reader = TraceReader::open(copy);
        EXPECT_THROW((void)signal_sums(reader, reader.runs().front(), announced().front()), InputError)
            << damage;
        const std::string faults = fault_lines(copy);
        EXPECT_EQ(std::count(faults.begin(), faults.end(), '\n'), 1) << damage << ": " << faults;
    }
}

TEST(SignalSums, DoNotGoRoundTheEnd) {
    SignalSums sums;
    SignalChunk chunk{0, DType::f32, {1, 1}, {}};
    const float large = 1e30F;
    chunk.data.resize(sizeof(float));
    std::memcpy(chunk.data.data(), &large, sizeof large);
    sums.add(chunk);
    EXPECT_THROW(
        [&] {
            for (int i = 0; i < 4; ++i) {
                sums.add(chunk);
            }
        }(),
        InputError);
    chunk.shape = {1, 2};
    chunk.data.resize(2 * sizeof(float));
    EXPECT_THROW(sums.add(chunk), InputError);
}

} // namespace
} // namespace ponderscope
