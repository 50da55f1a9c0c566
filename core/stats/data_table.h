// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/base/words.h"
#include "core/stats/bootstrap.h"

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace ponderscope {

/// The form of a cell for people. JSON and CSV always contain all digits.
enum class CellFormat : std::uint8_t {
    text,
    count,      ///< "1,234"
    number,     ///< fixed decimals
    difference, ///< like `number`, but always with a sign
    share,      ///< per cent
    p,          ///< p value; "< 0.0001" for smaller values
    si,         ///< "11.7 M"
    significant ///< `decimals` significant digits
};

struct TableColumn {
    std::string key;   ///< name in CSV and JSON; "a.b" is a_b in CSV, a nested key in JSON; empty: omitted
    std::string title; ///< empty: only JSON and CSV have the column
    CellFormat format = CellFormat::number;
    int decimals = 4;
    std::string unit = {}; ///< printed after the value in a list
    bool brief = false;    ///< the window shows the value without its interval
    std::string tip = {};  ///< tooltip of the heading in the window
};

/// std::monostate: no value. Omitted in a list and in JSON, an empty field in CSV, "-" in a table.
using Cell = std::variant<std::monostate, std::string, std::int64_t, double, bool, Estimate>;

/// Numbers with their descriptions. A report's text, JSON, CSV, Markdown and LaTeX, and the window's tables
/// are made from a DataTable.
struct DataTable {
    std::string name; ///< distinguishes the tables in one CSV file
    std::vector<TableColumn> columns;
    std::vector<std::vector<Cell>> rows; ///< each row has as many cells as columns

    /// Adds a column and its cell, for tables with one row.
    void add(TableColumn column, Cell cell);
    [[nodiscard]] const Cell& at(std::size_t row, const std::string& key) const;
};

/// "1.947 [1.882, 2.012]"; "-" without a value.
std::string cell_text(const Cell& cell, const TableColumn& column);
/// A number as double; NaN for other cells.
double cell_value(const Cell& cell);

/// A list with an object for each row. An estimate is {"value", "low", "high", "detectable"}.
nlohmann::json json_of(const DataTable& table);
nlohmann::json json_of(const Estimate& estimate);
/// CSV with a header. An estimate has columns for its value and both bounds.
std::string csv_of(const DataTable& table);
/// One CSV of tables with the same columns. The first column, `table`, has the name of the row's table.
std::string csv_of(std::span<const DataTable> tables);
/// A text table with titles. The first column is left-aligned, numbers are right-aligned. \p most: largest
/// number of rows.
std::string text_of(const DataTable& table, std::size_t most = SIZE_MAX);
/// One row as lines "title  value unit", without empty cells. \p indent precedes each line.
std::string list_of(const DataTable& table, std::size_t row, const std::string& indent = {});
/// A LaTeX tabular with booktabs rules.
std::string latex_of(const DataTable& table);

} // namespace ponderscope

/// Numbers as text for terminals and files, with a decimal point in every locale.
namespace ponderscope::plain_text {

/// "2.3149 [2.3012, 2.3290]".
std::string interval(const Estimate& estimate, int decimals = 4);
/// Escapes LaTeX's special characters, and writes symbols ("Δ", "≤") as commands.
std::string tex(const std::string& text);
/// Pads \p text to at least \p width characters: padded() adds spaces at the end, right() at the beginning.
std::string padded(const std::string& text, std::size_t width);
std::string right(const std::string& text, std::size_t width);

} // namespace ponderscope::plain_text
