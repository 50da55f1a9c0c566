// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace ponderscope::remote {

/// A child process with pipes at its three streams. Used by one thread.
class Transport {
public:
    /// EnvironmentError: it cannot be started. \p terminal false: in a session of its own, so that it has no
    /// terminal to ask on and Ctrl+C is not its.
    Transport(const std::vector<std::string>& command, bool terminal);
    ~Transport(); ///< ends the process
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;

    /// Waits for input, for room to write if \p wants_write, or for a byte in \p wake; or \p milliseconds
    /// have passed. -1: for ever.
    struct Ready {
        bool read = false, errors = false, write = false, wake = false;
    };
    Ready wait(bool wants_write, int wake, int milliseconds);
    /// What is there, appended; false at its end.
    bool read(std::string& out) const;
    bool read_errors(std::string& out);
    /// Takes what fits from the front; false when nobody reads any more.
    bool write(std::string& from) const;
    void interrupt() const; ///< as Ctrl+C does
    /// Waits for its end, 1.5 s; then ends it. The exit code, or 128 + the signal.
    int end();

private:
    pid_t pid_ = -1;
    int input_ = -1;
    int output_ = -1;
    int errors_ = -1;
};

} // namespace ponderscope::remote
