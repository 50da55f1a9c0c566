// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/database.h"

#include <cmath>
#include <limits>
#include <sqlite3.h>
#include <string>
#include <utility>

namespace ponderscope {
namespace {

[[noreturn]] void fail(sqlite3* handle) {
    throw SqliteFailure(sqlite3_extended_errcode(handle), sqlite3_errmsg(handle));
}

void check(int code, sqlite3_stmt* statement) {
    if (code != SQLITE_OK) {
        fail(sqlite3_db_handle(statement));
    }
}

/// A path as an SQLite URI: everything that could be read as syntax is written as %XX.
std::string uri_of(const std::filesystem::path& path) {
    static constexpr char digits[] = "0123456789ABCDEF";
    std::string uri = "file:";
    for (const char c : path.string()) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           c == '/' || c == '.' || c == '-' || c == '_';
        if (plain) {
            uri += c;
        } else {
            uri += '%';
            uri += digits[byte >> 4];
            uri += digits[byte & 15];
        }
    }
    return uri + "?immutable=1";
}

} // namespace

bool SqliteFailure::is_busy() const {
    return primary_code() == SQLITE_BUSY || primary_code() == SQLITE_LOCKED;
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
    default: // a read that runs past the end of the file is damage too
        return code_ == SQLITE_IOERR_SHORT_READ || code_ == SQLITE_IOERR_CORRUPTFS;
    }
}

Statement::Statement(Statement&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
    std::swap(statement_, other.statement_);
    return *this;
}

Statement::~Statement() {
    sqlite3_finalize(statement_);
}

Statement& Statement::bind(int index, std::int64_t value) {
    check(sqlite3_bind_int64(statement_, index, value), statement_);
    return *this;
}

Statement& Statement::bind(int index, double value) {
    check(sqlite3_bind_double(statement_, index, value), statement_);
    return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
    // An empty view may hold a null pointer, which SQLite would take for NULL.
    const char* data = text.empty() ? "" : text.data();
    check(sqlite3_bind_text64(statement_, index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8), statement_);
    return *this;
}

Statement& Statement::bind(int index, std::span<const std::byte> blob) {
    if (blob.empty()) {
        check(sqlite3_bind_zeroblob(statement_, index, 0), statement_);
    } else {
        check(sqlite3_bind_blob64(statement_, index, blob.data(), blob.size(), SQLITE_STATIC), statement_);
    }
    return *this;
}

Statement& Statement::bind_null(int index) {
    check(sqlite3_bind_null(statement_, index), statement_);
    return *this;
}

bool Statement::step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) {
        return true;
    }
    if (code == SQLITE_DONE) {
        return false;
    }
    sqlite3* handle = sqlite3_db_handle(statement_);
    const SqliteFailure failure(sqlite3_extended_errcode(handle), sqlite3_errmsg(handle));
    sqlite3_reset(statement_);
    throw failure;
}

void Statement::run() {
    while (step()) {
    }
    reset();
}

void Statement::reset() {
    sqlite3_reset(statement_);
}

bool Statement::is_null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
    return is_null(column) ? std::numeric_limits<double>::quiet_NaN()
                           : sqlite3_column_double(statement_, column);
}

std::string Statement::text(int column) const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    return data == nullptr ? std::string() : std::string(data, size);
}

std::span<const std::byte> Statement::blob(int column) const {
    const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    return data == nullptr ? std::span<const std::byte>() : std::span(data, size);
}

Database::Database(const std::filesystem::path& path, Access access) {
    // An absolute name is never taken for ":memory:" or for a URI.
    const std::filesystem::path absolute = std::filesystem::absolute(path);
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
    }
    const int code = sqlite3_open_v2(name.c_str(), &handle_, flags, nullptr);
    if (code != SQLITE_OK) {
        const SqliteFailure failure(code, handle_ != nullptr ? sqlite3_errmsg(handle_) : "out of memory",
                                    handle_ != nullptr ? sqlite3_system_errno(handle_) : 0);
        sqlite3_close_v2(handle_);
        handle_ = nullptr;
        throw failure;
    }
    // The file may come from a stranger, for writing too: nothing that is planted in its schema runs.
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
    sqlite3_busy_timeout(handle_, 5000);
}

Database::Database(Database&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

Database::~Database() {
    close();
}

void Database::close() {
    sqlite3_close_v2(std::exchange(handle_, nullptr));
}

void Database::execute(const std::string& sql) {
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        fail(handle_);
    }
}

void Database::vacuum(const std::filesystem::path& into) {
    // To SQLite the new file is an attached one; otherwise there are none.
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
        fail(handle_);
    }
    return Statement(statement);
}

std::int64_t Database::integer(std::string_view sql) {
    Statement statement = prepare(sql);
    return statement.step() ? statement.integer(0) : 0;
}

std::string Database::text(std::string_view sql) {
    Statement statement = prepare(sql);
    return statement.step() ? statement.text(0) : std::string();
}

bool Database::has_column(std::string_view table, std::string_view column) {
    Statement statement = prepare("SELECT 1 FROM pragma_table_xinfo(?) WHERE name = ?");
    statement.bind(1, table).bind(2, column);
    return statement.step();
}

bool Database::in_transaction() const {
    return handle_ != nullptr && sqlite3_get_autocommit(handle_) == 0;
}

void Database::wait_for_locks(int milliseconds) {
    sqlite3_busy_timeout(handle_, milliseconds);
}

void Database::read_header(std::span<std::byte> out) {
    sqlite3_file* file = nullptr;
    if (sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        file == nullptr || file->pMethods == nullptr) {
        fail(handle_);
    }
    const int code = file->pMethods->xRead(file, out.data(), static_cast<int>(out.size()), 0);
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) {
        throw SqliteFailure(code, sqlite3_errstr(code));
    }
}

void Database::read_blob(const char* table, const char* column, std::int64_t row, std::size_t offset,
                         std::span<std::byte> out) {
    sqlite3_blob* blob = nullptr;
    if (sqlite3_blob_open(handle_, "main", table, column, row, 0, &blob) != SQLITE_OK) {
        const SqliteFailure failure(sqlite3_extended_errcode(handle_), sqlite3_errmsg(handle_));
        sqlite3_blob_close(blob);
        throw failure;
    }
    // sqlite3_blob_read refuses what lies beyond the BLOB; offsets were checked against int before.
    const int code =
        sqlite3_blob_read(blob, out.data(), static_cast<int>(out.size()), static_cast<int>(offset));
    sqlite3_blob_close(blob);
    if (code != SQLITE_OK) {
        throw SqliteFailure(code, sqlite3_errstr(code));
    }
}

ReadTransaction::ReadTransaction(Database& database) : database_(database) {
    database_.execute("BEGIN");
}

ReadTransaction::~ReadTransaction() {
    try {
        database_.execute("COMMIT");
    } catch (const SqliteFailure&) {
        // Nothing was written; a transaction that cannot end is ended by closing the connection.
    }
}

} // namespace ponderscope
