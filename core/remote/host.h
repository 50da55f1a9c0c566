// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/remote/address.h"
#include "core/remote/frames.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope::remote {

/// A connection to `ponderscope serve` on another machine: one ssh process for all questions, from any
/// thread. The first question starts the process. Restarts a lost connection, first at once and then at
/// growing intervals (at most 15 s), until this program ends. Repeats unanswered questions.
class Host {
public:
    /// The shared Host for this address's machine.
    static std::shared_ptr<Host> of(const Address& address);
    ~Host(); ///< ends the connection

    struct Answer {
        Status status = Status::ok;
        std::string payload;
    };
    /// Sends a question and waits for the answer. InputError, EnvironmentError: the server refused; the
    /// message begins with the machine's name. EnvironmentError: ponderscope is missing on the machine, has
    /// another version, or cannot be reached for longer than settings().patience. Cancelled: the thread's
    /// ScopedStop requested a stop. The caller handles the status `moved`.
    Answer ask(Question question, std::string payload);
    /// Sends a question without waiting. The connection's thread calls \p then with the answer. Without a
    /// connection the question may be dropped: \p then is never called.
    void ask_later(Question question, std::string payload, std::function<void(const Answer&)> then);

    struct State {
        /// Why there is no connection, one sentence. Empty: connected, or no connection was needed yet.
        std::string fault;
        int times = 0; ///< number of successful connections
    };
    [[nodiscard]] State state() const;
    [[nodiscard]] std::string machine() const;

    explicit Host(const Address& address); ///< not shared; for testing a connection

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// The message if a shell does not find ponderscope (exit codes 126 and 127), including the shell's message.
std::string no_program(const std::string& machine, const std::string& said);

/// The file or folder at a path.
struct Looked {
    Kind kind = Kind::none;
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t times[3]{}; ///< times of the file, its -wal and its .annotations in ns; 0: does not exist
    std::string path;        ///< absolute, with links resolved; empty if nothing exists
};
Looked read_looked(const std::string& payload); ///< ProtocolFault
/// The file or folder at a path on this machine.
Looked look_here(const std::filesystem::path& path);
/// The file or folder at a path on another machine. \p url: ssh://…
Looked look(const std::string& url);

/// The names in a folder, sorted. InputError: not a folder.
std::vector<std::string> list(const std::string& url);

} // namespace ponderscope::remote
