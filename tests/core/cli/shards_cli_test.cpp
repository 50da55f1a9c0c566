// SPDX-License-Identifier: GPL-3.0-or-later
// record by several processes, merge --join, record --resume, and shards that are read as one run. The
// processes are started one after the other with the environment that a launcher would give them: nothing is
// said between them, so nothing but the environment can matter.
#include "core/trace/reader.h"
#include "tests/core/cli/shards_stage.h"
#include "tests/core/trace/sample.h"

#include <algorithm>

namespace ponderscope {
namespace {

using namespace testing;

TEST_F(Shards, OfAnyWorldAreJoinedToWhatOneProcessRecords) {
    const std::string alone = folder / "alone.ponder";
    succeed(record_to(alone));
    const auto expected = exported(alone);
    ASSERT_GE(expected.size(), 5U);
    succeed({"check", alone});
    {
        const InWorld world(0, 1); // one process is no world: its trace is whole
        const std::string one = folder / "one.ponder";
        succeed(record_to(one));
        expect_equal(expected, exported(one), "a world of one");
    }
    for (const int size : {2, 3, 7}) {
        const std::string trace = folder / ("world" + std::to_string(size) + ".ponder");
        record_in_world(trace, size);
        for (int rank = 0; rank < size; ++rank) {
            succeed({"check", shard(trace, rank, size)});
        }
        // As they are, by the name that they were recorded to; totals are sums of sums, to rounding.
        auto together = exported(trace);
        for (auto files : {expected, together}) {
            EXPECT_EQ(files.erase("runs.csv") + files.erase("sequences.csv"), 2U);
            together.erase("runs.csv");
            together.erase("sequences.csv");
            if (files.size() == together.size()) {
                expect_equal(files, together, "shards of " + std::to_string(size));
            }
        }
        EXPECT_EQ(together.size(), expected.size() - 2);
        const std::string joined = folder / ("joined" + std::to_string(size) + ".ponder");
        succeed({"merge", "--join", folder / ("world" + std::to_string(size) + ".r*"), "-o", joined});
        expect_equal(expected, exported(joined), "joined of " + std::to_string(size));
        succeed({"check", joined});
        succeed({"compare", alone, joined, "--json"});
    }
}

TEST_F(Shards, DrawsDoNotDependOnTheRank) {
    TinyCheckpoint ponderlm{.pondering_steps = 3};
    ponderlm.write(folder / "ponderlm");
    model = folder / "ponderlm";
    how.insert(how.end(), {"--policy", "geometric:rate=0.4,seed=5", "--record", "basic"});
    const std::string alone = folder / "alone.ponder";
    succeed(record_to(alone));
    const std::string trace = folder / "drawn.ponder";
    record_in_world(trace, 3);
    const std::string joined = folder / "joined.ponder";
    succeed({"merge", "--join", folder / "drawn.r*", "-o", joined});
    expect_equal(exported(alone), exported(joined), "drawn");
}

TEST_F(Shards, LongTextsAreDealtOutWhole) {
    std::vector<std::string> files;
    for (int file = 0; file < 9; ++file) {
        std::string text;
        for (int i = 0; i < 60 + 10 * file; ++i) {
            text += "Word " + std::to_string((i + file) * 7919) + " na\u00efve \U0001F600 ";
        }
        files.push_back(folder / ("long" + std::to_string(file) + ".txt"));
        write_file_atomically(files.back(), text);
    }
    const std::vector<std::string> options{"--context", "32", "--batch", "4", "--name", "run"};
    how = {"--text"};
    how.insert(how.end(), files.begin(), files.end());
    how.insert(how.end(), options.begin(), options.end());
    const std::string alone = folder / "alone.ponder";
    succeed(record_to(alone));
    std::int64_t longest = 0;
    for (const SequenceInfo& sequence : TraceReader::open(alone).sequences(1)) {
        longest = std::max(longest, sequence.tokens);
    }
    const std::string trace = folder / "long.ponder";
    record_in_world(trace, 3);
    std::vector<std::int64_t> tokens;
    for (int rank = 0; rank < 3; ++rank) {
        const TraceReader reader = TraceReader::open(shard(trace, rank, 3));
        tokens.push_back(reader.runs().front().tokens);
        EXPECT_GE(reader.sequences(1).size(), 2U);
        succeed({"check", shard(trace, rank, 3)});
    }
    EXPECT_LE(*std::max_element(tokens.begin(), tokens.end()),
              *std::min_element(tokens.begin(), tokens.end()) + longest);
    const std::string joined = folder / "joined.ponder";
    succeed({"merge", "--join", folder / "long.r*", "-o", joined});
    expect_equal(exported(alone), exported(joined), "long");
    // Of one text, one process records everything.
    how = {"--text", files.front()};
    how.insert(how.end(), options.begin(), options.end());
    succeed(record_to(folder / "one.ponder"));
    record_in_world(folder / "single.ponder", 2);
    EXPECT_EQ(TraceReader::open(shard(folder / "single.ponder", 1, 2)).runs().front().tokens, 0);
    const std::string single = folder / "single-joined.ponder";
    succeed({"merge", "--join", folder / "single.r*", "-o", single});
    expect_equal(exported(folder / "one.ponder"), exported(single), "one text");
}

TEST_F(Shards, ThatDoNotFitAreNamed) {
    const std::string trace = folder / "a.ponder";
    const std::string other = folder / "b.ponder";
    record_in_world(trace, 3);
    how.insert(how.end(), {"--bos", "never"});
    record_in_world(other, 3);
    const auto join = [&](std::vector<std::string> shards) {
        shards.insert(shards.begin(), {"merge", "--join", "-o", folder / "out.ponder"});
        const std::string result = refused(shards);
        EXPECT_FALSE(std::filesystem::exists(folder / "out.ponder"));
        return result;
    };
    const std::string missing = join({shard(trace, 0, 3), shard(trace, 2, 3)});
    EXPECT_NE(missing.find("rank 1; "), std::string::npos) << missing;
    EXPECT_NE(missing.find("[shard.missing]"), std::string::npos) << missing;
    std::filesystem::copy_file(shard(trace, 1, 3), folder / "a.r0001-of-0004.ponder");
    const std::string twice =
        join({shard(trace, 0, 3), shard(trace, 1, 3), folder / "a.r0001-of-0004.ponder", shard(trace, 2, 3)});
    EXPECT_NE(twice.find("a.r0001-of-0003.ponder"), std::string::npos) << twice;
    std::filesystem::remove(folder / "a.r0001-of-0004.ponder");
    // Shards of another run under the names of this one.
    std::filesystem::rename(shard(trace, 1, 3), folder / "kept");
    std::filesystem::copy_file(shard(other, 1, 3), shard(trace, 1, 3));
    const std::string mixed = join({folder / "a.r*"});
    EXPECT_NE(mixed.find("--bos"), std::string::npos) << mixed;
    expect_refused({"stats", trace}, {"[shard.mixed]"});
    std::filesystem::rename(folder / "kept", shard(trace, 1, 3));
    EXPECT_NE(join({folder / "*.r*"}).find("[shard.mixed]"), std::string::npos);
    sql(shard(trace, 2, 3), "UPDATE run SET complete = 0");
    const std::string partial = join({folder / "a.r*"});
    EXPECT_NE(partial.find("a.r0002-of-0003.ponder"), std::string::npos) << partial;
    EXPECT_NE(partial.find("[shard.missing]"), std::string::npos) << partial;
    EXPECT_NE(join({corpus}).find("corpus.jsonl"), std::string::npos);
    EXPECT_NE(join({folder / "c.r*"}).find("[shard.missing]"), std::string::npos);
}

TEST_F(Shards, WrongUseIsASentence) {
    const std::string trace = folder / "a.ponder";
    const InWorld world(1, 2);
    const auto sentence = [&](const std::vector<std::string>& more) {
        const std::string result = refused(Words{"record", model, "-o", trace} + more);
        EXPECT_FALSE(std::filesystem::exists(shard(trace, 1, 2)));
        return result;
    };
    const std::string alone = sentence({"--prompt", "some words", "--patch", "3"});
    EXPECT_TRUE(alone.find("--patch") < alone.find("[usage.unsuited]")) << alone;
    const std::string pipe = folder / "pipe";
    ASSERT_EQ(std::system(("mkfifo '" + pipe + "' && { cat '" + corpus + "' >'" + pipe + "' & }").c_str()),
              0);
    const std::string stream = sentence({"--jsonl", pipe});
    EXPECT_TRUE(stream.ends_with("[usage.unsuited]\n")) << stream;
    expect_refused({"record", model, "--prompt", "some words", "-o", folder / "a.trace"}, {"[usage.value]"});
    ::setenv("WORLD_SIZE", "two", 1);
    EXPECT_NE(sentence({"--prompt", "some words"}).find("WORLD_SIZE"), std::string::npos);
    ::setenv("WORLD_SIZE", "1", 1);
    EXPECT_NE(sentence({"--prompt", "some words"}).find("[usage.value]"), std::string::npos);
    ::setenv("WORLD_SIZE", "2", 1);
    expect_refused({"train", "recipe.json", "-o", folder / "trained"}, {"[usage.unsuited]"});
    succeed(record_to(trace));
    expect_refused(record_to(trace), {"[file.exists]"});
    // A run of other options is not gone on with.
    auto other = record_to(trace);
    other.insert(other.end(), {"--resume", "--record", "basic"});
    expect_refused(other, {"[resume.differs]"});
    const auto done = record_to(trace);
    auto resumed = done;
    resumed.emplace_back("--resume");
    const ProgramResult nothing = run_ponderscope(resumed);
    EXPECT_EQ(nothing.code, 0) << nothing.err;
    EXPECT_EQ(TraceReader::open(shard(trace, 1, 2)).runs().size(), 1U);
}

TEST_F(Shards, EveryLauncherIsUnderstood) {
    const std::map<std::string, std::vector<std::pair<std::string, std::string>>> launchers{
        {"srun", {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "1"}}},
        {"openmpi",
         {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}},
        {"mpich", {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}},
        // A batch script is one process, whatever its job may start.
        {"sbatch", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}}};
    for (const auto& [name, variables] : launchers) {
        for (const auto& [variable, value] : variables) {
            ::setenv(variable.c_str(), value.c_str(), 1);
        }
        const std::string trace = folder / (name + ".ponder");
        succeed(record_to(trace));
        EXPECT_TRUE(std::filesystem::exists(name == "sbatch" ? trace : shard(trace, 1, 2))) << name;
        for (const auto& [variable, value] : variables) {
            ::unsetenv(variable.c_str());
        }
    }
}

TEST_F(Shards, ACutOffRunOfOneProcessIsResumedToo) {
    const std::string alone = folder / "alone.ponder";
    succeed(record_to(alone));
    // As a kill leaves it: sequence 9 begun, and all behind it not there.
    const std::string trace = folder / "cut.ponder";
    std::filesystem::copy_file(alone, trace);
    sql(trace, "DELETE FROM token_row WHERE row >= 11 * 4294967296; DELETE FROM chunk WHERE sequence > 10;"
               "DELETE FROM text WHERE row >= 11 * 4294967296; DELETE FROM label WHERE sequence > 10;"
               "DELETE FROM sequence WHERE id > 10; UPDATE sequence SET complete = 0 WHERE id = 10;"
               "UPDATE run SET complete = 0; INSERT INTO fault (run, time, message) VALUES (1, "
               "'2026-01-01T00:00:00Z', 'Cancelled after 3 tokens.')");
    auto line = record_to(trace);
    line.emplace_back("--resume");
    const ProgramResult resumed = run_ponderscope(line);
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    expect_equal(exported(alone), exported(trace), "resumed");
    succeed({"check", trace});
}

TEST_F(Shards, RanksThatSeeOtherTextsOrOptionsAreRefused) {
    const std::string trace = folder / "a.ponder";
    const auto refused_as = [&](const std::vector<std::string>& line, std::vector<std::string> parts) {
        const InWorld world(1, 2);
        parts.emplace_back("[shard.mixed]");
        expect_refused(line, parts);
        EXPECT_FALSE(std::filesystem::exists(shard(trace, 1, 2)));
    };
    {
        const InWorld world(0, 2);
        succeed(record_to(trace));
    }
    const RunInfo first = TraceReader::open(shard(trace, 0, 2)).runs().front();
    auto other = record_to(trace);
    other.insert(other.end(), {"--bos", "never"});
    refused_as(other, {"--bos never"});
    other = record_to(trace);
    *std::find(other.begin(), other.end(), "4") = "3";
    refused_as(other, {"--batch 4", "--batch 3"});
    write_file_atomically(corpus, read_file(corpus) +
                                      "{\"text\": \"One more.\", \"author\": \"Ann\", \"parts\": \"x\"}\n");
    refused_as(record_to(trace), {first.text_digest.substr(0, 32)});
    TinyCheckpoint second{.seed = 2};
    second.write(model);
    std::string lines = read_file(corpus);
    lines.erase(lines.rfind("{\"text\": \"One more"));
    write_file_atomically(corpus, lines);
    refused_as(record_to(trace), {first.checkpoint_digest.substr(0, 32)});
}

TEST_F(Shards, AFullDiskOfOneRankLeavesWhatIsResumed) {
    const std::string alone = folder / "alone.ponder";
    succeed(record_to(alone));
    const std::string trace = folder / "t.ponder";
    {
        const InWorld world(0, 2);
        succeed(record_to(trace));
    }
    {
        // ulimit -f counts 512-byte blocks: room for a part of the shard.
        const InWorld world(1, 2);
        const auto blocks = std::filesystem::file_size(shard(trace, 0, 2)) / 512 / 2;
        const ProgramResult full = run_ponderscope(record_to(trace), "-f " + std::to_string(blocks));
        EXPECT_NE(full.code, 0);
    }
    auto line = record_to(trace);
    line.emplace_back("--resume");
    const InWorld world(1, 2);
    succeed(line);
    const std::string joined = folder / "joined.ponder";
    succeed({"merge", "--join", folder / "t.r*", "-o", joined});
    expect_equal(exported(alone), exported(joined), "after a full disk");
}

} // namespace
} // namespace ponderscope
