// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/annotations.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "core/trace/tools/check.h"
#include "core/trace/tools/export_csv.h"
#include "core/trace/tools/merge.h"
#include "tests/core/trace/page_examples.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <sqlite3.h>
#include <sstream>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

class Annotated : public testing::TraceTest {
protected:
    void SetUp() override { testing::add_sample_run(path, "run", 1, {30, 12}, 15); }

    [[nodiscard]] RunInfo run() const { return find_run(TraceReader::open(path), "run"); }
    [[nodiscard]] std::vector<SequenceInfo> sequences() const {
        return TraceReader::open(path).sequences(run().id);
    }
    /// Categories at every third token, of both sequences.
    static Annotation parts() {
        Annotation one{"part_of_speech", true, {"NOUN", "VERB"}, {{}, {}}};
        for (int t = 0; t < 42; ++t) {
            one.values[t < 30 ? 0 : 1].push_back(t % 3 == 0 ? t % 2 : none);
        }
        return one;
    }
    static Annotation numbers(const std::string& name = "score") {
        Annotation one{name, false, {}, {std::vector<double>(30, none), std::vector<double>(12, 0.5)}};
        one.values[0][7] = -2.25;
        return one;
    }
    void put(const std::vector<Annotation>& annotations) const {
        put_annotations(path, run(), sequences(), annotations);
    }
    [[nodiscard]] std::string trouble(const Annotation& annotation) const {
        return testing::error_of([&] { put({annotation}); });
    }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> result;
        const auto reader = AnnotationReader::beside(path);
        for (const AnnotationInfo& one : reader ? reader->all() : std::vector<AnnotationInfo>()) {
            result.push_back(one.name);
        }
        return result;
    }
};

TEST_F(Annotated, ComeBackAsTheyWerePutAndTheTraceStaysAsItWas) {
    const std::string before = read_file(path);
    const std::size_t faults = check_trace(path).faults.size(); // the sample's digests are none
    EXPECT_FALSE(AnnotationReader::beside(path));
    put({parts(), numbers()});
    EXPECT_EQ(read_file(path), before);
    const auto reader = AnnotationReader::beside(path);
    ASSERT_TRUE(reader);
    ASSERT_EQ(names(), (std::vector<std::string>{"part_of_speech", "score"}));
    const AnnotationInfo pos = find_annotation(reader, path, run(), "part_of_speech");
    EXPECT_TRUE(pos.category);
    EXPECT_EQ(pos.classes, (std::vector<std::string>{"NOUN", "VERB"}));
    const std::vector<double> some = reader->values(pos, 0, 2, 8);
    ASSERT_EQ(some.size(), 6U);
    EXPECT_TRUE(std::isnan(some[0]));
    EXPECT_EQ(some[1], 1); // token 3
    EXPECT_EQ(some[4], 0); // token 6
    const AnnotationInfo score = find_annotation(reader, path, run(), "score");
    EXPECT_FALSE(score.category);
    EXPECT_EQ(reader->values(score, 0, 7, 8), (std::vector<double>{-2.25}));
    EXPECT_EQ(reader->values(score, 1, 0, 12), std::vector<double>(12, 0.5));
    EXPECT_EQ(check_trace(path).faults.size(), faults);
    // A link leads to the same ones.
    fs::create_symlink(path, folder / "link.ponder");
    EXPECT_EQ(AnnotationReader::beside(folder / "link.ponder")->all().size(), 2U);
    fs::remove(folder / "link.ponder");
    // Only the trace and its annotations are there: no lock, no journal, no passing file.
    EXPECT_EQ(testing::names_in(folder.path()),
              (std::vector<std::string>{"a.ponder", "a.ponder.annotations"}));
}

TEST_F(Annotated, OneOfTheSameNameIsReplacedAndOthersStay) {
    put({parts(), numbers()});
    Annotation other = numbers();
    other.values[0][7] = 4;
    put({other});
    EXPECT_EQ(names(), (std::vector<std::string>{"part_of_speech", "score"}));
    const auto reader = AnnotationReader::beside(path);
    EXPECT_EQ(reader->values(find_annotation(reader, path, run(), "score"), 0, 7, 8)[0], 4);
    remove_annotations(path, run(), {"part_of_speech"});
    EXPECT_EQ(names(), (std::vector<std::string>{"score"}));
    EXPECT_THROW(remove_annotations(path, run(), {"part_of_speech"}), InputError);
    remove_annotations(path, run(), {"score"});
    EXPECT_FALSE(fs::exists(annotations_path(path)));
}

TEST_F(Annotated, WhatCannotBeIsRefusedAndNothingIsWritten) {
    const auto refused = [&](const Annotation& one, const std::string& says) {
        const std::string sentence = trouble(one);
        EXPECT_NE(sentence.find(says), std::string::npos) << sentence;
        EXPECT_FALSE(fs::exists(annotations_path(path)));
    };
    for (const char* name : {"", "1st", "part of speech", "<script>", "a\nb",
                             "a\xE2\x80\xAE"
                             "b",
                             "\xC3\xA4", "nll", "Steps", "AND", "text_begin"}) {
        refused(numbers(name), "[annotation.table]");
    }
    refused(numbers(std::string(65, 'a')), "[annotation.table]");
    Annotation one = parts();
    one.classes[1] = "VE\xE2\x80\xAERB";
    refused(one, "U+202E at byte 2");
    one.classes[1] = "VERB\x07";
    refused(one, "U+0007 at byte 4");
    one.classes[1] = "VERB\xFF";
    refused(one, "[annotation.table]");
    one.classes[1] = "";
    refused(one, "[annotation.table]");
    one = parts();
    one.values[0][0] = 2;
    refused(one, " 2");
    one = numbers();
    one.values[0][0] = std::numeric_limits<double>::infinity();
    refused(one, " inf");
    one = numbers();
    one.values[0].pop_back();
    refused(one, " 29 ");
    one.values.pop_back();
    refused(one, " 1.");
    one = numbers();
    one.values = {std::vector<double>(30, none), std::vector<double>(12, none)};
    refused(one, "[annotation.table]");
    one = parts();
    one.classes.assign(257, "x");
    refused(one, " 257");
    put({numbers("Score")});
    EXPECT_NE(trouble(numbers("score")).find(" Score;"), std::string::npos);
}

TEST_F(Annotated, ThoseOfAnotherTextAreNoticed) {
    put({numbers()});
    fs::remove(path);
    testing::add_sample_run(path, "run", 1, {30, 13}, 15);
    EXPECT_NE(misfit_of(AnnotationReader::beside(path)->all()[0], run()), "");
    const std::string refusal = testing::error_of(
        [&] { (void)find_annotation(AnnotationReader::beside(path), path, run(), "score"); });
    EXPECT_TRUE(refusal.ends_with("[annotation.other]")) << refusal;
    const TraceCheck check = check_trace(path);
    EXPECT_TRUE(std::any_of(check.faults.begin(), check.faults.end(), [](const TraceFault& fault) {
        return fault.place == "annotation score of run";
    }));
    // The table leaves them out.
    export_csv(TraceReader::open(path), folder / "tables");
    const std::string tokens = read_file(folder / "tables" / "tokens.csv");
    EXPECT_EQ(tokens.substr(0, tokens.find('\n')).find("score"), std::string::npos);
}

TEST_F(Annotated, AFileThatIsNoneIsSaidAndDamageIsNotRead) {
    const fs::path beside = annotations_path(path);
    const auto says = [&](const std::string& part, const std::string& id) {
        const std::string refusal = testing::error_of([&] {
            const auto reader = AnnotationReader::beside(path);
            for (const AnnotationInfo& one : reader->all()) {
                reader->each(one, [](std::int64_t, std::int64_t, double) {});
            }
        });
        EXPECT_NE(refusal.find(part), std::string::npos) << refusal;
        EXPECT_TRUE(refusal.ends_with(id + ']')) << refusal;
        const TraceCheck check = check_trace(path);
        EXPECT_TRUE(std::any_of(check.faults.begin(), check.faults.end(),
                                [](const TraceFault& fault) { return fault.place == "annotations"; }));
    };
    write_file_atomically(beside, "no database at all, but a text of more than a hundred bytes so that "
                                  "there is a header's worth of it");
    says("", "[trace.kind");
    fs::copy_file(path, beside, fs::copy_options::overwrite_existing);
    says("", "[trace.kind");
    put_annotations(folder / "b.ponder", run(), sequences(), {parts()});
    const fs::path good = annotations_path(folder / "b.ponder");
    const auto spoilt = [&](const std::string& statement, const std::string& part,
                            const std::string& id = "[annotation.damaged") {
        fs::copy_file(good, beside, fs::copy_options::overwrite_existing);
        testing::sql(beside, statement);
        says(part, id);
    };
    spoilt("UPDATE annotation_value SET value = 2 WHERE position = 3", " 2");
    spoilt("UPDATE annotation_value SET value = 0.5 WHERE position = 3", " 0.5");
    spoilt("UPDATE annotation SET name = '<img src=x>'", "<img src=x>");
    spoilt("UPDATE annotation_class SET name = 'a' || char(8238) || 'b' WHERE number = 0", "U+202E");
    spoilt("UPDATE annotation_class SET number = 7 WHERE number = 1", " 7 ");
    spoilt("UPDATE annotation SET kind = 'colour'", "colour");
    spoilt("DROP TABLE annotation_value", " annotation_value", "[trace.damaged");
    spoilt("DROP TABLE annotation_value; CREATE VIEW annotation_value AS SELECT 1", " annotation_value",
           "[trace.damaged");
    spoilt("PRAGMA user_version = 2", "version 2", "[trace.kind");
    fs::copy_file(good, beside, fs::copy_options::overwrite_existing);
    fs::resize_file(beside, fs::file_size(beside) / 2);
    says("", "damaged");
}

TEST_F(Annotated, ValuesBeyondTheRunAreFound) {
    put({parts()});
    testing::sql(annotations_path(path), "UPDATE annotation_value SET position = 30 WHERE sequence = 0 AND "
                                         "position = 27; UPDATE annotation_value SET sequence = 5 WHERE "
                                         "sequence = 1 AND position = 0");
    const TraceCheck check = check_trace(path);
    const auto said = [&](const std::string& words) {
        return std::any_of(check.faults.begin(), check.faults.end(), [&](const TraceFault& fault) {
            return fault.message.find(words) != std::string::npos;
        });
    };
    EXPECT_TRUE(said("sequence 0, token 30"));
    EXPECT_TRUE(said("sequence 5, token 0"));
}

TEST_F(Annotated, AreExportedAndMergedUnderTheNewNames) {
    put({parts(), numbers()});
    testing::add_sample_run(folder / "b.ponder", "run", 1, {8}, 15);
    merge_runs({{folder / "b.ponder", ""}, {path, ""}}, folder / "all.ponder");
    const TraceReader merged = TraceReader::open(folder / "all.ponder");
    const auto reader = AnnotationReader::beside(folder / "all.ponder");
    ASSERT_TRUE(reader);
    EXPECT_TRUE(reader->of(find_run(merged, "run")).empty());
    const RunInfo second = find_run(merged, "run (2)");
    const AnnotationInfo pos = find_annotation(reader, merged.path(), second, "part_of_speech");
    EXPECT_EQ(reader->values(pos, 0, 3, 4), (std::vector<double>{1}));

    export_csv(merged, folder / "tables");
    std::istringstream lines(read_file(folder / "tables" / "tokens.csv"));
    std::string line;
    std::getline(lines, line);
    EXPECT_TRUE(line.ends_with(",flops,part_of_speech,score")) << line;
    std::vector<std::string> ends;
    while (std::getline(lines, line)) {
        ends.push_back(line.substr(line.rfind(',', line.rfind(',') - 1)));
    }
    ASSERT_EQ(ends.size(), 8U + 42U);
    EXPECT_EQ(ends[3], ",,"); // the other run has none
    EXPECT_EQ(ends[8 + 3], ",VERB,");
    EXPECT_EQ(ends[8 + 7], ",,-2.25");
    EXPECT_EQ(ends[8 + 30], ",NOUN,0.5");

    // Annotations without a trace are not written over.
    write_file_atomically(folder / "other.ponder.annotations", "mine");
    EXPECT_THROW(merge_runs({{path, ""}}, folder / "other.ponder"), InputError);
    EXPECT_FALSE(fs::exists(folder / "other.ponder"));
}

TEST_F(Annotated, AMergeIsWholeWithItsAnnotationsOrNotAtAll) {
    put({parts(), numbers()});
    const fs::path output = folder / "all.ponder";
    const fs::path beside = annotations_path(output);
    const auto merge = [&](const std::function<void()>& meanwhile) {
        return testing::error_id([&] {
            merge_runs({{path, ""}}, output, [&](const Progress& progress) {
                if (progress.activity == "merging") {
                    meanwhile();
                }
            });
        });
    };
    const auto left = [&] { return testing::names_in(folder.path()).size(); };
    // Somebody takes the trace's name meanwhile.
    EXPECT_EQ(merge([&] { write_file_atomically(output, "another"); }), "file.exists");
    EXPECT_EQ(read_file(output), "another");
    EXPECT_FALSE(fs::exists(beside)) << "annotations of another trace";
    fs::remove(output);
    // Somebody takes that of the annotations.
    EXPECT_EQ(merge([&] { write_file_atomically(beside, "of the winner"); }), "file.exists");
    EXPECT_EQ(read_file(beside), "of the winner");
    EXPECT_FALSE(fs::exists(output));
    fs::remove(beside);
    EXPECT_EQ(left(), 2U) << "the trace and its annotations";
    // Damage is found before anything is copied.
    write_file_atomically(annotations_path(path), std::string(200, 'x'));
    bool copied = false;
    EXPECT_EQ(merge([&] { copied = true; }), "trace.kind");
    EXPECT_FALSE(copied);
    EXPECT_EQ(left(), 2U);
}

TEST_F(Annotated, ALockOfAnotherProgramIsSaidAsOne) {
    put({numbers()});
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(annotations_path(path).c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(testing::error_id<EnvironmentError>([&] { (void)AnnotationReader::beside(path); }),
              "trace.locked");
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(3));
    sqlite3_close(other);
    EXPECT_TRUE(AnnotationReader::beside(path));
}

TEST_F(Annotated, TheCheckOfThemStopsAndSaysHowFarItIs) {
    put({parts(), numbers()});
    std::vector<Progress> said;
    (void)check_trace(path, 1000, [&](const Progress& one) { said.push_back(one); });
    EXPECT_EQ(std::count_if(said.begin(), said.end(),
                            [](const Progress& one) { return one.activity == "checking annotations"; }),
              2);
    EXPECT_LE(said.back().done, said.back().total);
    std::stop_source stop;
    const auto at_the_first = [&](const Progress& one) {
        if (one.activity == "checking annotations") {
            stop.request_stop();
        }
    };
    EXPECT_THROW((void)check_trace(path, 1000, at_the_first, stop.get_token()), Cancelled);
}

TEST_F(Annotated, DamageOfTheTraceIsNoFaultOfItsAnnotations) {
    put({numbers()});
    testing::sql(path, "DROP TABLE signal");
    const TraceCheck check = check_trace(path);
    ASSERT_EQ(check.faults.size(), 1U);
    EXPECT_TRUE(check.faults[0].place.empty()) << check.faults[0].place;
}

TEST_F(Annotated, AnEndAtAnyMomentLeavesTheOldOnesOrTheNew) {
    put({numbers("first")});
    for (int round = 0; round < 12; ++round) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            for (;;) {
                put({numbers("first"), parts()});
                remove_annotations(path, run(), {"part_of_speech"});
            }
        }
        ::usleep(static_cast<useconds_t>(1000 + 3137 * round));
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status));
        const std::vector<std::string> there = names();
        ASSERT_TRUE(there == std::vector<std::string>{"first"} ||
                    there == (std::vector<std::string>{"first", "part_of_speech"}))
            << "round " << round;
        const auto reader = AnnotationReader::beside(path);
        EXPECT_EQ(reader->values(find_annotation(reader, path, run(), "first"), 0, 7, 8)[0], -2.25);
    }
    // What a dead writer left holds nobody up.
    put({numbers("second")});
}

TEST_F(Annotated, TwoWritersDoNotMeet) {
    const fs::path held = annotations_path(path).string() + "-lock";
    const int lock = ::open(held.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
    EXPECT_NE(trouble(numbers()).find("[trace.locked]"), std::string::npos);
    ::close(lock);
    EXPECT_EQ(trouble(numbers()), "");
}

TEST_F(Annotated, ThePagesQueryMeetsTheTokensOfOneRunAlone) {
    testing::add_sample_run(path, "other", 2, {30, 12}, 15);
    put({parts(), numbers()});
    const std::string page = testing::schema_page();
    const std::size_t begin = page.find("SELECT t.run", page.find("ATTACH 'NAME.ponder.annotations'"));
    ASSERT_NE(begin, std::string::npos);
    const std::string query = page.substr(begin, page.find(';', begin) - begin);
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    const std::string attach = "ATTACH '" + annotations_path(path).string() + "' AS a";
    ASSERT_EQ(sqlite3_exec(database, attach.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_stmt* rows = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(database, query.c_str(), -1, &rows, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    int count = 0;
    while (sqlite3_step(rows) == SQLITE_ROW) {
        EXPECT_EQ(sqlite3_column_int64(rows, 0), run().id);
        const int token = sqlite3_column_int(rows, 1) * 30 + sqlite3_column_int(rows, 2);
        EXPECT_EQ(token % 3, 0);
        EXPECT_EQ(sqlite3_column_double(rows, 4), token % 2);
        ++count;
    }
    EXPECT_EQ(count, 14); // every third of 42
    sqlite3_finalize(rows);
    sqlite3_close(database);
}

} // namespace
} // namespace ponderscope
