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

/// The file changed between two reads of one snapshot. Repeat all reads with a new snapshot.
class Moved : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The state of an SQLite file at the start of a read: the answer to Question::renew.
///
///     u64 generation | u64 size | u32 bytes per page | u8 whether all pages may have changed |
///     u32 n, then n u32 pages that changed | text first bytes of the file
struct FileState {
    std::uint64_t generation = 0; ///< changes with every change of a byte
    std::uint64_t size = 0;
    std::uint32_t page_bytes = 0;
    bool all_changed = true;
    std::vector<std::uint32_t> pages_changed; ///< numbers of changed pages, from 1
    std::string head;                         ///< the first bytes of the file
};

/// An SQLite file on another machine, shared by all its readers. Caches blocks of 64 KiB (128 MiB in all) and
/// reads ahead during sequential reads. A reader holds a Snapshot, which fixes the content. A new Snapshot
/// sees new content only after all older snapshots have ended. Thread-safe.
class File {
public:
    /// The File of \p url (ssh://…). Creates the File if no reader has one open.
    static std::shared_ptr<File> of(const std::string& url);
    /// The open File of \p url; nullptr: not open.
    static std::shared_ptr<File> opened(const std::string& url);

    /// Reads during one snapshot are consistent, or throw Moved if the server could not keep the content.
    class Snapshot {
    public:
        /// Throws the errors of Host::ask: no such file, no connection.
        explicit Snapshot(std::shared_ptr<File> file);
        ~Snapshot();
        Snapshot(const Snapshot&) = delete;
        Snapshot& operator=(const Snapshot&) = delete;

    private:
        std::shared_ptr<File> file_;
    };

    [[nodiscard]] std::uint64_t size();
    [[nodiscard]] std::uint32_t page_bytes();
    /// Number of snapshots that found new content. 0: no snapshot yet.
    [[nodiscard]] std::uint32_t version();
    /// Reads bytes from \p offset on. False: some lie beyond the end of the file, and these bytes are 0.
    bool read(std::uint64_t offset, std::span<std::byte> out);
    /// Marks the file as changed, so that the next snapshot asks the server. Never waits.
    void expire();
    /// Whether open snapshots may show old content. A new snapshot after their end shows the new content.
    [[nodiscard]] bool is_stale() const { return stale_; }
    /// Calls expire(), unless a snapshot has asked the server within the last second. Called when the file is
    /// opened.
    void expire_old();
    /// Received bytes and answers, for tests and measurements.
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
    std::atomic<bool> expired_ = true; ///< needs no mutex
    std::atomic<bool> stale_ = false;
    std::chrono::steady_clock::time_point renewed_{};
    bool lost_ = false; ///< the content of the open snapshots no longer exists
    int snapshots_ = 0;
    std::uint32_t version_ = 0;
    std::map<std::uint64_t, Block> blocks_;
    std::list<std::uint64_t> uses_; ///< most recent first
    std::uint64_t next_ = 0;        ///< the block after the last fetched block
    std::uint64_t ahead_ = 0;       ///< number of blocks in the last fetch
    Traffic traffic_;
};

/// Polls a file without waiting, for the desktop window. If the file changed, calls expire() of the open File
/// with this name.
class Watch {
public:
    explicit Watch(const std::string& url);
    /// Returns the latest answer and sends the next question. False: no answer yet.
    bool look(Looked& out);
    [[nodiscard]] bool is_stale() const; ///< File::is_stale of the open File
    [[nodiscard]] Host::State state() const { return host_->state(); }

private:
    struct Shared;
    std::string url_;
    std::string path_;
    std::shared_ptr<Host> host_;
    std::shared_ptr<Shared> shared_;
};

/// The name of the SQLite VFS that opens ssh:// names read-only through File.
const char* vfs_name();
/// Returns and clears the exception of this thread's last SQLite call: an Error or a library's exception.
/// Null: no failure.
std::exception_ptr take_failure();

} // namespace ponderscope::remote
