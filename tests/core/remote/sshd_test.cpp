// SPDX-License-Identifier: GPL-3.0-or-later
// The same through ssh itself: an sshd of the test's own on the loopback, with keys made for it. Skipped
// where there is no sshd or it does not start (some refuse users without a password entry).
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/remote/address.h"
#include "core/remote/transport.h"
#include "core/trace/reader.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <netinet/in.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace ponderscope {
namespace {

int free_port() {
    const int one = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    int port = 0;
    if (::bind(one, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
        ::getsockname(one, reinterpret_cast<sockaddr*>(&address), &length) == 0) {
        port = ntohs(address.sin_port);
    }
    ::close(one);
    return port;
}

bool answers(int port) {
    const int one = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool there = ::connect(one, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(one);
    return there;
}

class Sshd : public ::testing::Test {
protected:
    void SetUp() override {
        const char* program = "/usr/sbin/sshd";
        if (::access(program, X_OK) != 0) {
            GTEST_SKIP() << "no sshd is installed";
        }
        const std::string folder = folder_.path().string();
        const auto run = [](const std::string& command) {
            return std::system(command.c_str()); // NOLINT(concurrency-mt-unsafe)
        };
        ASSERT_EQ(run("ssh-keygen -q -t ed25519 -N '' -f '" + folder +
                      "/host' && ssh-keygen -q -t ed25519 -N '' -f '" + folder + "/user' && cp '" + folder +
                      "/user.pub' '" + folder + "/allowed'"),
                  0);
        port_ = free_port();
        write_file_atomically(folder_ / "sshd_config",
                              "Port " + std::to_string(port_) + "\nListenAddress 127.0.0.1\nHostKey " +
                                  folder + "/host\nAuthorizedKeysFile " + folder + "/allowed\nPidFile " +
                                  folder + "/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n");
        // What the user's own configuration is elsewhere.
        write_file_atomically(folder_ / "ssh",
                              "#!/bin/sh\nexec ssh -F /dev/null -i '" + folder +
                                  "/user' -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null "
                                  "-oLogLevel=ERROR -oBatchMode=yes \"$@\"\n");
        std::filesystem::permissions(folder_ / "ssh", std::filesystem::perms::owner_all);
        if (::getuid() == 0) {
            std::filesystem::create_directories("/run/sshd");
        }
        std::string config = folder + "/sshd_config";
        std::string log = folder + "/log";
        char name[] = "/usr/sbin/sshd";
        char d[] = "-D";
        char f[] = "-f";
        char e[] = "-E";
        char* argv[]{name, d, f, config.data(), e, log.data(), nullptr};
        ASSERT_EQ(::posix_spawn(&pid_, program, nullptr, nullptr, argv, environ), 0);
        for (int i = 0; i < 500 && !answers(port_); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        remote::settings().ssh = (folder_ / "ssh").string();
        remote::settings().program = PONDERSCOPE_PROGRAM;
        if (!answers(port_) || run("'" + (folder_ / "ssh").string() + "' -p " + std::to_string(port_) +
                                   " 127.0.0.1 true 2>/dev/null") != 0) {
            GTEST_SKIP() << "sshd lets nobody in here";
        }
    }
    void TearDown() override {
        if (pid_ > 0) {
            ::kill(pid_, SIGTERM);
            ::waitpid(pid_, nullptr, 0);
        }
    }

    testing::TemporaryFolder folder_;
    int port_ = 0;
    pid_t pid_ = -1;
};

TEST_F(Sshd, ATraceIsReadThroughARealSsh) {
    const auto path = folder_ / "it's a \"trace\" $(x).ponder";
    testing::write_sample_trace(path);
    const TraceReader there = TraceReader::open("ssh://127.0.0.1:" + std::to_string(port_) + path.string());
    const TraceReader here = TraceReader::open(path);
    ASSERT_EQ(there.runs().size(), here.runs().size());
    EXPECT_EQ(there.tokens(1, 3).id, here.tokens(1, 3).id);
    EXPECT_EQ(there.text(1, 8), here.text(1, 8));
}

TEST_F(Sshd, ARecordingGoesOnWhenItsLineIsCut) {
    if (!PONDERSCOPE_WITH_ENGINE) {
        GTEST_SKIP() << "nothing records here";
    }
    testing::TinyCheckpoint{.pondering_steps = 3}.write(folder_ / "model");
    std::string text;
    for (int i = 0; i < 150; ++i) {
        text += "word " + std::to_string(i * 7919) + " and another; ";
    }
    write_file_atomically(folder_ / "text.txt", text);
    const std::string trace = folder_ / "t.ponder";
    const auto runs = [&]() -> std::vector<RunInfo> {
        try {
            return TraceReader::open(trace).runs();
        } catch (const Error&) { // not made yet
            return {};
        }
    };
    const auto until = [](const auto& is_so) {
        for (int i = 0; i < 12000 && !is_so(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return is_so();
    };
    {
        remote::Transport verb(
            remote::ssh_command(remote::parse_address("ssh://127.0.0.1:" + std::to_string(port_) + "/"),
                                {"serve", "--", "record", folder_ / "model", "--text", folder_ / "text.txt",
                                 "--batch", "1", "--context", "64", "-o", trace}),
            false);
        ASSERT_TRUE(until([&] { return !runs().empty(); }));
        ASSERT_FALSE(runs().front().complete) << "the text is too short to be cut in";
    } // the ssh is ended
    EXPECT_TRUE(until([&] { return runs().front().complete; }));
}

} // namespace
} // namespace ponderscope
