// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/stats/bootstrap.h"

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace ponderscope {

/// How a cell is written for people. JSON and CSV always have all digits.
enum class CellFormat : std::uint8_t {
    text,
    count,      ///< "1,234"
    number,     ///< fixed decimals
    difference, ///< the same with its sign
    share,      ///< per cent
    p,          ///< of a test: "< 0.0001" below that
    si,         ///< "11.7 M"
    significant ///< `decimals` significant digits
};

struct TableColumn {
    std::string key; ///< in JSON and CSV; empty: in neither. "a.b": member b of object a in JSON, a_b in CSV
    std::string title; ///< empty: only in JSON and CSV
    CellFormat format = CellFormat::number;
    int decimals = 4;
    std::string unit = {}; ///< behind the value, in a list
    bool brief = false;    ///< the window shows the value without its interval
    std::string tip = {};  ///< of the heading, in the window
};

/// No value: nothing in a list and in JSON, an empty field in CSV, "-" in a table.
using Cell = std::variant<std::monostate, std::string, std::int64_t, double, bool, Estimate>;

/// Numbers with what they are: the source of a report's terminal text, JSON, CSV, Markdown and LaTeX, and of
/// the tables in the window.
struct DataTable {
    std::string name; ///< of several in one CSV file
    std::vector<TableColumn> columns;
    std::vector<std::vector<Cell>> rows; ///< as many cells as columns

    /// A column with its cell in the first row: for tables of one row.
    void add(TableColumn column, Cell cell);
    [[nodiscard]] const Cell& at(std::size_t row, const std::string& key) const;
};

/// "1.947 [1.682, 1.922]"; "-" without a value.
std::string cell_text(const Cell& cell, const TableColumn& column);
/// The value of a number; NaN of anything else.
double cell_value(const Cell& cell);

/// An object for each row. An estimate is {"value", "low", "high", "detectable"}.
nlohmann::json json_of(const DataTable& table);
nlohmann::json json_of(const Estimate& estimate);
/// With a header. An estimate has columns for its value and both bounds.
std::string csv_of(const DataTable& table);
/// Tables with the same columns, one below the other; the first column, `table`, has their names.
std::string csv_of(std::span<const DataTable> tables);
/// Columns with titles, the first at the left, numbers at the right. \p most: rows.
std::string text_of(const DataTable& table, std::size_t most = SIZE_MAX);
/// One row as lines "title  value unit", without cells that have no value. \p indent: before each.
std::string list_of(const DataTable& table, std::size_t row, const std::string& indent = {});
/// A tabular of booktabs.
std::string latex_of(const DataTable& table);

} // namespace ponderscope

/// Numbers as text for terminals and files, with a decimal point in every locale.
namespace ponderscope::plain_text {

/// "1,234,567".
std::string with_separators(std::int64_t value);
/// Fixed decimals with a point, whatever the locale; "NaN" for NaN.
std::string fixed(double value, int decimals);
/// "8.85 M", powers of 1000: the number and the prefix of its unit.
std::string human_count(double value);
/// "1.947 [1.682, 1.922]"
std::string interval(const Estimate& estimate, int decimals = 4);
/// Digits that read back the same; empty for NaN and infinity.
std::string exact_digits(double value);
/// A field of a CSV file, in double quotes if needed.
std::string csv_field(const std::string& text);
/// With LaTeX's special characters escaped, and the signs that names and headings have as commands.
std::string tex(const std::string& text);
/// Filled with spaces to at least \p width characters, behind the text or before it.
std::string padded(const std::string& text, std::size_t width);
std::string right(const std::string& text, std::size_t width);

} // namespace ponderscope::plain_text
