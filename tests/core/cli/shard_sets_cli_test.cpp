// SPDX-License-Identifier: GPL-3.0-or-later
// Shards as one run: annotations, check, joins that stay packed, shards that are unfinished or hostile.
#include "core/trace/reader.h"
#include "tests/core/cli/shards_stage.h"
#include "tests/core/trace/sample.h"

namespace ponderscope {
namespace {

using namespace testing;

class ShardSets : public Shards {
protected:
    std::string shards = folder / "shards";
    std::string trace = folder / "shards/a.ponder";
    std::string first = shard(trace, 0, 2);
    std::string second = shard(trace, 1, 2);

    /// By two processes.
    void record(const std::vector<std::string>& more = {}) {
        std::filesystem::create_directory(shards);
        how.insert(how.end(), more.begin(), more.end());
        record_in_world(trace, 2);
    }
    [[nodiscard]] static std::size_t columns(const std::string& named) {
        const nlohmann::json rows = json_of({"annotate", named});
        for (const auto& row : rows) {
            EXPECT_EQ(row.at("fits"), true) << row;
        }
        return rows.size();
    }
};

TEST_F(ShardSets, HaveOneSetOfAnnotationsWhicheverWayTheyAreNamed) {
    record();
    const std::string pattern = folder / "shards/a.r*";
    succeed({"annotate", shards, "--derive", "one=nll@0"});
    succeed({"annotate", pattern, "--derive", "two=nll@last"});
    succeed({"annotate", trace, "--derive", "three=entropy@0"});
    for (const std::string& named : {shards, pattern, trace}) {
        EXPECT_EQ(columns(named), 3U) << named;
    }
    EXPECT_TRUE(std::filesystem::exists(trace + ".annotations"));
    succeed({"stats", shards, "--by", "one"});
    // Joined under another name they come along; under their own they are there already.
    for (const std::string& output : {std::string(folder / "joined.ponder"), trace}) {
        succeed({"merge", "--join", shards, "-o", output});
        EXPECT_EQ(columns(output), 3U) << output;
    }
}

TEST_F(ShardSets, WhatIsCompressedStaysSo) {
    record({"--compress"});
    const std::string packed = "SELECT count(*) FROM chunk WHERE dtype LIKE '%+zstd'";
    const std::string joined = folder / "joined.ponder";
    succeed({"merge", "--join", shards, "-o", joined});
    EXPECT_GT(std::stoll(sql_value(joined, packed)), 0);
    const std::string merged = folder / "merged.ponder";
    succeed({"merge", joined, "-o", merged});
    EXPECT_EQ(sql_value(merged, packed), sql_value(joined, packed));
}

TEST_F(ShardSets, AreNotHiddenByReruns) {
    record();
    const std::string pattern = folder / "shards/a.r*";
    for (const auto& [verb, rule] : {std::pair{"policy", "fixed:n=0"}, {"referee", "fixed"}}) {
        for (const std::string& named : {trace, shards, pattern}) {
            expect_refused({verb, named, "--policy", rule, "--rerun", folder / "model"}, {"--output"});
        }
        expect_refused({verb, shards, "--policy", rule, "--rerun", folder / "model", "-o", trace},
                       {"[usage.conflict]"});
    }
    EXPECT_FALSE(std::filesystem::exists(trace));
    EXPECT_FALSE(std::filesystem::exists(pattern));
}

TEST_F(ShardSets, AreCheckedEach) {
    record();
    const ProgramResult sound = run_ponderscope({"check", shards});
    EXPECT_EQ(sound.code, 0) << sound.out << sound.err;
    EXPECT_NE(sound.out.find(first), std::string::npos) << sound.out;
    EXPECT_NE(sound.out.find(second), std::string::npos) << sound.out;
    sql(second, "UPDATE run SET tokens = 5");
    const ProgramResult broken = run_ponderscope({"check", trace, "--json"});
    EXPECT_EQ(broken.code, 1);
    const auto reports = nlohmann::json::parse(broken.out);
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_EQ(reports[0].at("sound"), true);
    EXPECT_EQ(reports[1].at("sound"), false);
}

TEST_F(ShardSets, UnfinishedOnesCountWhatCanBeRead) {
    record();
    // As a kill leaves it: the second process finished nothing, and the first one is done.
    const std::string behind = " (SELECT id FROM sequence)";
    sql(second, "DELETE FROM chunk WHERE sequence IN" + behind +
                    "; DELETE FROM token_row WHERE row / 4294967296 IN" + behind +
                    "; DELETE FROM text WHERE row / 4294967296 IN" + behind +
                    "; DELETE FROM sequence WHERE id IN" + behind + "; UPDATE run SET complete = 0");
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo run = reader.runs().front();
    std::int64_t tokens = 0;
    double nll = 0;
    for (const SequenceInfo& sequence : reader.sequences(run.id)) {
        tokens += static_cast<std::int64_t>(reader.tokens(run.id, sequence.number).size());
        nll += sequence.nll_sum;
    }
    EXPECT_FALSE(run.complete);
    EXPECT_GT(tokens, 0);
    EXPECT_EQ(run.tokens, tokens);
    EXPECT_EQ(run.nll_sum, nll);
    EXPECT_LT(tokens, TraceReader::open(first).runs().front().tokens);
}

TEST_F(ShardSets, HostileOnesAreASentence) {
    record();
    sql(second, "UPDATE sequence SET joined_number = 0 WHERE number = 0");
    expect_refused({"export", trace, "-o", folder / "tables"}, {"[trace.damaged]"});
    sql(second, "UPDATE sequence SET joined_number = NULL WHERE number = 0");
    expect_refused({"export", trace, "-o", folder / "tables"}, {"[trace.damaged]"});
    sql(first, "UPDATE shard SET world = 1000000000000000");
    sql(second, "UPDATE shard SET world = 1000000000000000");
    expect_refused({"inspect", trace}, {"[trace.damaged]"});
}

TEST_F(ShardSets, ARankOfAnotherVersionIsRefused) {
    record();
    std::filesystem::remove(second);
    sql(first, "UPDATE run SET versions = replace(versions, '\"ponderscope\":\"', '\"ponderscope\":\"0.')");
    const InWorld world(1, 2);
    expect_refused(record_to(trace), {"versions", "[shard.mixed]"});
    EXPECT_FALSE(std::filesystem::exists(second));
}

TEST_F(ShardSets, ATraceIsInspectedWithoutTheEngine) {
    record();
    // The program alone, as it is on a machine that only looks.
    const std::string alone = folder / "ponderscope";
    std::filesystem::copy_file(PONDERSCOPE_PROGRAM, alone);
    const auto inspects = [&](const std::string& what) {
        return std::system(("'" + alone + "' inspect '" + what + "' >/dev/null 2>&1").c_str());
    };
    EXPECT_EQ(inspects(first), 0);
    EXPECT_EQ(inspects(shards), 0);
    EXPECT_NE(inspects(folder / "model"), 0) << "a checkpoint needs the engine";
    // What an option is given is no trace, whatever file has its name.
    write_file_atomically(folder / "vanilla", "x");
    const ProgramResult method =
        run_ponderscope({"inspect", "--method", folder / "vanilla", folder / "model"});
    EXPECT_EQ(method.err.find("[usage.option]"), std::string::npos) << method.err;
    const std::string words = succeed({"inspect", "--json", first});
    EXPECT_TRUE(nlohmann::json::accept(words));
}

TEST_F(ShardSets, OptionsThatWouldDoNothingAreRefused) {
    const Words scalars{"record", folder / "model",    "--prompt", "words",
                        "-o",     folder / "b.ponder", "--record", "scalars"};
    expect_refused(scalars + std::vector<std::string>{"--attention", "all"}, {"[usage.unsuited]"});
    expect_refused(scalars + std::vector<std::string>{"--no-candidates"}, {"[usage.unsuited]"});
}

} // namespace
} // namespace ponderscope
