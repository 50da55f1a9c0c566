// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/schema.h"

#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/trace/database.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>

namespace ponderscope {
namespace schema {

bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= 100 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.' || c == '-';
    });
}

std::string name_in_sql(std::string_view column) {
    return column == "group" ? "\"group\"" : std::string(column);
}

std::vector<Table> tables_of(const char* script) {
    Database memory("/", Database::Access::memory);
    memory.execute(script);
    std::vector<Table> tables;
    Statement rows =
        memory.prepare("SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) "
                       "c WHERE t.type = 'table' ORDER BY t.rowid, c.cid");
    while (rows.step()) {
        if (tables.empty() || tables.back().name != rows.text(0)) {
            tables.push_back({rows.text(0), {}});
        }
        tables.back().columns.push_back(rows.text(1));
    }
    return tables;
}

const std::vector<Table>& tables() {
    static const std::vector<Table> all = tables_of(script::schema);
    return all;
}

std::vector<std::string> views() {
    Database memory("/", Database::Access::memory);
    memory.execute(script::schema);
    std::vector<std::string> names;
    Statement rows = memory.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'");
    while (rows.step()) {
        names.push_back(rows.text(0));
    }
    return names;
}

} // namespace schema

namespace {

std::uint32_t big_endian(const char* bytes) {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
        value = value << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return value;
}

} // namespace

void check_trace_header(const std::filesystem::path& path) {
    check_header(path, {"a trace", schema::application_id, schema::version,
                        "choose a .ponder file that ponderscope record made"});
}

void check_plain_file(const std::filesystem::path& path, const std::string& what,
                      const std::string& make_one) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
        throw InputError(ErrorId::file_missing, path, what, "no such file", "check the name");
    }
    if (status.type() == fs::file_type::directory) {
        throw InputError(ErrorId::trace_kind, path, what, "a folder", make_one);
    }
    if (error) {
        throw InputError(ErrorId::environment_failed, path, what,
                         "an unreadable entry (" + error.message() + ")",
                         "check the permissions of the folders above it");
    }
    if (status.type() != fs::file_type::regular) {
        throw InputError(ErrorId::trace_kind, path, what, "something other than a plain file", make_one);
    }
    if (fs::file_size(path, error) == 0 && !error) {
        throw InputError(ErrorId::trace_kind, path, what, "an empty file", make_one);
    }
}

void check_header(const std::filesystem::path& path, const DatabaseKind& kind) {
    const std::string what = kind.what;
    const std::string make_one = kind.otherwise;
    if (!remote::is_remote(path)) { // the other machine checks its files itself
        check_plain_file(path, what, make_one);
    }
    // SQLite's own header: magic at 0, user_version at 60, application_id at 68, both big-endian.
    std::array<char, 100> header{};
    try {
        Database(path, Database::Access::read).read_file(0, std::as_writable_bytes(std::span(header)));
    } catch (const SqliteFailure& failure) {
        const int reason = failure.system_error();
        throw InputError(ErrorId::file_permission, path, what + " that can be read",
                         std::string("an unreadable file (") +
                             (reason != 0 ? std::strerror(reason) : failure.what()) + ")",
                         "check its permissions");
    }
    // If a file is shorter than the header, the missing bytes are 0. Byte 18 is the format's version, 1 or 2.
    if (std::string_view(header.data(), 16) != std::string_view("SQLite format 3\0", 16) || header[18] == 0) {
        throw InputError(ErrorId::trace_kind, path, what, "a file of another kind", make_one);
    }
    if (big_endian(header.data() + 68) != static_cast<std::uint32_t>(kind.application_id)) {
        throw InputError(ErrorId::trace_kind, path, what, "an SQLite database of another program", make_one);
    }
    const auto version = static_cast<std::int32_t>(big_endian(header.data() + 60));
    if (version != kind.version) {
        throw InputError(ErrorId::trace_kind, path, what + " of version " + std::to_string(kind.version),
                         "version " + std::to_string(version),
                         "open it with the Ponderscope that wrote it, or make it again");
    }
}

void check_trace_tables(Database& database, const std::filesystem::path& path) {
    check_tables(database, path, schema::tables());
}

void check_tables(Database& database, const std::filesystem::path& path,
                  const std::vector<schema::Table>& tables) {
    const std::string remedy = "the file was changed or damaged; take it from its source again";
    Statement find =
        database.prepare("SELECT type, coalesce(sql, '') FROM sqlite_schema WHERE lower(name) = ?");
    for (const schema::Table& table : tables) {
        const std::string expected = "a table named " + table.name;
        find.bind(1, std::string_view(table.name));
        if (!find.step()) {
            find.reset();
            throw InputError(ErrorId::trace_damaged, path, expected, "none", remedy);
        }
        const std::string type = find.text(0);
        const std::string sql = find.text(1);
        const bool another = find.step();
        find.reset();
        if (type != "table" || another) {
            throw InputError(ErrorId::trace_damaged, path, expected,
                             another ? "two entries of that name" : "an entry of type " + type, remedy);
        }
        // A virtual table would run a module's code on untrusted data.
        if (!sql.starts_with("CREATE TABLE ")) {
            throw InputError(ErrorId::trace_damaged, path, expected, "a virtual table of that name", remedy);
        }
        std::set<std::string, std::less<>> plain;
        Statement columns = database.prepare("SELECT name, hidden FROM pragma_table_xinfo(?)");
        columns.bind(1, std::string_view(table.name));
        while (columns.step()) {
            if (columns.integer(1) == 0) { // a stored column, not one computed by an expression
                plain.insert(columns.text(0));
            }
        }
        for (const std::string& column : table.columns) {
            if (!plain.contains(column)) {
                throw InputError(ErrorId::trace_damaged, path, "a plain column " + table.name + "." + column,
                                 "none", remedy);
            }
        }
    }
}

} // namespace ponderscope
