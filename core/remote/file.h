// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/remote/host.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ponderscope::remote {

/// The file changed between two reads that belong together: begin them again.
class Moved : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// What the other side says of an SQLite file when one begins to read it: answer to Question::renew.
///
///     u64 generation | u64 size | u32 bytes a page | u8 whether it is another one than the one known |
///     u8 whether all may have changed | u32 n, then n u32 pages that changed | text first bytes
struct FileState {
    std::uint64_t generation = 0; ///< constant as long as no read byte changes
    std::uint64_t size = 0;
    std::uint32_t page_bytes = 0;
    bool all_changed = true;
    std::vector<std::uint32_t> pages_changed; ///< from 1
    std::string head;                         ///< its first bytes
};

/// An SQLite file on another machine, in blocks of 64 KiB that are kept (128 MiB of them) and read ahead
/// where one reads on: shared by all readers of that file. Whoever reads holds a Look, which pins what is
/// seen: the file may grow meanwhile, and the next Look after all others have gone sees it. Any thread.
class File {
public:
    /// \p url: ssh://…
    static std::shared_ptr<File> of(const std::string& url);
    /// The file that is open already under \p url; nullptr: it is not open.
    static std::shared_ptr<File> opened(const std::string& url);

    /// Reads through one snapshot are consistent; Moved where that cannot be held any more.
    class Look {
    public:
        /// Errors of Host::ask: no such file, no connection.
        explicit Look(std::shared_ptr<File> file);
        ~Look();
        Look(const Look&) = delete;
        Look& operator=(const Look&) = delete;

    private:
        std::shared_ptr<File> file_;
    };

    [[nodiscard]] std::uint64_t size();
    [[nodiscard]] std::uint32_t page_bytes();
    /// Counts looks that saw something new, from 1; 0: none yet.
    [[nodiscard]] std::uint32_t version();
    /// Bytes from \p offset on; those behind the end are 0, and false.
    bool read(std::uint64_t offset, std::span<std::byte> out);
    /// Somebody knows that it moved: the next look asks. Never waits.
    void expire();
    /// A look began that sees what was there before it moved, for older ones went on: look again.
    [[nodiscard]] bool is_behind() const { return behind_; }
    /// Somebody opens it: the next look asks, unless one did within the last second.
    void expire_old();
    /// How many bytes came over the connection, and in how many answers; for tests and measurements.
    struct Traffic {
        std::uint64_t bytes = 0, answers = 0;
    };
    [[nodiscard]] Traffic traffic();

    explicit File(const Address& address);

private:
    void begin();
    void renew();
    const std::string& block(std::unique_lock<std::mutex>& lock, std::uint64_t index);
    void forget(std::uint64_t index);
    void keep(std::uint64_t index, std::string bytes);

    struct Block {
        std::string bytes;
        std::list<std::uint64_t>::iterator use;
    };

    const std::string path_;
    const std::shared_ptr<Host> host_;
    std::mutex mutex_;
    FileState state_;
    std::atomic<bool> expired_ = true; ///< the one that needs no mutex
    std::atomic<bool> behind_ = false;
    std::chrono::steady_clock::time_point renewed_{};
    bool lost_ = false; ///< what the looks that there are read has gone
    int looks_ = 0;
    std::uint32_t version_ = 0;
    std::map<std::uint64_t, Block> blocks_;
    std::list<std::uint64_t> uses_; ///< the latest first
    std::uint64_t next_ = 0;        ///< the block behind what was fetched last
    std::uint64_t ahead_ = 0;       ///< blocks fetched at once, at the last time
    Traffic traffic_;
};

/// What a window looks at now and then, without waiting: the answer to the question before, while the next
/// one is under way. Tells the open File of that name when the file has moved.
class Watch {
public:
    explicit Watch(const std::string& url);
    /// False: no answer has come yet.
    bool look(Looked& out);
    [[nodiscard]] bool is_behind() const; ///< File::is_behind of that name
    [[nodiscard]] Host::State state() const { return host_->state(); }

private:
    struct Shared;
    std::string url_;
    std::string path_;
    std::shared_ptr<Host> host_;
    std::shared_ptr<Shared> shared_;
};

/// The name under which SQLite opens what begins with ssh://, read-only, through File.
const char* vfs_name();
/// Why the last call of SQLite in this thread failed on the way to the other machine; taken, so that the next
/// is empty. An Error where it is one of ours.
std::exception_ptr take_failure();

} // namespace ponderscope::remote
