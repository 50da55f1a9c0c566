// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace ponderscope::remote {

/// A child process with pipes at its three standard streams. One thread uses it.
class Transport {
public:
    /// EnvironmentError: the process cannot start. \p terminal false: the process gets its own session,
    /// without access to the terminal and without Ctrl+C.
    Transport(const std::vector<std::string>& command, bool terminal);
    ~Transport(); ///< ends the process
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;

    struct Ready {
        bool read = false, errors = false, write = false, wake = false;
    };
    /// Waits for output of the process, for space to write if \p wants_write, for a byte in the pipe \p wake,
    /// or for at most \p milliseconds (-1: no limit).
    Ready wait(bool wants_write, int wake, int milliseconds);
    /// Appends the available bytes; false at the end of the stream.
    bool read(std::string& out) const;
    bool read_errors(std::string& out);
    /// Writes and removes as many bytes of \p from as possible. False: the reader has closed the pipe.
    bool write(std::string& from) const;
    void interrupt() const; ///< sends SIGINT, as Ctrl+C does
    /// Waits up to 1.5 s for the process to end, then kills it. Returns the exit code, or 128 + the signal.
    int end();

private:
    pid_t pid_ = -1;
    int input_ = -1;
    int output_ = -1;
    int errors_ = -1;
};

} // namespace ponderscope::remote
