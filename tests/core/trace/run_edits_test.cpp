// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/run_edits.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/tools/check.h"
#include "core/trace/tools/merge.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"

#include <future>
#include <gtest/gtest.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

class RunEdits : public testing::TraceTest {
protected:
    void SetUp() override {
        testing::add_sample_run(path, "first", 1, {500, 3}, 99);
        testing::add_sample_run(path, "second", 2, {700}, 100);
        testing::add_sample_run(path, "third", 3, {400}, 100);
    }
};

std::vector<std::string> names_of(const fs::path& path) {
    std::vector<std::string> names;
    for (const RunInfo& run : TraceReader::open(path).runs()) {
        names.push_back(run.name);
    }
    return names;
}

/// Of the file, and not of what its sample runs say: rows that belong to nothing.
std::vector<std::string> faults_of(const fs::path& path) {
    std::vector<std::string> faults;
    for (const TraceFault& fault : check_trace(path).faults) {
        if (fault.place.empty()) {
            faults.push_back(fault.message);
        }
    }
    return faults;
}

RunInfo run_named(const fs::path& path, const std::string& name) {
    return find_run(TraceReader::open(path), name);
}

TEST_F(RunEdits, ARemovedRunLeavesASmallerTraceWithTheOthersUnderTheirIds) {
    const auto before = fs::file_size(path);
    const TokenColumns kept = TraceReader::open(path).tokens(3, 0);
    const RunInfo second = run_named(path, "second");
    remove_run(path, second);
    EXPECT_EQ(names_of(path), (std::vector<std::string>{"first", "third"}));
    EXPECT_EQ(run_named(path, "third").id, 3);
    EXPECT_EQ(TraceReader::open(path).tokens(3, 0).nll.size(), kept.nll.size());
    EXPECT_EQ(TraceReader::open(path).tokens(3, 0).id, kept.id);
    EXPECT_LT(fs::file_size(path), before);
    EXPECT_EQ(faults_of(path), std::vector<std::string>{});
    EXPECT_EQ(testing::names_in(folder.path()).size(), 1U);
    // It can be recorded into again.
    testing::add_sample_run(path, "second", 2, {30}, 100);
    EXPECT_EQ(names_of(path), (std::vector<std::string>{"first", "third", "second"}));
    EXPECT_EQ(faults_of(path), std::vector<std::string>{});
}

TEST_F(RunEdits, WhoReadsMeanwhileGoesOnReadingTheOldOne) {
    const TraceReader reader = TraceReader::open(path);
    ASSERT_EQ(reader.runs().size(), 3U);
    remove_run(path, run_named(path, "first"));
    EXPECT_EQ(reader.runs().size(), 3U);
    EXPECT_EQ(reader.tokens(1, 0).size(), 500U);
    EXPECT_EQ(names_of(path).size(), 2U);
}

TEST_F(RunEdits, TwoThatRemoveTheSameRunRemoveItOnce) {
    const RunInfo second = run_named(path, "second");
    std::vector<std::future<std::string>> windows;
    for (int i = 0; i < 2; ++i) {
        windows.push_back(std::async(std::launch::async,
                                     [&] { return testing::error_id([&] { remove_run(path, second); }); }));
    }
    std::vector<std::string> said{windows[0].get(), windows[1].get()};
    std::sort(said.begin(), said.end());
    EXPECT_EQ(said[0], "");
    EXPECT_TRUE(said[1] == "trace.run" || said[1] == "trace.locked") << said[1];
    EXPECT_EQ(names_of(path), (std::vector<std::string>{"first", "third"}));
    // A run of that name that was recorded since is another one.
    RunInfo other = run_named(path, "third");
    other.started = "2001-01-01T00:00:00Z";
    EXPECT_THROW(remove_run(path, other), InputError);
    EXPECT_THROW(rename_run(path, second, "x"), InputError);
    EXPECT_EQ(names_of(path).size(), 2U);
}

TEST_F(RunEdits, WhoeverRecordsIsLeftAlone) {
    const RunInfo first = run_named(path, "first");
    TraceWriter writer(path);
    testing::write_sample_run(writer, "fourth", 4, {30}, 100);
    EXPECT_THROW(remove_run(path, first), InputError);
    EXPECT_THROW(rename_run(path, first, "x"), InputError);
    writer.finish();
    EXPECT_EQ(names_of(path).size(), 4U);
}

TEST_F(RunEdits, ACancelledRemovalLeavesEverything) {
    std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW(remove_run(path, run_named(path, "first"), stop.get_token()), Cancelled);
    EXPECT_EQ(names_of(path).size(), 3U);
    EXPECT_EQ(testing::names_in(folder.path()).size(), 1U);
}

TEST_F(RunEdits, ARenamedRunTakesItsAnnotationsAlong) {
    const RunInfo second = run_named(path, "second");
    put_annotations(path, second, TraceReader::open(path).sequences(second.id),
                    {{"score", false, {}, {std::vector<double>(700, 0.5)}}});
    rename_run(path, second, "better # name");
    EXPECT_EQ(names_of(path), (std::vector<std::string>{"first", "better # name", "third"}));
    const RunInfo renamed = run_named(path, "better # name");
    EXPECT_EQ(renamed.id, 2);
    ASSERT_EQ(AnnotationReader::beside(path)->fitting(renamed).size(), 1U);
    EXPECT_EQ(faults_of(path), std::vector<std::string>{});
    for (const std::string& wrong : {std::string(), std::string("two\nlines"), std::string("\xff"),
                                     std::string("first"), std::string(1001, 'x')}) {
        EXPECT_THROW(rename_run(path, renamed, wrong), InputError) << wrong;
    }
    EXPECT_EQ(names_of(path)[1], "better # name");
}

TEST_F(RunEdits, ARenamedRunDoesNotTakeOverWhatWasSaidOfARemovedOne) {
    const auto annotate = [&](const std::string& name, std::size_t tokens, double value) {
        const RunInfo run = run_named(path, name);
        put_annotations(path, run, TraceReader::open(path).sequences(run.id),
                        {{"score", false, {}, {std::vector<double>(tokens, value)}}});
    };
    annotate("second", 700, 0.5);
    annotate("third", 400, 2.5);
    remove_run(path, run_named(path, "second"));
    // Neither one that has none of its own nor one that has some.
    rename_run(path, run_named(path, "first"), "second");
    EXPECT_TRUE(AnnotationReader::beside(path)->of(run_named(path, "second")).empty());
    EXPECT_EQ(AnnotationReader::beside(path)->of(run_named(path, "third")).size(), 1U);
    annotate("third", 400, 2.5);
    remove_run(path, run_named(path, "third"));
    rename_run(path, run_named(path, "second"), "third");
    EXPECT_FALSE(AnnotationReader::beside(path)) << "there is nothing left to say";
}

TEST_F(RunEdits, ARunIsCopiedIntoAnotherTraceOrANewOne) {
    const fs::path other = folder / "other.ponder";
    EXPECT_EQ(copy_run(path, 2, other), "second");
    EXPECT_EQ(copy_run(path, 2, other), "second (2)");
    EXPECT_EQ(names_of(other), (std::vector<std::string>{"second", "second (2)"}));
    EXPECT_EQ(TraceReader::open(other).text(2, 0), TraceReader::open(path).text(2, 0));
    EXPECT_EQ(faults_of(other), std::vector<std::string>{});
    EXPECT_THROW(copy_run(path, 2, path), InputError);
    EXPECT_THROW(copy_run(path, 9, other), InputError);
    write_file_atomically(folder / "letter.txt", "dear all");
    EXPECT_THROW(copy_run(path, 2, folder / "letter.txt"), InputError);
    EXPECT_EQ(read_file(folder / "letter.txt"), "dear all");
}

TEST_F(RunEdits, WhatIsNotCopiedWholeIsTakenOutAgain) {
    const fs::path other = folder / "other.ponder";
    ASSERT_EQ(copy_run(path, 1, other), "first");
    std::stop_source stop;
    const ProgressSink cancelling = [&](const Progress&) { stop.request_stop(); };
    testing::add_sample_run(path, "long", 5, {40000}, 9999); // long enough for a second page
    EXPECT_THROW(copy_run(path, 4, other, cancelling, stop.get_token()), Cancelled);
    EXPECT_EQ(names_of(other), (std::vector<std::string>{"first"}));
    EXPECT_EQ(faults_of(other), std::vector<std::string>{});
    EXPECT_THROW(copy_run(path, 4, folder / "new.ponder", cancelling, stop.get_token()), Cancelled);
    EXPECT_FALSE(fs::exists(folder / "new.ponder"));
    EXPECT_EQ(testing::names_in(folder.path()).size(), 2U);
}

} // namespace
} // namespace ponderscope
