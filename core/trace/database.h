// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

struct sqlite3;
struct sqlite3_stmt;

namespace ponderscope {

/// An error of SQLite with its extended result code. Internal to core/trace: reader and writer turn it into a
/// message.
class SqliteFailure : public std::runtime_error {
public:
    SqliteFailure(int code, const std::string& message, int system_error = 0)
        : std::runtime_error(message), code_(code), system_error_(system_error) {}
    [[nodiscard]] int code() const { return code_; }
    [[nodiscard]] int primary_code() const { return code_ & 0xff; }
    /// errno of the failed open; 0: unknown.
    [[nodiscard]] int system_error() const { return system_error_; }
    [[nodiscard]] bool is_busy() const; ///< another connection holds a lock
    [[nodiscard]] bool is_full() const; ///< the disk or a quota is full
    /// A file on another machine changed during the read. Begin the transaction again.
    [[nodiscard]] bool is_moved() const;
    [[nodiscard]] bool lost_its_file() const; ///< the file's name now belongs to another file, or to no file
    /// SQLite cannot create or extend the -shm file that a reader needs, because the folder is read-only or
    /// the disk is full.
    [[nodiscard]] bool lacks_helper_files() const;
    /// The file is damaged. False: the system failed.
    [[nodiscard]] bool is_damage() const;

private:
    int code_;
    int system_error_;
};

inline constexpr const char* take_again =
    "the file is damaged; take it from its source again, or record the run again";

/// The error for a failed read of \p path: InputError for damage, EnvironmentError for a failure of the
/// system.
[[noreturn]] void
throw_read_failure(const std::filesystem::path& path, const SqliteFailure& failure,
                   const char* sound = "an undamaged trace",
                   const char* remedy = "take the file from its source again, or record the run again");
/// The error for a failed write. \p kept: the message says that the file keeps earlier commits.
EnvironmentError write_failure(const std::filesystem::path& path, const SqliteFailure& failure,
                               bool kept = true);
[[noreturn]] void throw_write_failure(const std::filesystem::path& path, const SqliteFailure& failure);

/// One prepared statement. Bound text and BLOBs are not copied, so they must outlive the step that uses them.
class Statement {
public:
    Statement() = default;

    /// Parameters are numbered from 1.
    Statement& bind(int index, std::int64_t value);
    Statement& bind(int index, double value); ///< NaN becomes NULL
    Statement& bind(int index, std::string_view text);
    Statement& bind(int index, std::span<const std::byte> blob);
    Statement& bind_copy(int index, std::string_view text); ///< copies the text
    Statement& bind_null(int index);
    /// Binds all parameters: integers, reals (NaN becomes NULL), texts, BLOBs, nullptr (NULL).
    template <class... Values>
    Statement& bind_all(const Values&... values) {
        int at = 0;
        (bind_any(++at, values), ...);
        return *this;
    }

    /// Advances to the next row. False: no further row.
    bool step();
    /// Runs all steps and resets the statement.
    void run();
    /// Calls bind_all and run.
    template <class First, class... Others>
    void run(const First& first, const Others&... others) {
        bind_all(first, others...);
        run();
    }
    void reset();

    /// Columns are numbered from 0. Values are valid until the next step or reset.
    [[nodiscard]] bool is_null(int column) const;
    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] double real(int column) const; ///< NULL becomes NaN
    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] std::span<const std::byte> blob(int column) const;
    [[nodiscard]] std::string bytes(int column) const; ///< bytes of a BLOB

private:
    friend class Database;
    explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
    void refuse_lack_of_memory(const void* value) const;
    template <class Value>
    void bind_any(int index, const Value& value) {
        if constexpr (std::is_null_pointer_v<Value>) {
            bind_null(index);
        } else if constexpr (std::is_floating_point_v<Value>) {
            bind(index, static_cast<double>(value));
        } else if constexpr (std::is_integral_v<Value>) {
            bind(index, static_cast<std::int64_t>(value));
        } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
            bind(index, std::string_view(value));
        } else {
            bind(index, std::span<const std::byte>(value));
        }
    }
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// Resets a reused statement when it goes out of scope.
struct StatementReset {
    Statement& statement;
    ~StatementReset() { statement.reset(); }
};

/// One connection, for one thread at a time. Every failure throws SqliteFailure, with one exception: for
/// another machine (a path with ssh://, core/remote/file.h), a failed connection or write access throws an
/// Error.
class Database {
public:
    enum class Access {
        read,           ///< read-only; includes the WAL beside the file
        read_immutable, ///< read-only, without locks or helper files; for read-only media
        write,          ///< the file must exist
        create,         ///< creates a missing file
        memory          ///< a new, empty database in memory
    };

    Database(const std::filesystem::path& path, Access access);
    Database(Database&& other) noexcept;
    Database& operator=(Database&&) = delete;
    ~Database();

    void execute(const std::string& sql);
    [[nodiscard]] Statement prepare(std::string_view sql);
    /// A statement that stays prepared for later calls with the same SQL. Reset it after use.
    [[nodiscard]] Statement& prepared(const std::string& sql);
    /// First column of the first row; 0 without a row.
    [[nodiscard]] std::int64_t integer(std::string_view sql);
    [[nodiscard]] std::string text(std::string_view sql);
    [[nodiscard]] bool in_transaction() const;
    /// Rewrites the file without gaps. With \p into, writes the result to this new file instead.
    void vacuum(const std::filesystem::path& into = {});
    static constexpr int usual_wait = 5000;
    void wait_for_locks(int milliseconds); ///< the default is usual_wait
    /// Destroy all statements first. Errors are ignored. The last reader also moves a remaining write-ahead
    /// log into the file if permissions allow. If TRACE-lock exists (a writer runs or was killed), the log
    /// stays.
    void close();
    /// Moves the write-ahead log into the file and removes the log. If other programs read the file, the log
    /// stays, and the last program to close the file removes it. The remaining log is empty if no reader is
    /// inside a transaction. \p milliseconds: time to wait for readers.
    void make_single_file(int milliseconds);

    /// Reads bytes of the file from \p offset on, without a lock. Bytes beyond the end are 0. Never open the
    /// file with another stream. When a process closes any descriptor of a file, POSIX releases all locks of
    /// the process on the file, including SQLite's locks.
    void read_file(std::int64_t offset, std::span<std::byte> out);
    /// Like read_file(), but reads the write-ahead log.
    void read_log(std::int64_t offset, std::span<std::byte> out);
    /// Copies the header of the log's index consistently: the first 136 bytes of the -shm file
    /// (https://www.sqlite.org/walformat.html). False: the file has no log. Call inside a transaction.
    bool read_log_index(std::span<std::byte, 136> out);

    /// Reads bytes [offset, offset + out.size()) of a BLOB. Reads only the pages of these bytes.
    void read_blob(const char* table, const char* column, std::int64_t row, std::size_t offset,
                   std::span<std::byte> out);

private:
    sqlite3* handle_ = nullptr;
    std::map<std::string, Statement> prepared_;
    std::filesystem::path left_log_of_; ///< for close(): the file if it is local and access is `read`
};

/// Removes a database with its -wal, -shm and -journal files.
void remove_database(const std::filesystem::path& path) noexcept;
/// A database file that the destructor removes, unless it was renamed.
struct TemporaryDatabase {
    explicit TemporaryDatabase(std::filesystem::path name) : path(std::move(name)) {}
    ~TemporaryDatabase() { remove_database(path); }
    TemporaryDatabase(const TemporaryDatabase&) = delete;
    TemporaryDatabase& operator=(const TemporaryDatabase&) = delete;
    std::filesystem::path path;
};

/// A read transaction: all statements in it see the same state of a growing trace.
class ReadTransaction {
public:
    explicit ReadTransaction(Database& database);
    ~ReadTransaction();
    ReadTransaction(const ReadTransaction&) = delete;
    ReadTransaction& operator=(const ReadTransaction&) = delete;

private:
    Database& database_;
};

} // namespace ponderscope
