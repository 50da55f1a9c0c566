// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/rows.h"

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"

#include <nlohmann/json.hpp>
#include <type_traits>

namespace ponderscope {

TokenTotals& TokenTotals::operator+=(const TokenTotals& other) {
    tokens += other.tokens;
    scored_tokens += other.scored_tokens;
    nll_sum += other.nll_sum;
    steps_sum += other.steps_sum;
    flops_sum += other.flops_sum;
    scored_bytes += other.scored_bytes;
    return *this;
}

namespace schema {
namespace {

constexpr std::string_view storage_names[] = {"plain", "compressed", "trimmed"};

/// A JSON array of names, which need no escaping, because is_name holds for them. Does not use
/// nlohmann::json: its destructor allocates, where nothing may be thrown.
std::string json_list(const std::vector<std::string>& names) {
    std::string text = "[";
    for (const std::string& name : names) {
        text += text.size() == 1 ? "\"" : ",\"";
        text += name;
        text += '"';
    }
    return text + "]";
}

std::vector<std::string> read_list(const std::string& text, const char* column, const Damaged& damaged) {
    const auto list = text.size() <= 10'000 ? nlohmann::json::parse(text, nullptr, false) : nlohmann::json();
    if (!list.is_array() || list.empty() ||
        !std::all_of(list.begin(), list.end(), [](const auto& one) { return one.is_string(); })) {
        damaged(std::string("a JSON array of texts in ") + column, text.substr(0, 100));
    }
    return list.get<std::vector<std::string>>();
}

/// Binds the value of one field. Does nothing for a field without a member.
template <class Row>
void bind_field(Statement& statement, int at, const Field<Row>& field, const Row& row) {
    const bool nullable = field.nullable;
    std::visit(
        [&](const auto member) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(member)>, std::monostate>) {
                const auto& value = row.*member;
                using Value = std::decay_t<decltype(value)>;
                if constexpr (std::is_same_v<Value, std::string>) {
                    nullable&& value.empty() ? statement.bind_null(at)
                                             : statement.bind(at, std::string_view(value));
                } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
                    statement.bind_copy(at, json_list(value));
                } else if constexpr (std::is_same_v<Value, DType>) {
                    statement.bind(at, ponderscope::name_of(value));
                } else if constexpr (std::is_same_v<Value, SignalStorage>) {
                    statement.bind(at, name_of(value));
                } else if constexpr (std::is_same_v<Value, double>) {
                    statement.bind(at, value); // NaN becomes NULL
                } else {
                    const auto number = static_cast<std::int64_t>(value);
                    nullable&& number == -1 ? statement.bind_null(at) : statement.bind(at, number);
                }
            }
        },
        field.member);
}

template <class Row>
void read_field(const Statement& rows, int at, const Field<Row>& field, Row& row, const Damaged& damaged) {
    std::visit(
        [&](const auto member) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(member)>, std::monostate>) {
                auto& value = row.*member;
                using Value = std::decay_t<decltype(value)>;
                if constexpr (std::is_same_v<Value, std::string>) {
                    value = rows.text(at);
                    if (field.text == Text::line && value.size() > max_line_bytes) {
                        damaged(std::string(field.name) + " of at most " + std::to_string(max_line_bytes) +
                                    " bytes",
                                std::to_string(value.size()));
                    }
                } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
                    value = read_list(rows.text(at), field.name, damaged);
                } else if constexpr (std::is_same_v<Value, DType>) {
                    const std::optional<DType> found = dtype_from_name(rows.text(at));
                    if (!found) {
                        damaged("a type such as F32 in dtype", rows.text(at).substr(0, 100));
                    }
                    value = *found;
                } else if constexpr (std::is_same_v<Value, SignalStorage>) {
                    const auto* const found = std::find(std::begin(storage_names), std::end(storage_names),
                                                        std::string_view(rows.text(at)));
                    if (found == std::end(storage_names)) {
                        damaged("plain, compressed or trimmed in storage", rows.text(at).substr(0, 100));
                    }
                    value = static_cast<SignalStorage>(found - std::begin(storage_names));
                } else if constexpr (std::is_same_v<Value, double>) {
                    value = rows.real(at);
                } else if constexpr (std::is_same_v<Value, bool>) {
                    value = rows.integer(at) == 1;
                } else {
                    value = rows.is_null(at) ? static_cast<Value>(-1) : static_cast<Value>(rows.integer(at));
                }
            }
        },
        field.member);
}

template <class Value>
nlohmann::json json_of_value(const Value& value) {
    if constexpr (std::is_same_v<Value, std::string>) {
        return valid_utf8(value);
    } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
        nlohmann::json list = nlohmann::json::array();
        for (const std::string& one : value) {
            list.push_back(valid_utf8(one));
        }
        return list;
    } else if constexpr (std::is_same_v<Value, DType>) {
        return ponderscope::name_of(value);
    } else if constexpr (std::is_same_v<Value, SignalStorage>) {
        return name_of(value);
    } else if constexpr (std::is_same_v<Value, double>) {
        return number_or_null(value);
    } else {
        return value;
    }
}

const Table& table_named(std::string_view name) {
    for (const Table& table : tables()) {
        if (table.name == name) {
            return table;
        }
    }
    throw Error(ErrorId::program_unexpected, "the schema has no table " + std::string(name));
}

} // namespace

std::string_view name_of(SignalStorage storage) {
    return storage_names[static_cast<std::size_t>(storage)];
}

std::string columns_of(const char* table) {
    std::string list;
    for (const std::string& column : table_named(table).columns) {
        list += (list.empty() ? "" : ",") + name_in_sql(column);
    }
    return list;
}

std::string into(const char* table) {
    std::string places;
    for (std::size_t i = 0; i < table_named(table).columns.size(); ++i) {
        places += places.empty() ? "?" : ",?";
    }
    return " INTO " + std::string(table) + " (" + columns_of(table) + ") VALUES (" + places + ")";
}

template <class Row>
void insert_row(Statement& statement, const Row& row) {
    int at = 0;
    for (const Field<Row>& field : fields<Row>()) {
        bind_field(statement, ++at, field, row);
    }
    statement.run();
}

template <class Row>
Row read_row(const Statement& rows, const Damaged& damaged) {
    Row row;
    int at = 0;
    for (const Field<Row>& field : fields<Row>()) {
        read_field(rows, at++, field, row, damaged);
    }
    return row;
}

template <class Row>
nlohmann::json json_of_row(const Row& row) {
    nlohmann::json all = nlohmann::json::object();
    each_exported(row, [&](const char* name, const auto& value) { all[name] = json_of_value(value); });
    return all;
}

#define PONDERSCOPE_ROW(Row)                                                                                 \
    template void insert_row(Statement&, const Row&);                                                        \
    template Row read_row<Row>(const Statement&, const Damaged&);                                            \
    template nlohmann::json json_of_row(const Row&);
PONDERSCOPE_ROW(RunInfo)
PONDERSCOPE_ROW(SequenceInfo)
PONDERSCOPE_ROW(SignalInfo)
PONDERSCOPE_ROW(FaultInfo)
PONDERSCOPE_ROW(TrainingInfo)
PONDERSCOPE_ROW(TrainingQuantity)
#undef PONDERSCOPE_ROW

} // namespace schema
} // namespace ponderscope
