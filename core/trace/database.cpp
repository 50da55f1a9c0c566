// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/database.h"

#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/remote/file.h"

#include <atomic>
#include <cstring>
#include <limits>
#include <sqlite3.h>
#include <string>
#include <utility>

namespace ponderscope {
namespace {

[[noreturn]] void fail(const SqliteFailure& failure) {
    if (const std::exception_ptr cause = remote::take_failure()) {
        std::rethrow_exception(cause);
    }
    throw failure;
}

SqliteFailure failure_of(sqlite3* handle) {
    return {sqlite3_extended_errcode(handle), sqlite3_errmsg(handle)};
}

void check(int code, sqlite3_stmt* statement) {
    if (code != SQLITE_OK) {
        fail(failure_of(sqlite3_db_handle(statement)));
    }
}

/// A path as an SQLite URI. In the path of a URI only % ? # need escaping.
std::string uri_of(const std::filesystem::path& path) {
    std::string uri = "file:";
    for (const char c : path.string()) {
        uri += c == '%' ? "%25" : c == '?' ? "%3F" : c == '#' ? "%23" : std::string(1, c);
    }
    return uri + "?immutable=1";
}

} // namespace

bool SqliteFailure::is_busy() const {
    return primary_code() == SQLITE_BUSY || primary_code() == SQLITE_LOCKED;
}

bool SqliteFailure::is_moved() const {
    return code_ == SQLITE_BUSY_SNAPSHOT;
}

bool SqliteFailure::lost_its_file() const {
    return code_ == SQLITE_READONLY_DBMOVED;
}

bool SqliteFailure::is_full() const {
    return primary_code() == SQLITE_FULL;
}

bool SqliteFailure::lacks_helper_files() const {
    switch (code_) {
    case SQLITE_IOERR_SHMOPEN:
    case SQLITE_IOERR_SHMSIZE:
    case SQLITE_IOERR_SHMMAP:
    case SQLITE_IOERR_WRITE:
        return true;
    default:
        return is_full() || primary_code() == SQLITE_CANTOPEN || primary_code() == SQLITE_READONLY ||
               primary_code() == SQLITE_PERM;
    }
}

bool SqliteFailure::is_damage() const {
    switch (primary_code()) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_ERROR: // an unknown collation, function or schema text
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_AUTH:
    case SQLITE_SCHEMA:
        return true;
    default: // a read past the end of the file shows damage, too
        return code_ == SQLITE_IOERR_SHORT_READ || code_ == SQLITE_IOERR_CORRUPTFS;
    }
}

void throw_read_failure(const std::filesystem::path& path, const SqliteFailure& failure, const char* sound,
                        const char* remedy) {
    if (failure.is_damage()) {
        throw InputError(ErrorId::trace_damaged, path, sound,
                         std::string("a damaged file (") + failure.what() + ")", remedy);
    }
    if (failure.is_busy()) {
        throw EnvironmentError(
            ErrorId::trace_locked,
            path.string() + ": another program has locked the file; close that program and try again.");
    }
    throw EnvironmentError(ErrorId::environment_failed,
                           path.string() + ": cannot be read (" + failure.what() +
                               "); check the permissions of the file and of its folder, and the disk.");
}

EnvironmentError write_failure(const std::filesystem::path& path, const SqliteFailure& failure, bool kept) {
    if (failure.is_full()) {
        return {ErrorId::file_space,
                path.string() +
                    (kept ? ": the disk is full; earlier data is kept. Free some space and record the rest."
                          : ": the disk is full; nothing was written. Free space, or choose another place.")};
    }
    if (failure.lost_its_file()) {
        return {ErrorId::file_missing,
                path.string() + ": the file was moved, removed or replaced during the recording, and the "
                                "earlier data with it. Record the run again."};
    }
    if (failure.is_busy()) {
        return {ErrorId::trace_locked,
                path.string() + ": another program has locked the file; close that program and try again."};
    }
    return EnvironmentError(ErrorId::environment_failed,
                            path.string() + ": cannot be written (" + failure.what() +
                                "); check the permissions of the file and of its folder, and the disk.");
}

void throw_write_failure(const std::filesystem::path& path, const SqliteFailure& failure) {
    if (failure.is_damage()) {
        throw_read_failure(path, failure);
    }
    throw write_failure(path, failure);
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Statement& Statement::bind(int index, std::int64_t value) {
    check(sqlite3_bind_int64(statement_.get(), index, value), statement_.get());
    return *this;
}

Statement& Statement::bind(int index, double value) {
    check(sqlite3_bind_double(statement_.get(), index, value), statement_.get());
    return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
    // An empty view may hold a null pointer, which SQLite would take for NULL.
    const char* data = text.empty() ? "" : text.data();
    check(sqlite3_bind_text64(statement_.get(), index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8),
          statement_.get());
    return *this;
}

Statement& Statement::bind_copy(int index, std::string_view text) {
    check(
        sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8),
        statement_.get());
    return *this;
}

Statement& Statement::bind(int index, std::span<const std::byte> blob) {
    if (blob.empty()) {
        check(sqlite3_bind_zeroblob(statement_.get(), index, 0), statement_.get());
    } else {
        check(sqlite3_bind_blob64(statement_.get(), index, blob.data(), blob.size(), SQLITE_STATIC),
              statement_.get());
    }
    return *this;
}

Statement& Statement::bind_null(int index) {
    check(sqlite3_bind_null(statement_.get(), index), statement_.get());
    return *this;
}

bool Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) {
        return true;
    }
    if (code == SQLITE_DONE) {
        return false;
    }
    const SqliteFailure failure = failure_of(sqlite3_db_handle(statement_.get()));
    sqlite3_reset(statement_.get());
    fail(failure);
}

void Statement::run() {
    while (step()) {
    }
    reset();
}

void Statement::reset() {
    sqlite3_reset(statement_.get());
}

bool Statement::is_null(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
    return is_null(column) ? std::numeric_limits<double>::quiet_NaN()
                           : sqlite3_column_double(statement_.get(), column);
}

/// SQLite returns no pointer for NULL, but also for lack of memory: throws in the latter case.
void Statement::refuse_lack_of_memory(const void* value) const {
    if (value == nullptr) {
        sqlite3* const database = sqlite3_db_handle(statement_.get());
        if (sqlite3_errcode(database) == SQLITE_NOMEM) {
            fail(failure_of(database));
        }
    }
}

std::string Statement::text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
    refuse_lack_of_memory(data);
    return data == nullptr ? std::string() : std::string(data, size);
}

std::string Statement::bytes(int column) const {
    const std::span<const std::byte> all = blob(column);
    return {reinterpret_cast<const char*>(all.data()), all.size()};
}

std::span<const std::byte> Statement::blob(int column) const {
    const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_.get(), column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
    refuse_lack_of_memory(data);
    return data == nullptr ? std::span<const std::byte>() : std::span(data, size);
}

Database::Database(const std::filesystem::path& path, Access access) {
    // SQLite never takes an absolute path for ":memory:" or for a URI.
    const bool elsewhere = remote::is_remote(path);
    const std::filesystem::path absolute = elsewhere ? path : std::filesystem::absolute(path);
    if (elsewhere && access != Access::read) {
        throw InputError(
            ErrorId::trace_remote, path, "a file on this machine", "a file on another machine",
            "remote files are read-only: run ponderscope on that machine, or copy the file to this one");
    }
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    std::string name = absolute.string();
    switch (access) {
    case Access::read:
        flags |= SQLITE_OPEN_READONLY;
        break;
    case Access::read_immutable:
        flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
        name = uri_of(absolute);
        break;
    case Access::write:
        flags |= SQLITE_OPEN_READWRITE;
        break;
    case Access::create:
        flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
        break;
    case Access::memory:
        flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY;
        break;
    }
    const int code = sqlite3_open_v2(name.c_str(), &handle_, flags, elsewhere ? remote::vfs_name() : nullptr);
    if (code != SQLITE_OK) {
        const SqliteFailure failure(code, handle_ != nullptr ? sqlite3_errmsg(handle_) : "out of memory",
                                    handle_ != nullptr ? sqlite3_system_errno(handle_) : 0);
        sqlite3_close_v2(handle_);
        handle_ = nullptr;
        fail(failure);
    }
    // The file is untrusted, also when it is opened for writing: no code in its schema may run.
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, 512 << 20);
    sqlite3_limit(handle_, SQLITE_LIMIT_SQL_LENGTH, 100'000);
    sqlite3_limit(handle_, SQLITE_LIMIT_COLUMN, 200);
    sqlite3_limit(handle_, SQLITE_LIMIT_EXPR_DEPTH, 200);
    sqlite3_limit(handle_, SQLITE_LIMIT_COMPOUND_SELECT, 100);
    sqlite3_limit(handle_, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_limit(handle_, SQLITE_LIMIT_WORKER_THREADS, 0);
    wait_for_locks(usual_wait);
    if (access == Access::read && !elsewhere) {
        left_log_of_ = absolute;
    }
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      prepared_(std::move(other.prepared_)),
      left_log_of_(std::move(other.left_log_of_)) {}

Database::~Database() {
    close();
}

void Database::close() {
    prepared_.clear();
    sqlite3_close_v2(std::exchange(handle_, nullptr));
    const std::filesystem::path file = std::move(left_log_of_);
    left_log_of_.clear();
    try {
        std::error_code error;
        // TRACE-lock belongs to a running writer, which removes its log itself, or to a killed writer, whose
        // log the next writer continues.
        if (!file.empty() && std::filesystem::exists(file.string() + "-wal", error) &&
            !std::filesystem::exists(file.string() + "-lock", error)) {
            Database(file, Access::write).make_single_file(0);
        }
    } catch (const std::exception&) {
        // Without write permission or memory the log stays.
    }
}

void Database::make_single_file(int milliseconds) {
    wait_for_locks(milliseconds);
    // Both fail while another program reads. The second statement checkpoints, too, but only on the last
    // connection. The first one at least empties the log if other readers are idle.
    for (const char* sql : {"PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode=DELETE"}) {
        try {
            (void)text(sql);
        } catch (const SqliteFailure& failure) {
            if (!failure.is_busy()) {
                throw;
            }
        }
    }
}

void Database::execute(const std::string& sql) {
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        fail(failure_of(handle_));
    }
}

void Database::vacuum(const std::filesystem::path& into) {
    // VACUUM attaches its output file. Other statements may attach no file.
    const struct Room {
        explicit Room(sqlite3* of) : handle(of) { sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 1); }
        ~Room() { sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0); }
        Room(const Room&) = delete;
        Room& operator=(const Room&) = delete;
        sqlite3* handle;
    } room(handle_);
    if (into.empty()) {
        return execute("VACUUM");
    }
    const std::string name = into.string();
    Statement copy = prepare("VACUUM INTO ?");
    copy.bind(1, std::string_view(name)).run();
}

Statement Database::prepare(std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                           &statement, nullptr) != SQLITE_OK) {
        fail(failure_of(handle_));
    }
    return Statement(statement);
}

Statement& Database::prepared(const std::string& sql) {
    auto place = prepared_.find(sql);
    if (place == prepared_.end()) {
        place = prepared_.emplace(sql, prepare(sql)).first;
    }
    return place->second;
}

std::int64_t Database::integer(std::string_view sql) {
    Statement statement = prepare(sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::string Database::text(std::string_view sql) {
    Statement statement = prepare(sql);
    return statement.step() ? statement.text(0) : std::string();
}

bool Database::in_transaction() const {
    return handle_ != nullptr && sqlite3_get_autocommit(handle_) == 0;
}

void Database::wait_for_locks(int milliseconds) {
    sqlite3_busy_timeout(handle_, milliseconds);
}

namespace {

sqlite3_file* file_of(sqlite3* handle, int which) {
    sqlite3_file* file = nullptr;
    if (sqlite3_file_control(handle, "main", which, &file) != SQLITE_OK || file == nullptr ||
        file->pMethods == nullptr) {
        fail(failure_of(handle));
    }
    return file;
}

void read_raw(sqlite3* handle, int which, std::int64_t offset, std::span<std::byte> out) {
    sqlite3_file* file = file_of(handle, which);
    const int code = file->pMethods->xRead(file, out.data(), static_cast<int>(out.size()), offset);
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) {
        fail(SqliteFailure(code, sqlite3_errstr(code)));
    }
}

} // namespace

void Database::read_file(std::int64_t offset, std::span<std::byte> out) {
    read_raw(handle_, SQLITE_FCNTL_FILE_POINTER, offset, out);
}

void Database::read_log(std::int64_t offset, std::span<std::byte> out) {
    read_raw(handle_, SQLITE_FCNTL_JOURNAL_POINTER, offset, out);
}

bool Database::read_log_index(std::span<std::byte, 136> out) {
    if (text("PRAGMA journal_mode") != "wal") {
        return false;
    }
    sqlite3_file* file = file_of(handle_, SQLITE_FCNTL_FILE_POINTER);
    // The connection is in a transaction, so it has mapped the region: this call returns the same memory.
    constexpr int region_bytes = 32768;
    void volatile* region = nullptr;
    if (file->pMethods->iVersion < 2 ||
        file->pMethods->xShmMap(file, 0, region_bytes, 0, &region) != SQLITE_OK || region == nullptr) {
        return false;
    }
    // A writer changes the second copy of the header, then the first. Equal copies are consistent.
    constexpr std::size_t copy_bytes = 48;
    for (int attempt = 0; attempt < 1000; ++attempt) {
        const auto* from = static_cast<const volatile std::byte*>(region);
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] = from[i];
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        file->pMethods->xShmBarrier(file);
        if (std::memcmp(out.data(), out.data() + copy_bytes, copy_bytes) == 0) {
            return true;
        }
    }
    throw SqliteFailure(SQLITE_BUSY, "the index of its log does not hold still");
}

void Database::read_blob(const char* table, const char* column, std::int64_t row, std::size_t offset,
                         std::span<std::byte> out) {
    sqlite3_blob* blob = nullptr;
    if (sqlite3_blob_open(handle_, "main", table, column, row, 0, &blob) != SQLITE_OK) {
        const SqliteFailure failure = failure_of(handle_);
        sqlite3_blob_close(blob);
        fail(failure);
    }
    // sqlite3_blob_read refuses bytes beyond the BLOB. The offsets were checked to fit an int.
    const int code =
        sqlite3_blob_read(blob, out.data(), static_cast<int>(out.size()), static_cast<int>(offset));
    sqlite3_blob_close(blob);
    if (code != SQLITE_OK) {
        fail(SqliteFailure(code, sqlite3_errstr(code)));
    }
}

void remove_database(const std::filesystem::path& path) noexcept {
    std::error_code ignored;
    for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
        std::filesystem::remove(path.string() + suffix, ignored);
    }
}

ReadTransaction::ReadTransaction(Database& database) : database_(database) {
    if (database_.in_transaction()) { // the previous transaction could not end, for lack of memory
        database_.execute("ROLLBACK");
    }
    database_.execute("BEGIN");
}

ReadTransaction::~ReadTransaction() {
    try {
        database_.execute("COMMIT");
    } catch (const std::exception&) {
        // Nothing was written. The next transaction, or close(), ends this one.
    }
}

} // namespace ponderscope
