// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/database.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <vector>

namespace ponderscope {

/// The pages of an SQLite file and its write-ahead log in one read transaction. serve.h sends them to readers
/// on other machines. For one thread. Throws SqliteFailure and EnvironmentError.
///
/// Source: https://www.sqlite.org/walformat.html. The snapshot is consistent: while the transaction holds its
/// lock, the log does not restart, and the file gets no newer pages. A page comes from its last frame in the
/// part of the log that the log's index covers. A page without such a frame comes from the file.
class PageSnapshot {
public:
    /// InputError: the path does not exist, is a folder, or is not an SQLite file.
    explicit PageSnapshot(const std::filesystem::path& path);

    /// Ends the snapshot and begins a new one. True if the content differs.
    bool renew();
    /// Ends the transaction, so that writers need not wait for this reader. renew() or begin_again() begins
    /// another transaction.
    void release();
    /// Begins a transaction after release(). False: the content has changed.
    bool begin_again();

    /// Identifies the content of the snapshot, never 0. All processes get the same number until a byte
    /// changes.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] std::uint32_t page_bytes() const { return page_bytes_; }
    /// Whether changes() lists all pages that changed between the last two snapshots.
    [[nodiscard]] bool knows_changes() const { return knows_changes_; }
    [[nodiscard]] const std::vector<std::uint32_t>& changes() const { return changes_; }
    /// Bytes [offset, offset + out.size()), which lie within size().
    void read(std::uint64_t offset, std::span<std::byte> out);

private:
    void look();

    std::filesystem::path path_;
    Database database_;
    bool held_ = false;
    std::uint64_t generation_ = 0;
    std::uint64_t size_ = 0;
    std::uint32_t page_bytes_ = 0;
    std::map<std::uint32_t, std::uint32_t> in_log_; ///< page -> frame, both from 1
    std::vector<std::byte> salts_;                  ///< salts of the log at the last look()
    std::uint32_t frames_ = 0;                      ///< number of frames in this log
    bool knows_changes_ = false;
    std::vector<std::uint32_t> changes_;
};

} // namespace ponderscope
