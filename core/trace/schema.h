// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

class Database;

/// The schema of a trace.
namespace schema {

/// "POND" in the file's header, by which the command `file` and other programs recognise a trace.
inline constexpr std::int32_t application_id = 0x504F4E44;
/// Increases with every change of the schema. Files of other versions are refused.
inline constexpr std::int32_t version = 2;

/// The id of a token row is sequence * 2^32 + position, so a sequence is one range of ids. Appending takes
/// half the time that a primary key with two columns takes.
inline constexpr int position_bits = 32;
inline constexpr std::int64_t max_tokens = (std::int64_t{1} << position_bits) - 1; ///< per sequence
inline constexpr std::int64_t max_sequence_id = (std::int64_t{1} << 31) - 1;
/// Bytes in a stored piece of text. A query for one token reads one or two pieces instead of the whole text.
inline constexpr std::int64_t text_piece = 4000;

/// Whether \p text is a valid name of a signal, axis or quantity: 1 to 100 characters of A-Z a-z 0-9 _ . -
bool is_name(std::string_view text);

/// A condition that every value of a column meets; `ponderscope check` tests it.
struct Rule {
    const char* sql;   ///< the condition, with ? for the column
    const char* words; ///< "a time like 2026-11-21T11:45:00Z"
};

/// The use of a text.
enum class Text : std::uint8_t {
    line,    ///< shown in windows and tables, so TraceReader refuses more than max_line_bytes
    document ///< text of any length
};
inline constexpr std::size_t max_line_bytes = std::size_t{1} << 17; // Linux's limit for an argument

/// The column's name in a statement, quoted if needed ("group" is a keyword).
std::string name_in_sql(std::string_view column);

struct Table {
    std::string name;
    std::vector<std::string> columns;
};

/// The SQL that creates an empty trace or annotations file: schema.sql and annotations.sql in
/// app/python/ponderscope. SQL comments explain the columns, so `.schema` shows the explanations.
namespace script {
extern const char* const schema;
extern const char* const annotations;
} // namespace script
/// The tables that a script creates, in the script's order.
std::vector<Table> tables_of(const char* script);
const std::vector<Table>& tables(); ///< the tables of a trace
std::vector<std::string> views();   ///< names of the views of a trace

} // namespace schema

/// A kind of SQLite file that this program writes.
struct DatabaseKind {
    const char* what; ///< "a trace"
    std::int32_t application_id;
    std::int32_t version;
    const char* otherwise; ///< remedy for a file of another kind
};

/// InputError: the path is not a plain file, or the file is empty. The message has \p what (the expected kind
/// of file) and \p make_one (the remedy).
void check_plain_file(const std::filesystem::path& path, const std::string& what,
                      const std::string& make_one);

/// InputError: the file is of another kind or version. Reads only the first 100 bytes, through
/// Database::read_file, which keeps SQLite's locks.
void check_header(const std::filesystem::path& path, const DatabaseKind& kind);
void check_trace_header(const std::filesystem::path& path);
/// InputError: one of these tables is missing, is a view or a virtual table, or lacks a column. A generated
/// column is not accepted.
void check_tables(Database& database, const std::filesystem::path& path,
                  const std::vector<schema::Table>& tables);
void check_trace_tables(Database& database, const std::filesystem::path& path);

} // namespace ponderscope
