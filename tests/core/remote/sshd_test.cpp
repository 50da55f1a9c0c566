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

#include <cstdlib>
#include <string>
#include <thread>

namespace ponderscope {
namespace {

/// An sshd on a free port, and in the place of ssh one with what the user's own configuration is elsewhere.
constexpr const char* start = R"sh(set -e
cd "$1"
for key in host user; do ssh-keygen -q -t ed25519 -N '' -f $key; done
cp user.pub allowed
python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' > port
cat > sshd_config <<END
Port $(cat port)
ListenAddress 127.0.0.1
HostKey $1/host
AuthorizedKeysFile $1/allowed
PidFile $1/pid
StrictModes no
UsePAM no
PasswordAuthentication no
END
cat > ssh <<END
#!/bin/sh
exec ssh -F /dev/null -i '$1/user' -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null -oLogLevel=ERROR -oBatchMode=yes "\$@"
END
chmod +x ssh
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
/usr/sbin/sshd -f "$1/sshd_config" -E "$1/log"
for try in 1 2 3 4 5 6 7 8 9 10; do
    ./ssh -p "$(cat port)" 127.0.0.1 true 2>/dev/null && exit 0
    sleep 0.5
done
exit 1
)sh";

class Sshd : public ::testing::Test {
protected:
    void SetUp() override {
        write_file_atomically(folder_ / "start", start);
        if (run("sh '" + (folder_ / "start").string() + "' '" + folder_.path().string() + "'") != 0) {
            GTEST_SKIP() << "no sshd is installed, or it lets nobody in here";
        }
        remote::settings().ssh = (folder_ / "ssh").string();
        remote::settings().program = PONDERSCOPE_PROGRAM;
        port_ = std::to_string(std::stoi(read_file(folder_ / "port")));
    }
    void TearDown() override {
        (void)run("kill $(cat '" + (folder_ / "pid").string() + "' 2>/dev/null) 2>/dev/null");
    }
    static int run(const std::string& command) {
        return std::system(command.c_str()); // NOLINT(concurrency-mt-unsafe)
    }

    testing::TemporaryFolder folder_;
    std::string port_;
};

TEST_F(Sshd, ATraceIsReadThroughARealSsh) {
    const auto path = folder_ / "it's a \"trace\" $(x).ponder";
    testing::write_sample_trace(path);
    const TraceReader there = TraceReader::open("ssh://127.0.0.1:" + port_ + path.string());
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
            remote::ssh_command(remote::parse_address("ssh://127.0.0.1:" + port_ + "/"),
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
