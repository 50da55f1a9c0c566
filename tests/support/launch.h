// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <arpa/inet.h>
#include <cstdlib>
#include <iostream>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace ponderscope::testing {

/// Listens at a port of the loopback that was free.
class Listener {
public:
    Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        ::sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t length = sizeof address;
        if (::bind(socket_, reinterpret_cast<::sockaddr*>(&address), length) != 0 ||
            ::listen(socket_, 1) != 0 ||
            ::getsockname(socket_, reinterpret_cast<::sockaddr*>(&address), &length) != 0) {
            throw std::runtime_error("no port of the loopback is free");
        }
        port_ = ntohs(address.sin_port);
    }
    ~Listener() { ::close(socket_); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    [[nodiscard]] int port() const { return port_; }

private:
    int socket_;
    int port_ = 0;
};

inline int free_port() {
    return Listener().port();
}

/// What torchrun sets for a process; rendezvous at \p port of the loopback, none with 0.
inline void enter_world(int rank, int size, int port) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
    ::setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    if (port > 0) {
        ::setenv("MASTER_ADDR", "127.0.0.1", 1);
        ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
    }
}

/// Starts \p rank_program(rank), which returns its exit code, in a process of its own for each rank.
template <typename Program>
std::vector<::pid_t> start_ranks(int size, int port, const Program& rank_program) {
    std::vector<::pid_t> children;
    for (int rank = 0; rank < size; ++rank) {
        children.push_back(::fork());
        if (children.back() == 0) {
            enter_world(rank, size, port);
            int code = 125;
            try {
                code = rank_program(rank);
            } catch (const std::exception& error) {
                std::cerr << "rank " << rank << ": " << error.what() << '\n';
            }
            ::_exit(code);
        }
    }
    return children;
}

/// The exit codes, by rank; 128 + signal of one that was killed.
inline std::vector<int> wait_for(const std::vector<::pid_t>& children) {
    std::vector<int> codes;
    for (const ::pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    return codes;
}

template <typename Program>
std::vector<int> run_ranks(int size, int port, const Program& rank_program) {
    return wait_for(start_ranks(size, port, rank_program));
}

inline bool has_mpirun() {
    return std::system("mpirun --version >/dev/null 2>&1") == 0;
}

/// The beginning of a command line that starts \p size processes on this machine, however few cores it has.
inline std::string mpirun(int size) {
    std::string command = "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ";
#if defined(__SANITIZE_ADDRESS__)
    // Open MPI leaves memory of its plug-ins, which it has unloaded by the time that leaks are looked for:
    // nothing is left to name them by. The same tests over Gloo look for ours.
    command += "ASAN_OPTIONS=detect_leaks=0 ";
#endif
    return command + "mpirun --oversubscribe --bind-to none -n " + std::to_string(size);
}

} // namespace ponderscope::testing
