// SPDX-License-Identifier: GPL-3.0-or-later
// Traces on "another machine": another process, behind a line that can be slow, cut, and begin with a
// greeting.
#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/remote/file.h"
#include "core/remote/frames.h"
#include "core/remote/host.h"
#include "core/remote/transport.h"
#include "core/trace/reader.h"
#include "core/trace/tools/annotations.h"
#include "core/trace/tools/check.h"
#include "core/trace/tools/merge.h"
#include "core/trace/tools/summary.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/errors.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <thread>

namespace ponderscope {
namespace {

using namespace testing;

/// Each test speaks to a machine of its own: connections are kept for as long as the process lives.
class Remote : public ::testing::Test {
protected:
    void SetUp() override {
        remote::settings().ssh = PONDERSCOPE_FAR_SHELL;
        remote::settings().program = PONDERSCOPE_PROGRAM;
        remote::settings().patience = 20;
        line(nlohmann::json::object());
    }
    static void line(const nlohmann::json& wish) { ::setenv("FAR_SHELL", wish.dump().c_str(), 1); }
    std::string url(const std::filesystem::path& path) const { return "ssh://" + machine_ + path.string(); }

    TemporaryFolder folder_;
    std::string machine_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

/// All that a reader says of a trace, as one text.
std::string all_of(const TraceReader& reader) {
    std::string all;
    for (const RunInfo& run : reader.runs()) {
        all += run.name + ' ' + std::to_string(run.tokens) + ' ' + std::to_string(run.nll_sum) + '\n';
        for (const SequenceInfo& sequence : reader.sequences(run.id)) {
            all += reader.text(run.id, sequence.number);
            const TokenColumns tokens = reader.tokens(run.id, sequence.number);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
                all += std::to_string(tokens.id[i]) + ' ' + std::to_string(tokens.nll[i]) + ' ';
            }
            for (const SignalInfo& signal : reader.signal_infos(run.id)) {
                if (const auto chunk = reader.signal(run.id, sequence.number, signal.name)) {
                    all.append(reinterpret_cast<const char*>(chunk->data.data()), chunk->data.size());
                }
            }
        }
    }
    return all;
}

TEST_F(Remote, AddressesAreTakenApartAndWhatSshCouldMistakeIsRefused) {
    const remote::Address one = remote::parse_address("ssh://me@gpu.example:2222/runs/a b#c.ponder");
    EXPECT_EQ(one.host, "me@gpu.example");
    EXPECT_EQ(one.port, 2222);
    EXPECT_EQ(one.path, "/runs/a b#c.ponder");
    EXPECT_EQ(one.url(), "ssh://me@gpu.example:2222/runs/a b#c.ponder");
    EXPECT_EQ(remote::parse_address("ssh://[::1]:22/x").host, "::1");
    EXPECT_EQ(remote::parse_address("ssh://[::1]:22/x").machine(), "ssh://[::1]:22");
    for (const char* bad :
         {"ssh://", "ssh:///x", "ssh://-oProxyCommand=x/y", "ssh://-l@h/x", "ssh://a b/x", "ssh://h;x/y",
          "ssh://h:0/x", "ssh://h:99999/x", "ssh://h:2x/y", "ssh://[::1/x", "ssh://$(x)/y"}) {
        EXPECT_THROW((void)remote::parse_address(bad), InputError) << bad;
    }
}

TEST_F(Remote, AProcessThatIgnoresItsEndIsNotWaitedForWithoutALimit) {
    const auto began = std::chrono::steady_clock::now();
    {
        const remote::Transport deaf({"sh", "-c", "trap '' TERM; exec sleep 100"}, false);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
}

TEST_F(Remote, WordsReachTheOtherSideAsTheyAre) {
    // As a shell reads them: blanks, both quotes, a dollar, a backslash, a newline, a dash, nothing at all.
    for (const std::string word :
         {"a b", "it's", "\"q\"", "$HOME", "back\\slash", "two\nlines", "-x", "", "*", "a;b", "~"}) {
        remote::settings().program = "printf";
        const std::vector<std::string> command =
            remote::ssh_command(remote::parse_address("ssh://host/x"), {"%s|", word, "end"});
        const std::string line = "sh -c " + remote::shell_quoted(command.back());
        FILE* pipe = ::popen(line.c_str(), "r");
        ASSERT_NE(pipe, nullptr);
        std::string out(256, '\0');
        out.resize(std::fread(out.data(), 1, out.size(), pipe));
        EXPECT_EQ(::pclose(pipe), 0);
        EXPECT_EQ(out, word + "|end|");
        const auto dashes = std::find(command.begin(), command.end(), "--");
        ASSERT_NE(dashes, command.end());
        EXPECT_EQ(*(dashes + 1), "host");
    }
}

TEST_F(Remote, LookingAndReadingDoNotWaitForEachOther) {
    const auto path = folder_ / "grows.ponder";
    write_sample_trace(path);
    line({{"delay", 0.02}});
    const auto file = remote::File::of(url(path));
    for (int round = 0; round < 5; ++round) {
        // The window's timer asks; its answer comes while a reader waits for its own.
        remote::Watch watch(url(path));
        remote::Looked out;
        (void)watch.look(out);
        const remote::File::Snapshot reading(file);
        EXPECT_GT(file->size(), 0U);
    }
}

TEST_F(Remote, ATraceThereReadsAsItDoesHere) {
    const auto path = folder_ / "a trace's.ponder";
    write_sample_trace(path);
    line({{"greeting", "printf 'Welcome to the cluster\\nyou have mail'; "}});
    const TraceReader here = TraceReader::open(path);
    const TraceReader there = TraceReader::open(url(path));
    EXPECT_TRUE(all_of(there) == all_of(here));
    EXPECT_EQ(trace_summary_json(there).at("bytes"), std::filesystem::file_size(path));
    const auto faults = [](const std::filesystem::path& trace) {
        std::string all;
        for (const TraceFault& fault : check_trace(trace, 1000).faults) {
            all += fault.place + ": " + fault.message + '\n';
        }
        return all;
    };
    EXPECT_EQ(faults(url(path)), faults(path));
    EXPECT_EQ(parse_run_reference(url(path) + "#vanilla-1m").run, "vanilla-1m");
    EXPECT_EQ(parse_run_reference("ssh://s/exp#2/a.ponder").run, "");
    EXPECT_EQ(parse_run_reference("ssh://s/h#1.ponder").run, "");
    EXPECT_EQ(parse_run_reference("ssh://s/h#1.ponder#r.ponder").trace, "ssh://s/h#1.ponder");
    // Fetched: a run copied home is the run.
    const RunInfo run = find_run(there, "vanilla-1m");
    const auto home = folder_ / "home.ponder";
    copy_run(url(path), run.id, home);
    EXPECT_EQ(find_run(TraceReader::open(home), "vanilla-1m").nll_sum, run.nll_sum);
    // Nothing was written there.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 2);
}

TEST_F(Remote, ARecordingIsFollowedWhileItsLogHoldsIt) {
    const auto path = folder_ / "growing.ponder";
    TraceWriter writer(path);
    write_sample_run(writer, "first", 1, {300, 200}, 100);
    const TraceReader here = TraceReader::open(path);
    const TraceReader there = TraceReader::open(url(path));
    EXPECT_TRUE(all_of(there) == all_of(here));
    ASSERT_TRUE(std::filesystem::exists(path.string() + "-wal"));
    for (int more = 2; more < 6; ++more) {
        write_sample_run(writer, "run " + std::to_string(more), static_cast<std::uint64_t>(more), {500, 400},
                         100);
        while (here.runs().size() < static_cast<std::size_t>(more) || !here.runs().back().complete) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5)); // the writer has a thread of its own
        }
        remote::File::of(url(path))->expire(); // what a window's watch does
        EXPECT_EQ(there.runs().size(), static_cast<std::size_t>(more));
        EXPECT_TRUE(all_of(there) == all_of(here)) << more;
    }
    writer.finish();
    remote::File::of(url(path))->expire();
    EXPECT_TRUE(all_of(there) == all_of(here));
}

TEST_F(Remote, ManyReadersSeeWholeTransactionsWhileItGrows) {
    const auto path = folder_ / "busy.ponder";
    TraceWriter writer(path);
    write_sample_run(writer, "first", 1, {100}, 100);
    std::atomic<bool> done = false;
    std::vector<std::thread> readers;
    std::atomic<int> reads = 0;
    for (int i = 0; i < 2; ++i) {
        readers.emplace_back([&] {
            const TraceReader there = TraceReader::open(url(path));
            while (!done) {
                remote::File::of(url(path))->expire();
                for (const RunInfo& run : there.runs()) {
                    const auto sequences = there.sequences(run.id);
                    if (run.complete) { // all of it is there, and agrees
                        ASSERT_EQ(there.tokens(run.id, 0).size(),
                                  static_cast<std::size_t>(sequences.at(0).tokens));
                    }
                }
                ++reads;
            }
        });
    }
    for (std::uint64_t run = 2; run < 30; ++run) {
        write_sample_run(writer, "run " + std::to_string(run), run, {300}, 100);
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (reads < 4 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    done = true;
    for (std::thread& reader : readers) {
        reader.join();
    }
    EXPECT_GE(reads, 4);
}

TEST_F(Remote, ShardsThereAreOneRun) {
    const auto folder = folder_ / "run 1";
    std::filesystem::create_directory(folder);
    write_sample_shards(folder / "a.ponder", "four", 150, 4);
    std::ofstream(folder / "notes.txt") << "beside them";
    const std::string here = all_of(TraceReader::open(folder));
    ASSERT_EQ(TraceReader::open(folder).sequences(1).size(), 4U);
    for (const char* name : {"run 1", "run 1/a.ponder"}) { // a folder, the name of the whole
        EXPECT_TRUE(all_of(TraceReader::open(url(folder_ / name))) == here) << name;
    }
    EXPECT_NE(error_of<Error>([&] { TraceReader::open(url(folder_ / "run 1/b*.ponder")); }), "");
    std::filesystem::remove(folder / "a.r0002-of-0004.ponder");
    EXPECT_NE(error_of<Error>([&] { TraceReader::open(url(folder)); }), "");
}

TEST_F(Remote, FoldersAreListedAndWhatIsNotThereIsSaid) {
    const auto path = folder_ / "whole.ponder";
    write_sample_trace(path);
    EXPECT_NE(error_of<Error>([&] { TraceReader::open(url(folder_.path())); }).find("[shard.missing]"),
              std::string::npos);
    EXPECT_EQ(error_id<Error>([&] { TraceReader::open(url(folder_ / "none.ponder")); }), "remote.refused");
    EXPECT_EQ(remote::list(url(folder_.path())), std::vector<std::string>{"whole.ponder"});
    const remote::Looked looked = remote::look(url(path));
    EXPECT_EQ(looked.kind, remote::Kind::trace);
    EXPECT_EQ(looked.size, std::filesystem::file_size(path));
}

TEST_F(Remote, ADistantLineCostsFewRoundTrips) {
    const auto path = folder_ / "far.ponder";
    write_sample_trace(path, {.sequences = 30, .tokens = 2000});
    line({{"delay", 0.005}});
    const TraceReader there = TraceReader::open(url(path));
    const auto runs = there.runs();
    for (const RunInfo& run : runs) {
        (void)there.sequences(run.id);
        (void)there.signal_infos(run.id);
        (void)there.faults(run.id);
    }
    const remote::File::Traffic opened = remote::File::of(url(path))->traffic();
    EXPECT_LE(opened.answers, 8U);
    EXPECT_LT(opened.bytes, std::filesystem::file_size(path) / 4);
    (void)there.tokens(runs.front().id, 15);
    EXPECT_LE(remote::File::of(url(path))->traffic().answers, opened.answers + 8);
    // What was read once is not asked for again.
    const auto before = remote::File::of(url(path))->traffic().answers;
    (void)there.tokens(runs.front().id, 15);
    EXPECT_EQ(remote::File::of(url(path))->traffic().answers, before);
}

TEST_F(Remote, ACutConnectionGoesOnWhenItIsBack) {
    const auto path = folder_ / "cut.ponder";
    const auto cut = folder_ / "cut";
    write_sample_trace(path, {.sequences = 20, .tokens = 2000});
    line({{"cut", cut.string()}});
    const TraceReader there = TraceReader::open(url(path));
    const auto run = there.runs().front().id;
    const std::shared_ptr<remote::Host> host = remote::Host::of(remote::parse_address(url(path)));
    const auto until = [](const std::function<bool()>& is_so) {
        for (int i = 0; i < 2000 && !is_so(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return is_so();
    };
    std::ofstream(cut).put('x');
    ASSERT_TRUE(until([&] { return !host->state().fault.empty(); }));
    EXPECT_NE(host->state().fault.find("ssh://" + machine_ + ":"), std::string::npos);
    remote::settings().patience = 0.2; // what is not there yet fails, with the reason
    EXPECT_NE(error_of<Error>([&] { (void)there.tokens(run, 17); }).find("ssh://" + machine_),
              std::string::npos);
    remote::settings().patience = 30;
    std::thread back([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        std::filesystem::remove(cut);
    });
    const TokenColumns tokens = there.tokens(run, 17); // waits
    back.join();
    EXPECT_EQ(tokens.id, TraceReader::open(path).tokens(run, 17).id);
    EXPECT_TRUE(host->state().fault.empty());
    EXPECT_GE(host->state().times, 2);
}

TEST_F(Remote, ATraceThatIsReplacedOrRemovedMeanwhile) {
    const auto path = folder_ / "other.ponder";
    write_sample_trace(path);
    const TraceReader there = TraceReader::open(url(path));
    EXPECT_EQ(there.runs().size(), 2U);
    const auto another = folder_ / "another.ponder";
    write_sample_trace(another, {.seed = 2, .secondRun = false});
    std::filesystem::rename(another, path);
    remote::File::of(url(path))->expire();
    EXPECT_EQ(there.runs().size(), 1U);
    std::filesystem::remove(path);
    remote::File::of(url(path))->expire();
    EXPECT_EQ(error_id<Error>([&] { (void)there.runs(); }), "remote.refused");
    EXPECT_EQ(remote::look(url(path)).kind, remote::Kind::none);
}

TEST_F(Remote, OtherSidesThatAreNoneSayWhy) {
    const auto path = folder_ / "a.ponder";
    write_sample_trace(path);
    const auto said = [&](const std::string& machine) {
        machine_ = machine;
        return error_of<Error>([&] { TraceReader::open(url(path)); });
    };
    const auto is_refused = [&](const std::string& machine, const std::string& part = "") {
        const std::string sentence = said(machine);
        return sentence.starts_with("ssh://" + machine + ": ") && sentence.find(part) != std::string::npos &&
               sentence.ends_with("[remote.connection]");
    };
    EXPECT_TRUE(is_refused("nowhere", "ssh: connect to host nowhere port 22"));
    remote::settings().program = "/nonexistent/ponderscope";
    EXPECT_TRUE(is_refused("without", "/nonexistent/ponderscope"));
    remote::settings().program = PONDERSCOPE_PROGRAM;
    line({{"greeting", "printf '\\n\\001ponderscope serve 7 9.9.9\\n'; exit 0; "}});
    EXPECT_TRUE(is_refused("newer", "7 9.9.9"));
    line({{"greeting", "echo 'There is no verb serve; ponderscope --help lists them.' >&2; exit 2; "}});
    EXPECT_TRUE(is_refused("older"));
    line({{"greeting", "echo This account is closed; exit 1; "}});
    EXPECT_TRUE(is_refused("closed", "This account is closed"));
    line({{"greeting", "yes; "}});
    EXPECT_TRUE(is_refused("talking"));
    line({{"greeting", "yes >&2; "}});
    EXPECT_TRUE(is_refused("complaining"));
    line({{"greeting",
           "printf '\\n\\001ponderscope serve 2 x\\n\\377\\377\\377\\377aaaaaaaaaaaaa'; exit 0; "}});
    EXPECT_TRUE(is_refused("garbage"));
    // One that ends whenever it is asked.
    remote::settings().patience = 1;
    line({{"greeting", "printf '\\n\\001ponderscope serve 2 x\\n'; head -c 1 > /dev/null; exit 0; "}});
    EXPECT_TRUE(is_refused("mortal"));
    remote::settings().ssh = "/nonexistent/ssh";
    EXPECT_NE(said("programless").find("/nonexistent/ssh: "), std::string::npos);
}

TEST_F(Remote, OneInterruptEndsTheWaitForASilentSide) {
    line({{"greeting", "sleep 60; "}});
    ::setenv("PONDERSCOPE_SSH", PONDERSCOPE_FAR_SHELL, 1);
    for (const char* signal : {"INT", "TERM", "HUP"}) {
        const std::string command = std::string("timeout --preserve-status --kill-after=20 --signal=") +
                                    signal + " 1 '" + PONDERSCOPE_PROGRAM + "' inspect " + url("/a.ponder") +
                                    " 2> '" + (folder_ / "said").string() + "'";
        const int status = std::system((command + "; exit $?").c_str()); // NOLINT(concurrency-mt-unsafe)
        EXPECT_EQ(WEXITSTATUS(status), 130) << signal;
    }
    ::unsetenv("PONDERSCOPE_SSH");
}

TEST_F(Remote, WhatIsThereIsOnlyRead) {
    const auto path = folder_ / "a.ponder";
    write_sample_trace(path);
    EXPECT_NE(error_of<Error>([&] { TraceWriter writer(url(path)); }), "");
    const TraceReader there = TraceReader::open(url(path));
    const RunInfo run = there.runs().front();
    Annotation one{"mark", false, {}, {}};
    for (const SequenceInfo& sequence : there.sequences(run.id)) {
        one.values.emplace_back(static_cast<std::size_t>(sequence.tokens), 1);
    }
    const auto sequences = there.sequences(run.id);
    EXPECT_NE(error_of<Error>([&] {
                  put_annotations(url(path), run, sequences, {one});
              }).find("ssh " + machine_ + " ponderscope annotate " + path.string()),
              std::string::npos);
    EXPECT_NE(error_of<Error>([&] { remove_annotations(url(path), run, {"mark"}); }).find("[trace.remote]"),
              std::string::npos);
    // What is said there is seen here.
    put_annotations(path, run, sequences, {one});
    EXPECT_EQ(AnnotationReader::beside(url(path))->of(run).size(), 1U);
    EXPECT_EQ(TraceReader::open(path).runs().size(), 2U);
}

/// What `ponderscope serve` answers to bytes on its standard input.
std::string serve(const std::string& input, const std::string& options, const TemporaryFolder& folder,
                  int& code) {
    const auto from = folder / "question";
    const auto to = folder / "answer";
    std::ofstream(from, std::ios::binary) << input;
    code = std::system((std::string("'") + PONDERSCOPE_PROGRAM + "' serve " + options + " < '" +
                        from.string() + "' > '" + to.string() + "' 2> '" + (folder / "said").string() + "'")
                           .c_str()); // NOLINT(concurrency-mt-unsafe)
    std::ifstream file(to, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(Remote, HostileQuestionsEndTheServerWithASentence) {
    const auto path = folder_ / "a.ponder";
    write_sample_trace(path);
    const auto ask = [](remote::Question question, const std::string& payload) {
        return remote::frame(1, static_cast<std::uint8_t>(question), payload);
    };
    const std::string text = remote::Packer().text(path.string()).data;
    const std::vector<std::string> hostile{
        std::string("\xff\xff\xff\xff", 4),     // too long
        std::string("\x00\x00\x00\x00\x00", 5), // too short
        "GET / HTTP/1.1\r\n\r\n",               // another protocol
        remote::frame(1, 99, ""),               // no such question
        ask(remote::Question::look, ""),        // no path
        ask(remote::Question::look, remote::Packer().text("relative").data),
        ask(remote::Question::look, remote::Packer().u32(1000).bytes("/x").data),
        ask(remote::Question::look, text + "more"),
        ask(remote::Question::read, remote::Packer().bytes(text).u64(1).u32(4'000'000'000).data),
    };
    for (std::size_t i = 0; i < hostile.size(); ++i) {
        int code = 0;
        const std::string out = serve(hostile[i], "", folder_, code);
        EXPECT_EQ(WEXITSTATUS(code), 2) << i;
        EXPECT_LT(out.size(), 100U) << i; // the greeting
    }
    // A range beyond the end: with the generation of the file, which the state begins with.
    int code = 0;
    const std::string state =
        serve(ask(remote::Question::renew, text + std::string(8, '\0')), "", folder_, code);
    EXPECT_EQ(code, 0);
    const std::size_t begin = state.find('\n', 1) + 1;
    ASSERT_GT(state.size(), begin + 17);
    const std::uint64_t generation = remote::Unpacker(std::string_view(state).substr(begin + 9)).u64();
    (void)serve(
        ask(remote::Question::read,
            remote::Packer().bytes(text).u64(generation).u64(std::filesystem::file_size(path)).u32(1).data),
        "", folder_, code);
    EXPECT_EQ(WEXITSTATUS(code), 2);
}

TEST_F(Remote, ARootIsNotLeft) {
    const auto inside = folder_ / "inside";
    std::filesystem::create_directory(inside);
    write_sample_trace(inside / "a.ponder");
    write_sample_trace(folder_ / "outside.ponder");
    std::filesystem::create_symlink(folder_ / "outside.ponder", inside / "link.ponder");
    const auto status = [&](const std::string& path) {
        int code = 0;
        const std::string out = serve(remote::frame(1, static_cast<std::uint8_t>(remote::Question::renew),
                                                    remote::Packer().text(path).u64(0).data),
                                      "--root '" + inside.string() + "'", folder_, code);
        const std::size_t begin = out.find('\n', 1) + 1;
        return out.size() > begin + 8 ? static_cast<int>(out[begin + 8]) : -1;
    };
    EXPECT_EQ(status((inside / "a.ponder").string()), 0);
    EXPECT_EQ(status((inside / "link.ponder").string()), 1);
    EXPECT_EQ(status((inside / "../outside.ponder").string()), 1);
    EXPECT_EQ(status((folder_ / "outside.ponder").string()), 1);
}

} // namespace
} // namespace ponderscope
