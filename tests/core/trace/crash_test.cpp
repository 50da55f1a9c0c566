// SPDX-License-Identifier: GPL-3.0-or-later
// What happens to a trace when its writer dies, the disk fills up, a second writer comes, or nothing may be
// written. Each case runs in a child process of its own, where it can be killed, lose its rights or get a
// disk of its own.
#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/checkpoint/file_kind.h"
#include "core/trace/reader.h"
#include "core/trace/schema.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using TraceCrash = TraceTest;

/// A child that waits. Forked before this process has a writer's thread, which may hold a lock of SQLite just
/// then: the child would wait for it forever.
class Child {
public:
    explicit Child(const std::function<std::string()>& body) {
        if (::pipe(go_) != 0 || ::pipe(answer_) != 0) {
            throw std::runtime_error("no pipe");
        }
        child_ = ::fork();
        if (child_ == 0) {
            ::close(go_[1]);
            ::close(answer_[0]);
            char signal = 0;
            const ssize_t begun = ::read(go_[0], &signal, 1);
            std::string answer;
            try {
                answer = body();
            } catch (const std::exception& error) {
                answer = std::string("unexpected: ") + error.what();
            }
            const ssize_t ignored = ::write(answer_[1], answer.data(), answer.size());
            ::_exit(begun >= 0 && ignored >= 0 ? 0 : 1);
        }
        ::close(go_[0]);
        ::close(answer_[1]);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// Lets it run; returns what the body returned, or how the child died. Once.
    std::string run() {
        const ssize_t begun =
            ::write(go_[1], "g", 1); // a later child holds this end, too, so closing it says nothing
        ::close(go_[1]);
        std::string answer = begun == 1 ? "" : "not begun: ";
        char buffer[4096];
        for (ssize_t n; (n = ::read(answer_[0], buffer, sizeof buffer)) > 0;) {
            answer.append(buffer, static_cast<std::size_t>(n));
        }
        ::close(answer_[0]);
        int status = 0;
        ::waitpid(child_, &status, 0);
        return WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status)) : answer;
    }

private:
    int go_[2] = {};
    int answer_[2] = {};
    pid_t child_ = -1;
};

/// Runs \p body in a child; returns what it returned, or how it died.
std::string in_child(const std::function<std::string()>& body) {
    return Child(body).run();
}

bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr std::int64_t long_sequence = 3000;

/// Records sequences of `long_sequence` and a few other lengths until it is stopped from outside or \p most
/// are done.
std::int64_t length_of(std::int64_t sequence) {
    return sequence % 3 == 0 ? long_sequence
                             : 1 + static_cast<std::int64_t>(
                                       bounded(splitmix64(5, static_cast<std::uint64_t>(sequence)), 400));
}

void record(TraceWriter& writer, std::int64_t most) {
    writer.begin_run(sample_run("recorded"), sample_signals());
    for (std::int64_t s = 0; s < most; ++s) {
        const std::int64_t length = length_of(s);
        writer.begin_sequence("s", sample_text(length));
        for (std::int64_t first = 0; first < length; first += 250) {
            const std::int64_t count = std::min<std::int64_t>(250, length - first);
            const auto seed = static_cast<std::uint64_t>(s);
            writer.append(sample_tokens(seed, first, count, length), sample_chunks(seed, first, count));
        }
        writer.end_sequence();
    }
    writer.end_run(1);
}

/// Empty when the trace is a prefix of what record() was writing: whole sequences, then at most one partial
/// one, every signal as long as its tokens, every value as it was given, totals that agree.
std::string check_prefix(const fs::path& path) {
    const TraceReader reader = TraceReader::open(path);
    if (!is_sound(path)) {
        return "damaged pages";
    }
    const std::vector<RunInfo> runs = reader.runs();
    if (runs.empty()) {
        return "";
    }
    std::int64_t tokens = 0;
    const std::vector<SequenceInfo> sequences = reader.sequences(runs[0].id);
    for (const SequenceInfo& sequence : sequences) {
        const std::int64_t length = length_of(sequence.number);
        const std::string name = "sequence " + std::to_string(sequence.number);
        if (!sequence.complete && sequence.number + 1 != static_cast<std::int64_t>(sequences.size())) {
            return name + " is partial, but another follows";
        }
        if (sequence.complete && sequence.tokens != length) {
            return name + " is marked complete with " + std::to_string(sequence.tokens) + " tokens";
        }
        const auto seed = static_cast<std::uint64_t>(sequence.number);
        const TokenColumns want = sample_tokens(seed, 0, sequence.tokens, length);
        const TokenColumns got = reader.tokens(runs[0].id, sequence.number);
        if (got.id != want.id || !same_floats(got.nll, want.nll) || got.flops != want.flops) {
            return name + " has other tokens than were given";
        }
        for (const auto& [signal, chunk] : sample_chunks(seed, 0, sequence.tokens)) {
            const auto stored = reader.signal(runs[0].id, sequence.number, signal);
            if (sequence.tokens > 0 && (!stored || stored->data != chunk.data)) {
                return name + " has another " + signal + " than was given";
            }
        }
        tokens += sequence.tokens;
    }
    if (runs[0].tokens != tokens || runs[0].sequences != static_cast<std::int64_t>(sequences.size())) {
        return "the run's totals disagree with its sequences";
    }
    return "";
}

std::int64_t complete_sequences(const fs::path& path) {
    const TraceReader reader = TraceReader::open(path);
    const std::vector<SequenceInfo> all =
        reader.runs().empty() ? std::vector<SequenceInfo>() : reader.sequences(1);
    return std::count_if(all.begin(), all.end(), [](const SequenceInfo& one) { return one.complete; });
}

TEST_F(TraceCrash, KilledWritersLeaveAPrefix) {
    constexpr int kills = 12;
    int with_sequences = 0;
    for (int round = 0; round < kills; ++round) {
        const fs::path trace = folder / (std::to_string(round) + ".ponder");
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            try {
                TraceWriter writer(trace);
                record(writer, 1'000'000);
            } catch (...) {
            }
            ::_exit(0);
        }
        // Somewhere in the first second; what a reader has seen by then is the least that has to be there
        // afterwards.
        std::this_thread::sleep_for(std::chrono::milliseconds(
            static_cast<int>(bounded(splitmix64(3, static_cast<std::uint64_t>(round)), 900))));
        std::int64_t seen = 0;
        try {
            seen = complete_sequences(trace);
        } catch (const Error&) {
            // The child has not got to making the file yet.
        }
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended before it was killed";
        // Killed before the schema was committed: there is no trace yet, and a new recording starts one.
        if (!error_of([&] { (void)TraceReader::open(trace); }).empty()) {
            EXPECT_EQ(seen, 0);
        } else {
            EXPECT_EQ(check_prefix(trace), "") << "round " << round;
            for (const RunInfo& run : TraceReader::open(trace).runs()) {
                EXPECT_FALSE(run.complete);
            }
            const std::int64_t kept = complete_sequences(trace);
            EXPECT_GE(kept, seen);
            with_sequences += kept > 0;
        }
        // The next writer takes over where the dead one stopped, and leaves one file.
        add_sample_run(trace, "after", 1, {20}, 5);
        EXPECT_EQ(TraceReader::open(trace).runs().back().name, "after");
        EXPECT_TRUE(is_sound(trace));
        EXPECT_FALSE(fs::exists(trace.string() + "-wal"));
        EXPECT_FALSE(fs::exists(trace.string() + "-lock"));
        fs::remove(trace);
    }
    EXPECT_GT(with_sequences, 0) << "every child was killed before it had finished a sequence";
}

void record_until_full(const fs::path& path) {
    TraceWriter writer(path);
    record(writer, 10'000);
    writer.finish();
}

/// Records until the disk is full; checks what is left.
std::string fill_up(const fs::path& path) {
    const std::string refusal = error_of<EnvironmentError>([&] { record_until_full(path); });
    if (!refusal.starts_with(path.string()) || !refusal.ends_with("[file.space]")) {
        return "another error than a full disk: " + refusal;
    }
    if (std::string wrong = check_prefix(path); !wrong.empty()) {
        return wrong;
    }
    const TraceReader reader = TraceReader::open(path);
    const std::vector<RunInfo> runs = reader.runs();
    if (runs.size() != 1 || runs[0].complete) {
        return "the run is not marked partial";
    }
    const std::vector<FaultInfo> faults = reader.faults(1);
    if (faults.size() != 1 || faults[0].message.empty()) {
        return "the trace does not say why it is partial";
    }
    return reader.sequences(1).front().complete ? "" : "not even the first sequence was kept";
}

/// Runs \p body in a child for which \p folder is a disk of its own; "skip" where that is not permitted.
std::string on_small_disk(const fs::path& folder, const char* size,
                          const std::function<std::string()>& body) {
    return in_child([&]() -> std::string {
        if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            ::mount("tmpfs", folder.c_str(), "tmpfs", 0, size) != 0) {
            return "skip";
        }
        return body();
    });
}

TEST_F(TraceCrash, AFullDiskKeepsWhatWasWritten) {
    const std::string answer = on_small_disk(folder.path(), "size=6m", [&] { return fill_up(path); });
    if (answer == "skip") {
        GTEST_SKIP() << "mounting a small disk is not permitted here; the test with a limit on file sizes "
                        "stands in for it";
    }
    EXPECT_EQ(answer, "");
}

TEST_F(TraceCrash, ALimitOnFileSizesKeepsWhatWasWritten) {
    EXPECT_EQ(in_child([&]() -> std::string {
                  ::signal(SIGXFSZ, SIG_IGN);
                  const rlimit limit{3u << 20, 3u << 20};
                  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) {
                      return "no limit";
                  }
                  const std::string id = error_id<EnvironmentError>([&] { record_until_full(path); });
                  return id == "file.space" || id == "environment.failed" ? check_prefix(path) : "no error";
              }),
              "");
}

TEST_F(TraceCrash, ADiskThatIsFullFromTheStartGetsNoTrace) {
    const std::string answer = on_small_disk(folder.path(), "size=64k", [&]() -> std::string {
        std::ofstream(folder / "filler") << std::string(65536, 'x');
        const std::string refusal = error_of<EnvironmentError>([&] { const TraceWriter writer(path); });
        return refusal.ends_with("[file.space]") ? ::testing::PrintToString(names_in(folder.path()))
                                                 : "a trace was made on a full disk: " + refusal;
    });
    if (answer == "skip") {
        GTEST_SKIP() << "mounting a small disk is not permitted here";
    }
    EXPECT_EQ(answer, R"({ "filler" })");
}

// Closing any descriptor of a file takes away all POSIX locks of the process on it. A window that looked at
// the header with a stream lost SQLite's so: the next writer that ended removed the log under it, and it
// never saw a later run.
TEST_F(TraceCrash, AnotherLookAtTheTraceKeepsTheLocksOfThisProcess) {
    // A recording that goes on while the window looks, and then ends.
    int told[2];
    int go_on[2];
    ASSERT_EQ(::pipe(told), 0);
    ASSERT_EQ(::pipe(go_on), 0);
    const pid_t recording = ::fork();
    if (recording == 0) {
        TraceWriter writer(path);
        write_sample_run(writer, "first", 1, {50}, 50);
        while (!fs::exists(path) || TraceReader::open(path).runs().empty()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        char byte = 'x';
        const bool asked = ::write(told[1], &byte, 1) == 1 && ::read(go_on[0], &byte, 1) == 1;
        writer.finish();
        ::_exit(asked ? 0 : 1);
    }
    char byte = 0;
    ASSERT_EQ(::read(told[0], &byte, 1), 1);
    const TraceReader window = TraceReader::open(path);
    ASSERT_EQ(window.runs().size(), 1U);
    // What the window and its dialogs do meanwhile.
    check_trace_header(path);
    EXPECT_EQ(TraceReader::open(path).runs().size(), 1U);
    EXPECT_EQ(recognise_file(path), FileKind::sqlite);
    ASSERT_EQ(::write(go_on[1], &byte, 1), 1);
    int status = 0;
    ::waitpid(recording, &status, 0);
    EXPECT_EQ(status, 0);
    // Whoever ends leaves the log where it is while the window has it open, and the window sees what follows.
    EXPECT_TRUE(fs::exists(path.string() + "-wal"));
    for (std::size_t later = 1; later <= 2; ++later) {
        EXPECT_EQ(in_child([&]() -> std::string {
                      add_sample_run(path, "later", 1, {50}, 50);
                      return "recorded";
                  }),
                  "recorded");
        EXPECT_EQ(window.runs().size(), 1 + later) << "a window that follows";
        check_trace_header(path);
    }
    EXPECT_TRUE(is_sound(path));
    for (const int end : {told[0], told[1], go_on[0], go_on[1]}) {
        ::close(end);
    }
}

TEST_F(TraceCrash, TheDeathOfARecordingIsSaidByWhoeverSeesIt) {
    EXPECT_EQ(in_child([&]() -> std::string {
                  TraceWriter writer(path);
                  write_sample_run(writer, "whole", 1, {50}, 50);
                  writer.begin_run(sample_run("cut off"), sample_signals());
                  std::this_thread::sleep_for(std::chrono::milliseconds(400));
                  ::raise(SIGKILL);
                  return "alive";
              }),
              "killed by signal 9");
    ASSERT_TRUE(TraceWriter::note_death(path, "The engine ended unexpectedly while recording."));
    const TraceReader reader = TraceReader::open(path);
    EXPECT_TRUE(reader.faults(1).empty()) << "of a run that is whole";
    ASSERT_EQ(reader.faults(2).size(), 1U);
    EXPECT_EQ(reader.faults(2)[0].message, "The engine ended unexpectedly while recording.");
    EXPECT_FALSE(reader.runs().at(1).complete);
    write_trace(path, [&](TraceWriter& writer) {
        write_sample_run(writer, "third", 2, {20}, 20);
        EXPECT_FALSE(TraceWriter::note_death(path, "x")) << "somebody writes";
    });
    EXPECT_FALSE(TraceWriter::note_death(path, "x")) << "the newest run is whole";
    EXPECT_FALSE(TraceWriter::note_death(folder / "none.ponder", "x"));
}

TEST_F(TraceCrash, TwoWritersDoNotMeet) {
    const auto try_to_write = [](const fs::path& name) {
        return error_of([&] { const TraceWriter writer(name); });
    };
    {
        Child same([&] { return try_to_write(path); });
        Child other([&] { return try_to_write(folder / "other-name.ponder"); });
        TraceWriter writer(path);
        writer.begin_run(sample_run("mine"), {});
        fs::create_symlink(path, folder / "other-name.ponder");
        for (const std::string& answer : {try_to_write(path), same.run(), other.run()}) {
            EXPECT_TRUE(answer.ends_with("[trace.locked]")) << answer;
        }
        writer.end_run(1);
        writer.finish();
        EXPECT_EQ(in_child([&] { return try_to_write(path); }), "");
    }
    EXPECT_EQ(TraceReader::open(path).runs().size(), 1U);
    // What a dead writer left is no writer.
    std::ofstream(path.string() + "-lock") << "";
    EXPECT_EQ(try_to_write(path), "");
}

/// Gives up root's rights, for the tests of permissions. False where that is impossible: then we have none to
/// begin with.
void become_nobody() {
    if (::geteuid() == 0) {
        if (::setegid(65534) != 0 || ::seteuid(65534) != 0) {
            throw std::runtime_error("cannot give up root's rights");
        }
    }
}

TEST_F(TraceCrash, FoldersThatCannotBeWritten) {
    ::chmod(folder.path().c_str(), 0555);
    const std::string answer = in_child([&] {
        become_nobody();
        return error_of<EnvironmentError>([&] { const TraceWriter writer(path); });
    });
    ::chmod(folder.path().c_str(), 0755);
    EXPECT_TRUE(answer.ends_with("[environment.failed]")) << answer;
    EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_F(TraceCrash, TracesOnReadOnlyMediaOpen) {
    const TemporaryFolder media;
    {
        // A writer that a reader keeps from tidying up leaves the file in WAL mode.
        TraceWriter writer(path);
        write_sample_run(writer, "first", 1, {500}, 100);
        while (true) {
            try {
                if (TraceReader::open(path).runs().size() == 1 &&
                    TraceReader::open(path).runs()[0].complete) {
                    break;
                }
            } catch (const Error&) {
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        fs::copy_file(path, media / "without-log.ponder"); // as if only the main file had been copied
        fs::copy_file(path, media / "with-log.ponder");
        fs::copy_file(path.string() + "-wal", (media / "with-log.ponder").string() + "-wal");
        const TraceReader reader = TraceReader::open(path);
        (void)reader.runs();
        writer.finish();
        fs::copy_file(path, media / "kept-open.ponder");
    }
    fs::copy_file(path, media / "finished.ponder");
    ::chmod(media.path().c_str(), 0555);
    const auto read = [&](const std::string& name, const std::function<void()>& restrict) {
        return in_child([&]() -> std::string {
            restrict();
            try {
                const TraceReader reader = TraceReader::open(media / name);
                std::string answer = std::to_string(reader.runs().size()) + " runs";
                if (!reader.runs().empty()) {
                    answer += ", " + std::to_string(reader.tokens(1, 0).size()) + " tokens";
                }
                for (const Notice& notice : reader.notices()) {
                    answer += std::string("; ") + name_of(notice.id);
                }
                return answer;
            } catch (const Error& error) {
                return error.what();
            }
        });
    };
    EXPECT_EQ(read("finished.ponder", become_nobody), "1 runs, 500 tokens");
    EXPECT_EQ(read("kept-open.ponder", become_nobody), "1 runs, 500 tokens");
    EXPECT_EQ(read("without-log.ponder", become_nobody), "0 runs");
    EXPECT_EQ(read("with-log.ponder", become_nobody), "0 runs; trace.log");
    ::chmod(media.path().c_str(), 0755);
    // The same where there is the right, but no room: the log's index cannot grow.
    const auto take_room = [] {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit no_room{100, 100};
        ::setrlimit(RLIMIT_FSIZE, &no_room);
    };
    EXPECT_EQ(read("kept-open.ponder", take_room), "1 runs, 500 tokens");
    EXPECT_EQ(read("with-log.ponder", take_room), "0 runs; trace.log");
    // With the right to write beside it, the log is read.
    EXPECT_EQ(TraceReader::open(media / "with-log.ponder").tokens(1, 0).size(), 500U);
    EXPECT_TRUE(TraceReader::open(media / "with-log.ponder").notices().empty());
}

} // namespace
} // namespace ponderscope
