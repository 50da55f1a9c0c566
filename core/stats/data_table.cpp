// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/data_table.h"

#include "core/base/csv.h"
#include "core/base/utf8.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ponderscope {

using namespace plain_text; // NOLINT(google-build-using-namespace): of this file

namespace {

bool is_absent(const Cell& cell) {
    return std::holds_alternative<std::monostate>(cell) ||
           (!std::holds_alternative<std::string>(cell) && !std::holds_alternative<std::int64_t>(cell) &&
            !std::holds_alternative<bool>(cell) && std::isnan(cell_value(cell)));
}

std::string number_text(double value, const TableColumn& column) {
    switch (column.format) {
    case CellFormat::share:
        return fixed(100 * value, column.decimals) + " %";
    case CellFormat::p:
        return value < 1e-4 ? "< 0.0001" : fixed(value, 4);
    case CellFormat::si:
        return human_count(value);
    case CellFormat::significant:
        return rounded(value, column.decimals);
    case CellFormat::difference:
        return (value > 0 ? "+" : "") + fixed(value, column.decimals);
    default:
        return fixed(value, column.decimals);
    }
}

/// Overloads for std::visit, one for each kind of cell.
template <class... Functions>
struct ForEachKind : Functions... {
    using Functions::operator()...;
};
template <class... Functions>
ForEachKind(Functions...) -> ForEachKind<Functions...>;

/// The number of characters, which is the width in a terminal unless some are wide.
std::size_t width_of_text(const std::string& text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

nlohmann::json json_of_cell(const Cell& cell) {
    return std::visit(ForEachKind{[](std::monostate) { return nlohmann::json(); },
                                  [](double number) { return number_or_null(number); },
                                  [](const Estimate& estimate) { return json_of(estimate); },
                                  [](const auto& value) { return nlohmann::json(value); }},
                      cell);
}

/// Whether any of the tables has an estimate in this column, so that CSV needs columns for bounds.
bool has_bounds(std::span<const DataTable> tables, std::size_t column) {
    return std::ranges::any_of(tables, [column](const DataTable& table) {
        return std::ranges::any_of(table.rows, [column](const std::vector<Cell>& row) {
            return std::holds_alternative<Estimate>(row[column]);
        });
    });
}

/// The fewest digits that read back as the same value; empty for NaN and infinity.
std::string exact_digits(double value) {
    return std::isfinite(value) ? shortest(value) : std::string();
}

std::string csv_cell(const Cell& cell) {
    return std::visit(ForEachKind{[](std::monostate) { return std::string(); },
                                  [](double number) { return exact_digits(number); },
                                  [](const Estimate& estimate) { return exact_digits(estimate.value); },
                                  [](const std::string& text) { return csv_field(valid_utf8(text)); },
                                  [](auto whole) { return std::to_string(whole); }},
                      cell);
}

std::vector<std::size_t> titled_columns(const DataTable& table) {
    std::vector<std::size_t> shown;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        if (!table.columns[c].title.empty()) {
            shown.push_back(c);
        }
    }
    return shown;
}

} // namespace

void DataTable::add(TableColumn column, Cell cell) {
    rows.resize(1);
    columns.push_back(std::move(column));
    rows.front().push_back(std::move(cell));
}

const Cell& DataTable::at(std::size_t row, const std::string& key) const {
    const auto found = std::ranges::find(columns, key, &TableColumn::key);
    return rows.at(row).at(static_cast<std::size_t>(found - columns.begin()));
}

double cell_value(const Cell& cell) {
    if (const auto* number = std::get_if<double>(&cell)) {
        return *number;
    }
    if (const auto* estimate = std::get_if<Estimate>(&cell)) {
        return estimate->value;
    }
    const auto* count = std::get_if<std::int64_t>(&cell);
    return count != nullptr ? static_cast<double>(*count) : not_a_number;
}

std::string cell_text(const Cell& cell, const TableColumn& column) {
    if (is_absent(cell)) {
        return "-";
    }
    if (const auto* text = std::get_if<std::string>(&cell)) {
        return visible(*text);
    }
    if (const auto* count = std::get_if<std::int64_t>(&cell)) {
        return with_separators(*count);
    }
    if (const auto* yes = std::get_if<bool>(&cell)) {
        return *yes ? "yes" : "";
    }
    const auto* estimate = std::get_if<Estimate>(&cell);
    return number_text(cell_value(cell), column) +
           (estimate != nullptr && !std::isnan(estimate->low)
                ? " [" + number_text(estimate->low, column) + ", " + number_text(estimate->high, column) + "]"
                : "");
}

nlohmann::json json_of(const Estimate& estimate) {
    return {{"value", number_or_null(estimate.value)},
            {"low", number_or_null(estimate.low)},
            {"high", number_or_null(estimate.high)},
            {"detectable", number_or_null(estimate.detectable)}};
}

nlohmann::json json_of(const DataTable& table) {
    nlohmann::json list = nlohmann::json::array();
    for (const std::vector<Cell>& row : table.rows) {
        nlohmann::json object = nlohmann::json::object();
        for (std::size_t c = 0; c < row.size(); ++c) {
            if (!std::holds_alternative<std::monostate>(row[c]) && !table.columns[c].key.empty()) {
                std::string path = "/" + table.columns[c].key;
                std::ranges::replace(path, '.', '/');
                object[nlohmann::json::json_pointer(path)] = json_of_cell(row[c]);
            }
        }
        list.push_back(std::move(object));
    }
    return list;
}

std::string csv_of(std::span<const DataTable> tables) {
    const DataTable& first = tables.front();
    std::string text;
    const auto put = [&](const std::string& field) { text += field + ","; };
    const auto end_line = [&] { text.back() = '\n'; };
    const auto name = [&](const std::string& of) {
        if (!first.name.empty()) {
            put(of);
        }
    };
    name("table");
    std::vector<bool> wide;
    for (std::size_t c = 0; c < first.columns.size(); ++c) {
        std::string key = first.columns[c].key;
        std::ranges::replace(key, '.', '_');
        wide.push_back(has_bounds(tables, c));
        for (const char* part : {"", "_low", "_high"}) {
            if (!key.empty() && (*part == '\0' || wide[c])) {
                put(key + part);
            }
        }
    }
    end_line();
    for (const DataTable& table : tables) {
        for (const std::vector<Cell>& row : table.rows) {
            name(csv_field(table.name));
            for (std::size_t c = 0; c < row.size(); ++c) {
                if (first.columns[c].key.empty()) {
                    continue;
                }
                put(csv_cell(row[c]));
                if (wide[c]) {
                    const auto* estimate = std::get_if<Estimate>(&row[c]);
                    put(estimate != nullptr ? exact_digits(estimate->low) : "");
                    put(estimate != nullptr ? exact_digits(estimate->high) : "");
                }
            }
            end_line();
        }
    }
    return text;
}

std::string csv_of(const DataTable& table) {
    return csv_of(std::span(&table, 1));
}

std::string text_of(const DataTable& table, std::size_t most) {
    const std::vector<std::size_t> shown = titled_columns(table);
    const std::size_t rows = std::min(most, table.rows.size());
    std::vector<std::string> lines(rows + 1);
    for (const std::size_t c : shown) {
        const TableColumn& column = table.columns[c];
        std::vector<std::string> cells{column.title};
        for (std::size_t row = 0; row < rows; ++row) {
            cells.push_back(cell_text(table.rows[row][c], column));
        }
        std::size_t width = 0;
        for (const std::string& cell : cells) {
            width = std::max(width, width_of_text(cell));
        }
        for (std::size_t i = 0; i < lines.size(); ++i) {
            lines[i] += c == shown.front() ? padded(cells[i], width) : "  " + right(cells[i], width);
        }
    }
    std::string text;
    for (std::string& line : lines) {
        line.resize(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    if (rows < table.rows.size()) {
        text += "... " + std::to_string(table.rows.size() - rows) + " more with --rows, --csv or --json\n";
    }
    return text;
}

std::string list_of(const DataTable& table, std::size_t row, const std::string& indent) {
    std::size_t width = 0;
    for (const std::size_t c : titled_columns(table)) {
        width = std::max(width, width_of_text(table.columns[c].title));
    }
    std::string text;
    for (const std::size_t c : titled_columns(table)) {
        const TableColumn& column = table.columns[c];
        if (!is_absent(table.rows[row][c])) {
            text += indent + padded(column.title, width) + "  " + cell_text(table.rows[row][c], column) +
                    (column.unit.empty() ? "" : " " + column.unit) + "\n";
        }
    }
    return text;
}

std::string latex_of(const DataTable& table) {
    const std::vector<std::size_t> shown = titled_columns(table);
    std::string text = "\\begin{tabular}{l" + std::string(shown.size() - 1, 'r') + "}\n\\toprule\n";
    const auto line = [&](const auto& cell) {
        for (const std::size_t c : shown) {
            const std::string escaped = plain_text::tex(cell(c));
            // After "\\\\" and "\\midrule" LaTeX would read [ as an option and * as a star.
            const bool bare = escaped.starts_with('[') || escaped.starts_with('*');
            text += c != shown.front() ? " & " + escaped
                    : bare             ? "{" + escaped.substr(0, 1) + "}" + escaped.substr(1)
                                       : escaped;
        }
        text += " \\\\\n";
    };
    line([&](std::size_t c) { return table.columns[c].title; });
    text += "\\midrule\n";
    for (const std::vector<Cell>& row : table.rows) {
        line([&](std::size_t c) {
            std::string words = is_absent(row[c]) ? "–" : cell_text(row[c], table.columns[c]);
            const bool number = !std::holds_alternative<std::string>(row[c]);
            for (std::size_t at = words.find('-'); number && at != std::string::npos;
                 at = words.find('-', at)) {
                words.replace(at, 1, "−");
            }
            return words;
        });
    }
    return text + "\\bottomrule\n\\end{tabular}\n";
}

} // namespace ponderscope

namespace ponderscope::plain_text {

std::string tex(const std::string& text) {
    static constexpr std::pair<std::string_view, std::string_view> commands[] = {
        {"\\", "\\textbackslash{}"},
        {"~", "\\textasciitilde{}"},
        {"^", "\\textasciicircum{}"},
        {"_", "\\_"},
        {"%", "\\%"},
        {"#", "\\#"},
        {"&", "\\&"},
        {"$", "\\$"},
        {"{", "\\{"},
        {"}", "\\}"},
        {"\n", " "},
        {"\r", " "},
        {"−", "$-$"},
        {"–", "--"},
        {"Δ", "$\\Delta$"},
        {"‖", "$\\|$"},
        {"≤", "$\\leq$"},
        {"≥", "$\\geq$"},
        {"→", "$\\rightarrow$"},
        {"⇥", "$\\rightarrow$"},
        {"⏎", "$\\hookleftarrow$"},
        {"␣", "\\textvisiblespace{}"}};
    std::string result;
    for (std::string_view rest = text; !rest.empty();) {
        const auto* const command =
            std::ranges::find_if(commands, [&](const auto& one) { return rest.starts_with(one.first); });
        const bool known = command != std::end(commands);
        result += known ? command->second : rest.substr(0, 1);
        rest.remove_prefix(known ? command->first.size() : 1);
    }
    return result;
}

std::string interval(const Estimate& estimate, int decimals) {
    return fixed(estimate.value, decimals) + " [" + fixed(estimate.low, decimals) + ", " +
           fixed(estimate.high, decimals) + "]";
}

std::string padded(const std::string& text, std::size_t width) {
    const std::size_t own = width_of_text(text);
    return text + std::string(own < width ? width - own : 0, ' ');
}

std::string right(const std::string& text, std::size_t width) {
    const std::size_t own = width_of_text(text);
    return std::string(own < width ? width - own : 0, ' ') + text;
}

} // namespace ponderscope::plain_text
