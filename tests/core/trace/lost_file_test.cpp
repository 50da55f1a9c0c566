// SPDX-License-Identifier: GPL-3.0-or-later
// A trace whose files are moved, removed or replaced while it is written, and what lies beside it afterwards.
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "core/trace/tools/check.h"
#include "core/trace/tools/merge.h"
#include "core/trace/tools/run_edits.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using LostFile = testing::TraceTest;

void remove_all_files_of(const fs::path& trace) {
    for (const char* suffix : {"", "-wal", "-shm", "-lock"}) {
        fs::remove(trace.string() + suffix);
    }
}

std::vector<std::string> files_beside(const fs::path& trace) {
    std::vector<std::string> names;
    for (const char* suffix : {"-wal", "-shm", "-journal", "-lock"}) {
        if (fs::exists(trace.string() + suffix)) {
            names.emplace_back(suffix);
        }
    }
    return names;
}

/// Writes a run of two sequences; \p between is called when the first is on the disk. Returns the error of
/// finish() or of a call before it.
template <typename Between>
std::string write_with(const fs::path& path, const Between& between) {
    return testing::error_of<EnvironmentError>([&] {
        TraceWriter writer(path);
        writer.begin_run(testing::sample_run("run"), testing::sample_signals());
        for (int sequence = 0; sequence < 2; ++sequence) {
            testing::add_sample_sequence(writer, 1, 40);
            if (sequence == 0) {
                while (TraceReader::open(path).sequences(1).empty() ||
                       !TraceReader::open(path).sequences(1).front().complete) {
                    ::usleep(2000);
                }
                between();
            }
        }
        writer.put_vocabulary({{7, "<7>"}});
        writer.end_run(1);
        writer.finish();
    });
}

void expect_first_sequence(const fs::path& path) {
    const TraceReader reader = TraceReader::open(path);
    EXPECT_TRUE(testing::is_sound(path));
    const std::vector<RunInfo> runs = reader.runs();
    ASSERT_EQ(runs.size(), 1U);
    // The loss is noticed with a commit, and the whole run may have been in that one.
    EXPECT_EQ(reader.faults(1).size(), runs.front().complete ? 0U : 1U) << "a partial run says why it ended";
    const std::vector<SequenceInfo> sequences = reader.sequences(1);
    ASSERT_GE(sequences.size(), 1U);
    EXPECT_TRUE(sequences.front().complete);
    EXPECT_EQ(reader.tokens(1, 0).id, testing::sample_tokens(1, 0, 40, 40).id);
}

TEST_F(LostFile, ARemovedTraceIsSavedAndTheWriterSaysSo) {
    for (const bool with_its_log : {true, false}) {
        const std::string said =
            write_with(path, [&] { with_its_log ? remove_all_files_of(path) : (void)fs::remove(path); });
        EXPECT_TRUE(said.ends_with("[file.changed]")) << said;
        EXPECT_TRUE(files_beside(path).empty()) << "a log there would be taken for that of the saved trace";
        expect_first_sequence(path);
        remove_all_files_of(path);
    }
}

TEST_F(LostFile, AMovedTraceIsWholeWhereItLies) {
    const fs::path moved = folder / "moved.ponder";
    const std::string said = write_with(path, [&] { fs::rename(path, moved); });
    EXPECT_NE(said.find(moved.string()), std::string::npos) << said;
    expect_first_sequence(moved);
    EXPECT_FALSE(fs::exists(path));
    EXPECT_TRUE(files_beside(path).empty()) << "a log there would be taken for that of a later trace";
}

TEST_F(LostFile, WhatReplacedTheTraceStaysAsItIs) {
    const fs::path other = folder / "other.ponder";
    testing::add_sample_run(other, "other", 3, {5}, 5);
    const std::string before = read_file(other);
    const std::string said = write_with(path, [&] { fs::rename(other, path); });
    EXPECT_TRUE(said.ends_with("[file.changed]")) << said;
    EXPECT_EQ(read_file(path), before);
    EXPECT_TRUE(files_beside(path).empty());
    expect_first_sequence(folder / "a-saved.ponder");
}

TEST_F(LostFile, ALogThatIsRemovedIsMadeAnew) {
    TraceWriter writer(path);
    const auto sequences = [&]() -> std::size_t {
        try {
            return TraceReader::open(path).sequences(1).size();
        } catch (const Error&) {
            return 0; // between the removal and the next commit
        }
    };
    const auto write_one = [&] { testing::add_sample_sequence(writer, 1, 40); };
    const auto wait_for = [&](std::size_t count) {
        for (int i = 0; i < 2000 && sequences() < count; ++i) {
            ::usleep(2000);
        }
        return sequences();
    };
    writer.begin_run(testing::sample_run("run"), testing::sample_signals());
    write_one();
    ASSERT_EQ(wait_for(1), 1U);
    fs::remove(path.string() + "-wal");
    fs::remove(path.string() + "-shm");
    write_one(); // finds that it is gone
    write_one();
    EXPECT_EQ(wait_for(3), 3U) << "readers see what was written since";
    writer.end_run(1);
    writer.finish();
    EXPECT_TRUE(testing::is_sound(path));
    EXPECT_TRUE(TraceReader::open(path).runs().front().complete);
    EXPECT_TRUE(files_beside(path).empty());
}

TEST_F(LostFile, AMergeWhoseFileIsRemovedFails) {
    testing::add_sample_run(path, "run", 1, {40, 40}, 40);
    const fs::path output = folder / "b.ponder";
    const fs::path passing = output.string() + ".merging-" + std::to_string(::getpid());
    EXPECT_THROW(merge_runs({{path, ""}}, output,
                            [&](const Progress& progress) {
                                if (progress.activity == "merging") {
                                    remove_all_files_of(passing);
                                }
                            }),
                 EnvironmentError);
    EXPECT_FALSE(fs::exists(output));
    EXPECT_EQ(testing::names_in(folder.path()).size(), 1U);
}

TEST_F(LostFile, TheLastReaderTakesTheLogAlong) {
    testing::add_sample_run(path, "first", 1, {40}, 40);
    {
        TraceWriter writer(path);
        std::optional<TraceReader> reader(TraceReader::open(path));
        const TraceReader idle = TraceReader::open(path);
        std::shared_ptr<const void> transaction = reader->pin_snapshot();
        testing::write_sample_run(writer, "second", 2, {40}, 40);
        writer.finish();
        EXPECT_TRUE(fs::exists(path.string() + "-wal")) << "while somebody reads";
        transaction.reset();
        reader.reset();
        EXPECT_TRUE(fs::exists(path.string() + "-wal")) << "another reader is there";
    }
    EXPECT_TRUE(files_beside(path).empty());
    fs::copy_file(path, folder / "copy.ponder");
    EXPECT_EQ(TraceReader::open(folder / "copy.ponder").runs().size(), 2U);
}

TEST_F(LostFile, ACopyOfTheFileHasTheNewNameWhileOthersRead) {
    std::optional<TraceReader> reader;
    {
        TraceWriter writer(path);
        testing::write_sample_run(writer, "run", 1, {40}, 40);
        reader.emplace(TraceReader::open(path));
        writer.finish(); // stays in WAL mode for the reader
    }
    rename_run(path, reader->runs().front(), "renamed");
    fs::copy_file(path, folder / "copy.ponder");
    EXPECT_EQ(TraceReader::open(folder / "copy.ponder").runs().front().name, "renamed");
    EXPECT_EQ(reader->runs().front().name, "renamed");
    reader.reset();
    EXPECT_TRUE(files_beside(path).empty());
}

TEST_F(LostFile, AReaderLeavesALiveWritersLogAlone) {
    TraceWriter writer(path);
    writer.begin_run(testing::sample_run("run"), testing::sample_signals());
    while (TraceReader::open(path).runs().empty()) {
        ::usleep(2000);
    }
    EXPECT_TRUE(fs::exists(path.string() + "-wal"));
    writer.finish();
    EXPECT_TRUE(files_beside(path).empty());
}

TEST_F(LostFile, AWriterThatGetsNoThreadSaysSoAndLeavesNoFile) {
    ::chmod(folder.path().c_str(), 0777);
    const pid_t child = ::fork();
    if (child == 0) {
        constexpr uid_t nobody = 65534; // limits are not root's
        const rlimit no_process{0, 0};
        if (::setrlimit(RLIMIT_NPROC, &no_process) != 0 || (::geteuid() == 0 && ::setuid(nobody) != 0)) {
            ::_exit(4);
        }
        try {
            const TraceWriter writer(path);
            ::_exit(1);
        } catch (const EnvironmentError&) {
            ::_exit(fs::exists(path) ? 2 : 0);
        } catch (...) {
            ::_exit(3);
        }
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "1: it got a thread; 2: the file stayed; 3: another exception";
    EXPECT_TRUE(files_beside(path).empty());
}

} // namespace
} // namespace ponderscope
