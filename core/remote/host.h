// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/remote/address.h"
#include "core/remote/frames.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope::remote {

/// A connection to `ponderscope serve` on another machine: one ssh process for all questions to that machine,
/// from any thread. It begins with the first question. When it is cut, it is begun again, at first at once
/// and then ever more seldom (15 s at the most), until the process ends; unanswered questions are repeated.
class Host {
public:
    /// The one for the machine of that address.
    static std::shared_ptr<Host> of(const Address& address);
    ~Host(); ///< ends the connection

    struct Answer {
        Status status = Status::ok;
        std::string payload;
    };
    /// Waits for the answer. InputError, EnvironmentError: the message of the other side, after the machine's
    /// name; no ponderscope there, or another version; or no connection for longer than settings().patience.
    /// Status moved is handed out. Cancelled if the thread gives up (core/base/scoped_stop.h).
    Answer ask(Question question, std::string payload);
    /// Does not wait: \p then gets the answer, in a thread of the connection's own; or it never comes.
    void ask_later(Question question, std::string payload, std::function<void(const Answer&)> then);

    struct State {
        bool connected = false;
        /// Why there is no connection, a sentence; empty: connected, or no connection was needed yet.
        std::string fault;
        int times = 0; ///< how often a connection stood
    };
    [[nodiscard]] State state() const;
    [[nodiscard]] std::string machine() const;

    explicit Host(const Address& address); ///< not shared with others; for a test of the connection

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// The message for a shell that finds no ponderscope (exit codes 126 and 127), with the shell's own message.
std::string no_program(const std::string& machine, const std::string& said);

/// The kind of entry at a path on the host.
struct Looked {
    Kind kind = Kind::none;
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t times[3]{}; ///< in ns, of the file, its -wal and its .annotations; 0: none
    std::string path;        ///< absolute, links followed; empty if nothing is there
};
Looked read_looked(const std::string& payload); ///< ProtocolFault
/// \p url: ssh://…
Looked look(const std::string& url);

struct Entry {
    Kind kind = Kind::none;
    std::uint64_t size = 0;
    std::int64_t time = 0; ///< ns since 1970
    std::string name;
};
/// By name. InputError: no folder.
std::vector<Entry> list(const std::string& url);

} // namespace ponderscope::remote
