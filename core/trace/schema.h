// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ponderscope {

class Database;

/// The schema of a trace, as data: the tables are made from it, readers check files against it, and a test
/// compares app/python/ponderscope/schema.sql with it.
namespace schema {

/// "POND" in the file's header, so that `file` and other programs can tell a trace from any other SQLite
/// file.
inline constexpr std::int32_t application_id = 0x504F4E44;
/// Counts up with every change of the schema. Files of another version are refused.
inline constexpr std::int32_t version = 2;
inline constexpr std::int32_t page_size = 16384;

/// Token rows are numbered sequence * 2^32 + position: appending to a table by row number takes half the time
/// of a primary key of two columns, and a sequence is still one range.
inline constexpr int position_bits = 32;
inline constexpr std::int64_t max_tokens = (std::int64_t{1} << position_bits) - 1; ///< of a sequence
inline constexpr std::int64_t max_sequence_id = (std::int64_t{1} << 31) - 1;
/// Text is kept in pieces of this many bytes, so that a query that cuts out a token reads a piece and not the
/// whole text.
inline constexpr std::int64_t text_piece = 4000;

/// Names of signals, axes and quantities: 1 to 100 of A-Z a-z 0-9 _ . -
bool is_name(std::string_view text);

/// A promise that every value of a column keeps; `ponderscope check` tests it.
struct Rule {
    const char* sql;   ///< a condition, with ? in the place of the column
    const char* words; ///< "a time like 2026-11-21T11:45:00Z"
};

/// What a text is for.
enum class Text : std::uint8_t {
    line,    ///< windows and tables show it: TraceReader refuses one of more than max_line_bytes
    document ///< of any length
};
inline constexpr std::size_t max_line_bytes = std::size_t{1} << 17; // as long as an argument can be

struct Column {
    const char* name;
    const char* type; ///< with constraints
    const char* meaning;
    const Rule* rule = nullptr; ///< beside the type
    const char* unit = "";      ///< "nats"
    Text text = Text::line;
    bool exported = true; ///< `inspect --json` and `export` show it
};

/// The column's name as a statement has to write it: "group" is a keyword.
std::string name_in_sql(const Column& column);

struct Table {
    const char* name;
    const char* meaning;
    std::span<const Column> columns;
    const char* constraints; ///< after the columns, or ""
    const char* options;     ///< after the closing bracket
};

struct View {
    const char* name;
    const char* meaning;
    std::string select;
};

std::span<const Table> tables();
std::span<const View> views();
/// With its unit in front.
std::string meaning_of(const Column& column);
/// Text of one table's CREATE statement.
std::string create_statement(const Table& table);
/// Text of all CREATE statements, with the meanings as comments, so that `.schema` explains the file.
std::string create_statements();

} // namespace schema

/// A kind of SQLite file that this program makes.
struct DatabaseKind {
    const char* what; ///< "a trace"
    std::int32_t application_id;
    std::int32_t version;
    const char* otherwise; ///< what to do if the file is of another kind
};

/// Throws InputError unless something is there and a plain file that is not empty; The message says what the
/// file should be (\p what) and what to do (\p make_one).
void check_plain_file(const std::filesystem::path& path, const std::string& what,
                      const std::string& make_one);

/// Throws InputError unless the file looks like one of that kind and version. Reads only the first 100 bytes,
/// through SQLite (Database::read_file says why), and only of a plain file.
void check_header(const std::filesystem::path& path, const DatabaseKind& kind);
void check_trace_header(const std::filesystem::path& path);
/// Throws InputError unless all of the tables are there as tables (no views, no virtual tables) with plain
/// columns.
void check_tables(Database& database, const std::filesystem::path& path,
                  std::span<const schema::Table> tables);
void check_trace_tables(Database& database, const std::filesystem::path& path);

} // namespace ponderscope
