// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/database.h"
#include "core/trace/records.h"
#include "core/trace/schema.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

/// Rows as structs. Each table has one list of fields (tables.cpp), which assigns members to columns. INSERT,
/// SELECT, JSON, CSV and the tests of `check` use this list.
namespace ponderscope::schema {

template <class Row>
using Member =
    std::variant<std::monostate, std::int64_t Row::*, std::uint64_t Row::*, double Row::*, bool Row::*,
                 std::string Row::*, std::vector<std::string> Row::*, DType Row::*, SignalStorage Row::*>;

/// A column with its member of the row. If a column has no member, the caller binds and reads it.
template <class Row>
struct Field {
    const char* name;
    Member<Row> member = {};
    const Rule* rule = nullptr; ///< condition on the values, in addition to their type
    Text text = Text::line;
    bool exported = true;  ///< `inspect --json` and `export` include it
    bool nullable = false; ///< NULL if the member is -1 or empty
};

/// The fields of a Row in the order of its table's columns. Row: RunInfo, SequenceInfo, SignalInfo,
/// FaultInfo, TrainingInfo or TrainingQuantity.
template <class Row>
std::span<const Field<Row>> fields();

/// "id,name,checkpoint,...": all columns of a table, for SELECT and INSERT.
std::string columns_of(const char* table);
/// " INTO table (columns) VALUES (?,...)", for INSERT.
std::string into(const char* table);

/// Runs \p statement, an INSERT made with into(), for a row. The caller first binds columns without a member.
template <class Row>
void insert_row(Statement& statement, const Row& row);
/// Reads the members from a row of a SELECT of columns_of. For an invalid value, calls \p damaged(expected,
/// found), which throws.
using Damaged = std::function<void(const std::string& expected, const std::string& found)>;
template <class Row>
Row read_row(const Statement& rows, const Damaged& damaged);
/// Calls \p visit(name, value) for each exported column.
template <class Row, class Visit>
void each_exported(const Row& row, const Visit& visit) {
    for (const Field<Row>& field : fields<Row>()) {
        std::visit(
            [&](const auto member) {
                if constexpr (!std::is_same_v<std::decay_t<decltype(member)>, std::monostate>) {
                    if (field.exported) {
                        visit(field.name, row.*member);
                    }
                }
            },
            field.member);
    }
}

/// The exported columns by name. Invalid UTF-8 is replaced.
template <class Row>
nlohmann::json json_of_row(const Row& row);

std::string_view name_of(SignalStorage storage);

/// A column of token_row and its vector in TokenColumns.
template <class Value>
struct TokenField {
    const char* name;
    std::vector<Value> TokenColumns::*values;
};
/// The columns of token_row after `row`, in their order.
inline constexpr std::tuple token_fields{TokenField<std::int32_t>{"id", &TokenColumns::id},
                                         TokenField<std::uint64_t>{"text_begin", &TokenColumns::begin},
                                         TokenField<std::uint64_t>{"text_end", &TokenColumns::end},
                                         TokenField<float>{"nll", &TokenColumns::nll},
                                         TokenField<float>{"entropy", &TokenColumns::entropy},
                                         TokenField<float>{"max_probability", &TokenColumns::max_probability},
                                         TokenField<std::int32_t>{"rank", &TokenColumns::rank},
                                         TokenField<std::int32_t>{"steps", &TokenColumns::steps},
                                         TokenField<std::int64_t>{"flops", &TokenColumns::flops}};

/// Calls \p visit(field) for each column of a token.
template <class Visit>
void each_token_field(const Visit& visit) {
    std::apply([&](const auto&... field) { (visit(field), ...); }, token_fields);
}

/// Calls \p visit with the numbers of token \p i as SQLite stores them: std::int64_t, or double (NaN: NULL).
/// Without a text, `begin` and `end` are empty, and their values are 0.
template <class Visit>
void each_token_number(const TokenColumns& tokens, std::size_t i, const Visit& visit) {
    each_token_field([&](const auto& field) {
        const auto& values = tokens.*field.values;
        using Value = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_floating_point_v<Value>) {
            visit(static_cast<double>(values[i]));
        } else {
            visit(i < values.size() ? static_cast<std::int64_t>(values[i]) : std::int64_t{0});
        }
    });
}

} // namespace ponderscope::schema
