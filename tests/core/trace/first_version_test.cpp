// SPDX-License-Identifier: GPL-3.0-or-later
// data/first_version.ponder was recorded when steps that did not run were 0 in signals: three models that
// halt, two sequences each, with the attention of one head.
#include "core/base/half.h"
#include "core/trace/export_csv.h"
#include "core/trace/merge.h"
#include "core/trace/reader.h"
#include "core/trace/schema.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

fs::path old_trace() {
    return testing::source_tree() / "tests/core/trace/data/first_version.ponder";
}

/// What a reader says of every signal by step: values of steps that ran are numbers, the others say so.
void expect_steps_that_did_not_run(const TraceReader& reader, std::int64_t run) {
    std::size_t behind = 0;
    std::size_t ran = 0;
    for (const SequenceInfo& sequence : reader.sequences(run)) {
        const TokenColumns tokens = reader.tokens(run, sequence.index);
        for (const SignalInfo& info : reader.signal_infos(run)) {
            if (info.axes.size() < 2 || info.axes[1] != "step") {
                continue;
            }
            const SignalChunk chunk = *reader.signal(run, sequence.index, info.name);
            const std::vector<double> values = to_doubles(chunk);
            const auto columns = static_cast<std::size_t>(chunk.shape[1]);
            const std::size_t each = values.size() / tokens.size() / columns;
            const bool whole_numbers = chunk.dtype == DType::i32;
            const auto stride = ends_in_zeros(info.axes) ? static_cast<std::size_t>(chunk.shape.back()) : 1;
            for (std::size_t i = 0; i < values.size(); i += stride) {
                const std::size_t token = i / each / columns;
                const std::size_t step = i / each % columns;
                const bool unscored = std::isnan(tokens.nll[token]);
                const std::string where =
                    info.name + ", token " + std::to_string(token) + ", step " + std::to_string(step);
                if (static_cast<std::int32_t>(step) <= tokens.steps[token]) {
                    EXPECT_TRUE(unscored || !std::isnan(values[i])) << where;
                    EXPECT_TRUE(!whole_numbers || values[i] >= 0) << where;
                    ++ran;
                } else if (info.name == "router_probability" || info.name == "router_log_tail_mass") {
                    EXPECT_FALSE(std::isnan(values[i])) << where << " is known up front";
                } else {
                    EXPECT_TRUE(whole_numbers ? values[i] == did_not_run : std::isnan(values[i])) << where;
                    ++behind;
                }
            }
        }
    }
    EXPECT_GT(behind, 100U) << "a run in which nobody halts proves nothing";
    EXPECT_GT(ran, 100U);
}

TEST(FirstVersion, StepsThatDidNotRunAreReadAsSuch) {
    EXPECT_EQ(testing::sql_value(old_trace(), "PRAGMA user_version"), "1");
    const TraceReader reader = TraceReader::open(old_trace());
    ASSERT_EQ(reader.runs().size(), 3U);
    for (const RunInfo& run : reader.runs()) {
        SCOPED_TRACE(run.name);
        expect_steps_that_did_not_run(reader, run.id);
    }
    // A part of a sequence is the same part of the whole.
    const std::vector<float> whole = to_floats(*reader.signal(1, 0, signal::nll));
    const std::vector<float> part = to_floats(*reader.signal(1, 0, signal::nll, 3, 7));
    for (std::size_t i = 0; i < part.size(); ++i) {
        const float same = whole[3 * (whole.size() / 13) + i];
        EXPECT_TRUE(part[i] == same || (std::isnan(part[i]) && std::isnan(same))) << i;
    }
}

TEST(FirstVersion, MergedWithANewTraceItIsOfTheNewVersion) {
    const testing::TemporaryFolder folder;
    {
        TraceWriter writer(folder / "new.ponder");
        testing::write_sample_run(writer, "new", 1, {40}, 40);
        writer.finish();
    }
    merge_traces({old_trace(), folder / "new.ponder"}, folder / "both.ponder", {}, {});
    EXPECT_EQ(testing::sql_value(folder / "both.ponder", "PRAGMA user_version"),
              std::to_string(schema::plain_version));
    const TraceReader reader = TraceReader::open(folder / "both.ponder");
    ASSERT_EQ(reader.runs().size(), 4U);
    for (std::int64_t run = 1; run <= 3; ++run) {
        expect_steps_that_did_not_run(reader, run);
    }
    // The values in the file say it too, to whoever reads it without this program.
    EXPECT_EQ(
        testing::sql_value(folder / "both.ponder",
                           "SELECT count(*) > 0 FROM signal_chunk WHERE signal = 'rank' AND instr(data, "
                           "x'FFFFFFFF') > 0"),
        "1");
}

TEST(FirstVersion, AppendedToItReadsTheSameAndMoreIsThere) {
    const testing::TemporaryFolder folder;
    fs::copy_file(old_trace(), folder / "old.ponder");
    {
        TraceWriter writer(folder / "old.ponder");
        testing::write_sample_run(writer, "new", 1, {40}, 40);
        writer.finish();
    }
    const TraceReader reader = TraceReader::open(folder / "old.ponder");
    ASSERT_EQ(reader.runs().size(), 4U);
    expect_steps_that_did_not_run(reader, 1);
    EXPECT_EQ(reader.tokens(4, 0).size(), 40U);
}

TEST(FirstVersion, InTablesThereIsNothingWhereAStepDidNotRun) {
    const testing::TemporaryFolder folder;
    export_csv(TraceReader::open(old_trace()), folder / "tables", {1}, {}, {});
    for (const char* name : {"nll", "rank", "candidate_ids"}) {
        std::ifstream table(folder / "tables" / ("signals/" + std::string(name) + ".csv"));
        std::string line;
        std::getline(table, line);
        std::size_t empty = 0;
        std::size_t numbers = 0;
        while (std::getline(table, line)) {
            EXPECT_EQ(line.find("-1"), std::string::npos) << name << ": " << line;
            ++(line.ends_with(',') ? empty : numbers);
        }
        EXPECT_GT(empty, 10U) << name;
        EXPECT_GT(numbers, 10U) << name;
    }
}

} // namespace
} // namespace ponderscope
