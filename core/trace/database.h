// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

struct sqlite3;
struct sqlite3_stmt;

namespace ponderscope {

/// An error of SQLite with its extended result code. Internal to core/trace: reader and writer translate it
/// to a message.
class SqliteFailure : public std::runtime_error {
public:
    SqliteFailure(int code, const std::string& message, int system_error = 0)
        : std::runtime_error(message), code_(code), system_error_(system_error) {}
    [[nodiscard]] int code() const { return code_; }
    [[nodiscard]] int primary_code() const { return code_ & 0xff; }
    /// errno of the failure to open; 0: not known.
    [[nodiscard]] int system_error() const { return system_error_; }
    [[nodiscard]] bool is_busy() const; ///< another connection holds a lock
    [[nodiscard]] bool is_full() const; ///< no room, or no more allowed
    /// A file on another machine changed while it was read: begin the transaction again.
    [[nodiscard]] bool is_moved() const;
    [[nodiscard]] bool lost_its_file() const; ///< its name now belongs to another file or to none
    /// The helper files for reading (the log's index) cannot be made or grown: a read-only folder, a full
    /// disk.
    [[nodiscard]] bool lacks_helper_files() const;
    /// The file is at fault, not the machine.
    [[nodiscard]] bool is_damage() const;

private:
    int code_;
    int system_error_;
};

inline constexpr const char* take_again =
    "the file is damaged; take it from its source again, or record it again";

/// The error for a failed read of \p path: InputError for damage, EnvironmentError for the system.
[[noreturn]] void
throw_read_failure(const std::filesystem::path& path, const SqliteFailure& failure,
                   const char* sound = "a sound trace",
                   const char* remedy = "take it from its source again, or record it again");
/// The error and sentence for a failed write. \p kept: earlier commits stay.
EnvironmentError write_failure(const std::filesystem::path& path, const SqliteFailure& failure,
                               bool kept = true);
[[noreturn]] void throw_write_failure(const std::filesystem::path& path, const SqliteFailure& failure);

/// One prepared statement. Bound text and BLOBs must outlive the step that uses them (nothing is copied).
class Statement {
public:
    Statement() = default;
    Statement(Statement&& other) noexcept;
    Statement& operator=(Statement&& other) noexcept;
    ~Statement();

    /// Parameters count from 1.
    Statement& bind(int index, std::int64_t value);
    Statement& bind(int index, double value); ///< NaN becomes NULL
    Statement& bind(int index, std::string_view text);
    Statement& bind(int index, std::span<const std::byte> blob);
    Statement& bind_copy(int index, std::string_view text); ///< keeps a copy
    Statement& bind_null(int index);
    /// Binds all parameters: whole numbers, reals (NaN becomes NULL), texts, BLOBs, nullptr (NULL).
    template <class... Values>
    Statement& bind_all(const Values&... values) {
        int at = 0;
        (bind_any(++at, values), ...);
        return *this;
    }

    /// True when there is a row.
    bool step();
    /// Runs to the end and makes the statement ready for the next use.
    void run();
    /// bind_all and run.
    template <class First, class... Others>
    void run(const First& first, const Others&... others) {
        bind_all(first, others...);
        run();
    }
    void reset();

    /// Columns count from 0; they are valid until the next step or reset.
    [[nodiscard]] bool is_null(int column) const;
    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] double real(int column) const; ///< NULL becomes NaN
    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] std::span<const std::byte> blob(int column) const;
    [[nodiscard]] std::string bytes(int column) const; ///< of a BLOB

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
    sqlite3_stmt* statement_ = nullptr;
};

/// Resets a statement that is kept.
struct StatementReset {
    Statement& statement;
    ~StatementReset() { statement.reset(); }
};

/// One connection. Used by one thread at a time. Every failure throws SqliteFailure; a failed connection to
/// another machine (a path with ssh://, core/remote/file.h) is an Error with its own sentence.
class Database {
public:
    enum class Access {
        read,           ///< read-only; a WAL beside the file is read too
        read_immutable, ///< read-only without any lock or helper file: for media that cannot be written
        write,          ///< the file exists
        create          ///< makes the file when it is absent
    };

    Database(const std::filesystem::path& path, Access access);
    Database(Database&& other) noexcept;
    Database& operator=(Database&&) = delete;
    ~Database();

    void execute(const std::string& sql);
    [[nodiscard]] Statement prepare(std::string_view sql);
    /// First column of the first row; 0 when there is none.
    [[nodiscard]] std::int64_t integer(std::string_view sql);
    [[nodiscard]] std::string text(std::string_view sql);
    [[nodiscard]] bool in_transaction() const;
    /// Rewrites the file without gaps; with a name, into a new file of that name (this one is only read).
    void vacuum(const std::filesystem::path& into = {});
    static constexpr int usual_wait = 5000;
    void wait_for_locks(int milliseconds); ///< usual_wait until it is called
    /// All statements must be gone; a failing close is ignored. If no program writes the trace, the last
    /// reader moves a remaining write-ahead log into the file, if permissions allow.
    void close();
    /// Takes the write-ahead log into the file and removes it. While others read, the log stays, empty if
    /// no reader is within a transaction; whoever closes last removes it. \p milliseconds: to wait for
    /// readers.
    void make_single_file(int milliseconds);

    /// Bytes of the file from \p offset on, as on the disk, without a lock; bytes behind its end are 0. Read
    /// through this connection, never through another stream: when a process closes any descriptor of a file,
    /// POSIX releases all locks of the process on it, also of SQLite's other connections.
    void read_file(std::int64_t offset, std::span<std::byte> out);
    /// The same for the write-ahead log.
    void read_log(std::int64_t offset, std::span<std::byte> out);
    /// The content of the log's index: the first 136 bytes of the -shm file
    /// (https://www.sqlite.org/walformat.html), a header that was read whole. False: this file has no log.
    /// Inside of a transaction.
    bool read_log_index(std::span<std::byte, 136> out);

    /// Reads bytes [offset, offset + out.size()) of a BLOB, touching only the pages that hold them.
    void read_blob(const char* table, const char* column, std::int64_t row, std::size_t offset,
                   std::span<std::byte> out);

private:
    sqlite3* handle_ = nullptr;
    std::filesystem::path left_log_of_; ///< of a reader of a file of this machine: that file
};

/// Removes a database and SQLite's files beside it.
void remove_database(const std::filesystem::path& path) noexcept;
/// The name of a database that the destructor removes, if it still has the name.
struct TemporaryDatabase {
    explicit TemporaryDatabase(std::filesystem::path name) : path(std::move(name)) {}
    ~TemporaryDatabase() { remove_database(path); }
    TemporaryDatabase(const TemporaryDatabase&) = delete;
    TemporaryDatabase& operator=(const TemporaryDatabase&) = delete;
    std::filesystem::path path;
};

/// Syncs the folder of a file, so that its name survives a power cut. Some file systems refuse this; that is
/// not an error.
void sync_folder_of(const std::filesystem::path& file);

/// A read transaction: all statements inside see the same state of a trace that grows.
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
