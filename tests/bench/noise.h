// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstring>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ponderscope::bench {

/// Neighbours: processes that stream memory, each 512 MB back and forth, as long as this object lives. To be
/// made before a program has threads.
class MemoryNoise {
public:
    explicit MemoryNoise(int processes) {
        const pid_t parent = ::getpid();
        for (int i = 0; i < processes; ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                stream(parent);
            } else if (child > 0) {
                children_.push_back(child);
            }
        }
    }
    ~MemoryNoise() {
        for (const pid_t child : children_) {
            ::kill(child, SIGKILL);
            ::waitpid(child, nullptr, 0);
        }
    }
    MemoryNoise(const MemoryNoise&) = delete;
    MemoryNoise& operator=(const MemoryNoise&) = delete;

private:
    [[noreturn]] static void stream(pid_t parent) {
        std::vector<char> from(std::size_t{256} << 20, 1);
        std::vector<char> to(from.size());
        while (::getppid() == parent) { // a parent that was killed leaves nobody behind
            std::memcpy(to.data(), from.data(), from.size());
            std::swap(from, to);
        }
        ::_exit(0);
    }
    std::vector<pid_t> children_;
};

} // namespace ponderscope::bench
