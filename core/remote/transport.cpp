// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/remote/transport.h"

#include "core/base/error.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ponderscope::remote {
namespace {

void close_one(int& descriptor) {
    if (descriptor >= 0) {
        ::close(descriptor);
        descriptor = -1;
    }
}

bool read_some(int descriptor, std::string& out) {
    std::array<char, 1 << 16> buffer; // NOLINT(cppcoreguidelines-pro-type-member-init)
    // Return after 1 MiB, even if the process writes faster than this loop reads.
    for (const std::size_t most = out.size() + (std::size_t{1} << 20); out.size() < most;) {
        const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
        if (got > 0) {
            out.append(buffer.data(), static_cast<std::size_t>(got));
            if (static_cast<std::size_t>(got) < buffer.size()) {
                return true;
            }
        } else if (got == 0) {
            return false;
        } else if (errno != EINTR) {
            return errno == EAGAIN;
        }
    }
    return true;
}

constexpr std::chrono::milliseconds patience{1500};

bool ended_within(pid_t process, std::chrono::milliseconds limit, int& status) {
    const auto until = std::chrono::steady_clock::now() + limit;
    for (;;) {
        const pid_t ended = ::waitpid(process, &status, WNOHANG);
        if (ended == process || (ended < 0 && errno != EINTR)) {
            return true;
        }
        if (std::chrono::steady_clock::now() >= until) {
            return false;
        }
        ::poll(nullptr, 0, 5);
    }
}

} // namespace

Transport::Transport(const std::vector<std::string>& command, bool terminal) {
    std::array<std::array<int, 2>, 3> pipes{{{-1, -1}, {-1, -1}, {-1, -1}}};
    int error = 0;
    for (auto& pair : pipes) {
        if (error == 0 && ::pipe2(pair.data(), O_CLOEXEC) != 0) {
            error = errno;
        }
    }
    if (error == 0) {
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attributes);
        posix_spawn_file_actions_adddup2(&actions, pipes[0][0], 0);
        posix_spawn_file_actions_adddup2(&actions, pipes[1][1], 1);
        posix_spawn_file_actions_adddup2(&actions, pipes[2][1], 2);
        // The child gets default signal handling: our threads block signals and may ignore SIGPIPE.
        sigset_t none;
        sigset_t usual;
        sigemptyset(&none);
        sigemptyset(&usual);
        sigaddset(&usual, SIGPIPE);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &usual);
        posix_spawnattr_setflags(&attributes,
                                 static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    (terminal ? 0 : POSIX_SPAWN_SETSID)));
        std::vector<char*> words;
        for (const std::string& word : command) {
            words.push_back(const_cast<char*>(word.c_str())); // NOLINT: posix_spawnp does not change argv
        }
        words.push_back(nullptr);
        error = ::posix_spawnp(&pid_, words.front(), &actions, &attributes, words.data(), environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
    }
    close_one(pipes[0][0]);
    close_one(pipes[1][1]);
    close_one(pipes[2][1]);
    input_ = pipes[0][1];
    output_ = pipes[1][0];
    errors_ = pipes[2][0];
    if (error != 0) {
        close_one(input_);
        close_one(output_);
        close_one(errors_);
        throw EnvironmentError(
            ErrorId::environment_program,
            command.front() + ": cannot be started (" + std::strerror(error) +
                "); install OpenSSH's client, or name another program in PONDERSCOPE_SSH.");
    }
    for (const int descriptor : {input_, output_, errors_}) {
        ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    }
}

Transport::~Transport() {
    close_one(input_);
    if (pid_ > 0) {
        ::kill(pid_, SIGTERM);
        end();
    }
    close_one(output_);
    close_one(errors_);
}

Transport::Ready Transport::wait(bool wants_write, int wake, int milliseconds) {
    std::array<pollfd, 4> all{{{output_, POLLIN, 0},
                               {errors_, POLLIN, 0},
                               {wake, POLLIN, 0},
                               {wants_write ? input_ : -1, POLLOUT, 0}}};
    if (::poll(all.data(), all.size(), milliseconds) <= 0) {
        return {};
    }
    return {all[0].revents != 0, all[1].revents != 0, all[3].revents != 0, all[2].revents != 0};
}

bool Transport::read(std::string& out) const {
    return read_some(output_, out);
}

bool Transport::read_errors(std::string& out) {
    if (errors_ >= 0 && !read_some(errors_, out)) {
        close_one(errors_);
        return false;
    }
    return errors_ >= 0;
}

bool Transport::write(std::string& from) const {
    while (!from.empty()) {
        // A closed pipe is an error here; it must not end this program.
        const ssize_t put = ::write(input_, from.data(), from.size());
        if (put > 0) {
            from.erase(0, static_cast<std::size_t>(put));
        } else if (errno != EINTR) {
            return errno == EAGAIN;
        }
    }
    return true;
}

void Transport::interrupt() const {
    if (pid_ > 0) {
        ::kill(pid_, SIGINT);
    }
}

int Transport::end() {
    if (pid_ <= 0) {
        return 0;
    }
    close_one(input_);
    // ssh ends when its input ends, or on SIGTERM. A wrapper around ssh may ignore both.
    int status = SIGKILL;
    for (const int signal : {0, SIGTERM, SIGKILL}) {
        ::kill(pid_, signal);
        if (ended_within(pid_, patience, status)) {
            break;
        }
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace ponderscope::remote
