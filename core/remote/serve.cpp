// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/remote/serve.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/remote/frames.h"
#include "core/remote/host.h"
#include "core/remote/page_snapshot.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <poll.h>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using remote::Packer;
using remote::Question;
using remote::Status;
using remote::Unpacker;
using Clock = std::chrono::steady_clock;

constexpr std::size_t most_open = 32;
constexpr std::uint64_t head_bytes = 256 << 10;
constexpr std::chrono::milliseconds longest_idle{100};
constexpr std::chrono::milliseconds longest_hold{1000};

/// All zero: no such file.
struct stat stat_of(const fs::path& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        info = {};
    }
    return info;
}

class Server {
public:
    explicit Server(fs::path root) : root_(std::move(root)) {}

    /// Answers a question. Returns the frame to send.
    std::string answer(const remote::Frame& question);
    /// Ends transactions: all if idle, else those that are open for long. Returns whether any remain.
    bool tidy(bool idle);

private:
    struct Served {
        explicit Served(const fs::path& path) : snapshot(path), inode(stat_of(path).st_ino) {}
        PageSnapshot snapshot;
        ino_t inode;
        Clock::time_point held = Clock::now();
        std::list<std::string>::iterator use;
        bool open = true;
    };

    [[nodiscard]] fs::path place(std::string_view text) const;
    Served& open(const fs::path& path, bool& fresh);
    std::string look(Unpacker& fields) const;
    std::string list(Unpacker& fields) const;
    std::string renew(Unpacker& fields);
    std::string read(Unpacker& fields, Status& status);

    fs::path root_;
    std::map<std::string, Served> files_;
    std::list<std::string> uses_;
};

/// Converts a path in a question to a path on this machine.
fs::path Server::place(std::string_view text) const {
    if (!text.starts_with('/') || text.find('\0') != std::string_view::npos) {
        throw remote::ProtocolFault("a path that does not begin with '/'");
    }
    fs::path path(text);
    if (text.starts_with("/~/") || text == "/~") {
        const char* home = std::getenv("HOME");
        path = fs::path(home != nullptr ? home : "/") / text.substr(std::min<std::size_t>(text.size(), 3));
    }
    if (!root_.empty()) {
        std::error_code error;
        const fs::path real = fs::weakly_canonical(path, error);
        const auto [end, other] = std::mismatch(root_.begin(), root_.end(), real.begin(), real.end());
        if (error || end != root_.end()) {
            throw InputError(ErrorId::remote_refused, path, "a path in " + root_.string(),
                             "a path outside of this folder", "serve another --root");
        }
    }
    return path;
}

Server::Served& Server::open(const fs::path& path, bool& fresh) {
    const std::string key = path.string();
    auto place = files_.find(key);
    fresh = place == files_.end();
    if (!fresh && stat_of(path).st_ino != place->second.inode) {
        // The path now names another file or none. Drop the snapshot: its readers get `moved`.
        uses_.erase(place->second.use);
        files_.erase(place);
        fresh = true;
    }
    if (fresh) {
        place = files_.try_emplace(key, path).first;
        uses_.push_front(key);
        place->second.use = uses_.begin();
        if (files_.size() > most_open) {
            files_.erase(uses_.back());
            uses_.pop_back();
        }
    }
    uses_.splice(uses_.begin(), uses_, place->second.use);
    return place->second;
}

std::string Server::look(Unpacker& fields) const {
    const fs::path path = place(fields.text());
    fields.end();
    const remote::Looked found = remote::look_here(path);
    Packer packer;
    packer.u8(static_cast<std::uint8_t>(found.kind)).u64(found.device).u64(found.inode).u64(found.size);
    for (const std::int64_t time : found.times) {
        packer.i64(time);
    }
    packer.text(found.path);
    return std::move(packer.data);
}

std::string Server::list(Unpacker& fields) const {
    const fs::path folder = place(fields.text());
    fields.end();
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    if (error) {
        throw InputError(ErrorId::remote_refused, folder, "a folder that can be listed", error.message(),
                         "check the name");
    }
    std::set<std::string> names;
    for (; !error && entries != fs::directory_iterator() && names.size() < remote::max_entries;
         entries.increment(error)) {
        names.insert(entries->path().filename().string());
    }
    Packer packer;
    packer.u32(names.size());
    for (const std::string& name : names) {
        packer.text(name);
    }
    return std::move(packer.data);
}

std::string Server::renew(Unpacker& fields) {
    const fs::path path = place(fields.text());
    const std::uint64_t known = fields.u64();
    fields.end();
    bool fresh = false;
    Served& served = open(path, fresh);
    PageSnapshot& snapshot = served.snapshot;
    const bool same_before = !fresh && snapshot.generation() == known;
    if (!fresh) {
        snapshot.renew();
    }
    served.open = true;
    served.held = Clock::now();
    const bool tells = same_before && snapshot.knows_changes();
    const bool unchanged = snapshot.generation() == known;
    Packer packer;
    packer.u64(snapshot.generation()).u64(snapshot.size()).u32(snapshot.page_bytes()).u8(tells ? 0 : 1);
    packer.u32(tells ? snapshot.changes().size() : 0);
    if (tells) {
        for (const std::uint32_t page : snapshot.changes()) {
            packer.u32(page);
        }
    }
    std::string head(unchanged ? 0 : std::min(head_bytes, snapshot.size()), '\0');
    snapshot.read(0, std::as_writable_bytes(std::span(head)));
    packer.text(head);
    return std::move(packer.data);
}

std::string Server::read(Unpacker& fields, Status& status) {
    const fs::path path = place(fields.text());
    const std::uint64_t generation = fields.u64();
    const std::uint64_t offset = fields.u64();
    const std::uint32_t length = fields.u32();
    fields.end();
    bool fresh = false;
    Served& served = open(path, fresh);
    PageSnapshot& snapshot = served.snapshot;
    snapshot.begin_again();
    if (!served.open) {
        served.open = true;
        served.held = Clock::now();
    }
    if (snapshot.generation() != generation) {
        status = Status::moved;
        return {};
    }
    if (offset > snapshot.size() || length > snapshot.size() - offset || length > remote::max_read) {
        throw remote::ProtocolFault("a range outside of the file, or one that is too large");
    }
    std::string bytes(length, '\0');
    snapshot.read(offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
}

bool Server::tidy(bool idle) {
    bool any = false;
    for (auto& [path, served] : files_) {
        if (served.open && (idle || Clock::now() - served.held > longest_hold)) {
            served.snapshot.release();
            served.open = false;
        }
        any = any || served.open;
    }
    return any;
}

std::string Server::answer(const remote::Frame& question) {
    Status status = Status::ok;
    std::string payload;
    try {
        Unpacker fields(question.payload);
        switch (static_cast<Question>(question.kind)) {
        case Question::look:
            payload = look(fields);
            break;
        case Question::list:
            payload = list(fields);
            break;
        case Question::renew:
            payload = renew(fields);
            break;
        case Question::read:
            payload = read(fields, status);
            break;
        default:
            throw remote::ProtocolFault("a question of kind " + std::to_string(question.kind));
        }
    } catch (const InputError& error) {
        status = Status::wrong_input;
        payload = error.what();
    } catch (const Error& error) {
        status = Status::environment;
        payload = error.what();
    } catch (const SqliteFailure& failure) {
        status = Status::environment;
        payload =
            std::string(": cannot be read there (") + failure.what() + "); check the file and its disk.";
    }
    return remote::frame(question.id, static_cast<std::uint8_t>(status), payload);
}

/// False: the reader has closed the pipe.
bool write_all(int descriptor, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
        if (put < 0 && errno != EINTR) {
            return false;
        }
        bytes.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
    }
    return true;
}

} // namespace

void serve(const ServeOptions& options, const std::stop_token& stop) {
    fs::path root;
    if (!options.root.empty()) {
        std::error_code error;
        root = fs::canonical(options.root, error);
        if (error || !fs::is_directory(root)) {
            throw InputError(ErrorId::remote_refused, options.root, "a folder to serve",
                             error ? error.message() : "a file", "check the name");
        }
    }
    Server server(root);
    remote::FrameCutter cutter(remote::max_question);
    if (!write_all(options.output, '\n' + std::string(remote::hello) + std::to_string(remote::protocol) +
                                       " " PONDERSCOPE_VERSION "\n")) {
        return;
    }
    constexpr int a_second = 1000; // longest delay after a signal
    bool holds = false;
    while (!stop.stop_requested()) {
        pollfd input{options.input, POLLIN, 0};
        const int ready = ::poll(&input, 1, holds ? static_cast<int>(longest_idle.count()) : a_second);
        if (ready <= 0) {
            holds = server.tidy(ready == 0);
            continue;
        }
        std::array<char, 1 << 16> buffer; // NOLINT(cppcoreguidelines-pro-type-member-init)
        const ssize_t got = ::read(options.input, buffer.data(), buffer.size());
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return;
        }
        cutter.add({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
        try {
            remote::Frame question;
            while (cutter.next(question)) {
                if (!write_all(options.output, server.answer(question))) {
                    return;
                }
            }
        } catch (const remote::ProtocolFault& fault) {
            throw InputError(
                ErrorId::remote_connection,
                std::string("Standard input: expected requests from another ponderscope, found ") +
                    fault.what() + "; this verb is for ssh, not for a keyboard.");
        }
        holds = server.tidy(false);
    }
}

} // namespace ponderscope
