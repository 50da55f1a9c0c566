// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/base/words.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ponderscope {
namespace {

using nlohmann::json;

/// "line 3, byte 17" for an offset into \p text. Lines and bytes count from 1, as in editors.
std::string place(std::string_view text, std::size_t offset) {
    offset = std::min(offset, text.size());
    const std::string_view before = text.substr(0, offset);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n') + 1; // npos + 1 is 0
    return "line " + std::to_string(line) + ", byte " + std::to_string(offset - line_start + 1);
}

/// The library's message without its prefix (code and position). Our message has the position already.
std::string reason_of(std::string_view message) {
    for (const std::string_view mark :
         {std::string_view("syntax error "), std::string_view("number overflow")}) {
        if (const std::size_t begin = message.find(mark); begin != std::string_view::npos) {
            return printable(message.substr(begin), 160);
        }
    }
    return "a syntax error";
}

/// Python's three numbers that JSON lacks. Each has a stand-in of the same length, so that offsets in errors
/// stay right. The stand-ins are forms of zero that Python never writes.
struct PythonNumber {
    std::string_view word, stand_in;
    double value;
};
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr PythonNumber python_numbers[] = {
    {"-Infinity", "-0E000000", -infinity},
    {"Infinity", "0E000000", infinity},
    {"NaN", "0E0", std::numeric_limits<double>::quiet_NaN()},
};

/// \p text with the stand-ins. Empty: \p text has none of the words outside of strings.
std::string with_stand_ins(std::string_view text) {
    std::string changed;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (in_string) {
            if (text[i] == '\\') {
                ++i;
            } else {
                in_string = text[i] != '"';
            }
        } else if (text[i] == '"') {
            in_string = true;
        } else if (i == 0 || std::string_view(" \t\r\n:,[").find(text[i - 1]) != std::string_view::npos) {
            for (const PythonNumber& number : python_numbers) {
                if (text.substr(i).starts_with(number.word)) {
                    if (changed.empty()) {
                        changed = text;
                    }
                    changed.replace(i, number.word.size(), number.stand_in);
                    i += number.word.size() - 1;
                    break;
                }
            }
        }
    }
    return changed;
}

/// Builds the document during parsing, because only the parser sees the depth and repeated keys.
class DocumentBuilder {
public:
    DocumentBuilder(std::string_view text, const std::filesystem::path& source, const JsonLimits& limits,
                    bool has_stand_ins)
        : text_(text), source_(source), limits_(limits), has_stand_ins_(has_stand_ins) {}

    json take() { return std::move(root_); }

    bool null() { return add(nullptr); }
    bool boolean(bool value) { return add(value); }
    bool number_integer(json::number_integer_t value) { return add(value); }
    bool number_unsigned(json::number_unsigned_t value) { return add(value); }
    bool number_float(json::number_float_t value, const std::string& written) {
        for (const PythonNumber& number : python_numbers) {
            if (has_stand_ins_ && written == number.stand_in) {
                return add(number.value);
            }
        }
        return add(value);
    }
    bool string(std::string& value) { return add(std::move(value)); }
    bool binary(json::binary_t& value) { return add(std::move(value)); }

    bool start_object(std::size_t /*elements*/) { return open(json::object()); }
    bool start_array(std::size_t /*elements*/) { return open(json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }

    bool key(std::string& name) {
        auto& object = stack_.back()->get_ref<json::object_t&>();
        const auto [position, is_new] = object.emplace(name, nullptr);
        if (!is_new && !limits_.python) {
            throw InputError(ErrorId::json_syntax, source_, "every key once",
                             "the key \"" + printable(name) + "\" twice in one object", "remove one of them");
        }
        slot_ = &position->second;
        return true;
    }

    bool parse_error(std::size_t position, const std::string& /*last_token*/, const json::exception& error) {
        const std::size_t offset = position > 0 ? position - 1 : 0;
        throw InputError(ErrorId::json_syntax, source_, "valid JSON",
                         reason_of(error.what()) + " at " + place(text_, offset), limits_.remedy);
    }

private:
    template <typename Value>
    bool add(Value&& value) {
        put(json(std::forward<Value>(value)));
        return true;
    }

    json* put(json value) {
        if (stack_.empty()) {
            root_ = std::move(value);
            return &root_;
        }
        json& parent = *stack_.back();
        if (parent.is_array()) {
            auto& array = parent.get_ref<json::array_t&>();
            array.push_back(std::move(value));
            return &array.back();
        }
        *slot_ = std::move(value);
        return slot_;
    }

    bool open(json container) {
        if (stack_.size() >= limits_.max_depth) {
            throw InputError(ErrorId::json_syntax, source_,
                             "at most " + std::to_string(limits_.max_depth) + " nested levels",
                             "deeper nesting", "check that it is the right file");
        }
        stack_.push_back(put(std::move(container)));
        return true;
    }

    bool close() {
        stack_.pop_back();
        return true;
    }

    std::string_view text_;
    const std::filesystem::path& source_;
    const JsonLimits& limits_;
    bool has_stand_ins_;
    json root_;
    json* slot_ = nullptr;     ///< place for the value of the last key
    std::vector<json*> stack_; ///< the open containers; only the innermost grows, so pointers stay valid
};

} // namespace

nlohmann::json parse_json(std::string_view text, const std::filesystem::path& source,
                          const JsonLimits& limits) {
    if (text.size() > limits.max_bytes) {
        throw InputError(ErrorId::json_syntax, source,
                         "JSON of at most " + std::to_string(limits.max_bytes) + " bytes",
                         std::to_string(text.size()) + " bytes", "check that it is the right file");
    }
    if (text.empty()) {
        throw InputError(ErrorId::json_syntax, source, "valid JSON", "an empty file", "get the file again");
    }
    if (const std::size_t invalid = first_invalid_utf8(text); invalid != std::string_view::npos) {
        throw InputError(ErrorId::json_syntax, source, "JSON in UTF-8",
                         "an invalid byte sequence at " + place(text, invalid), limits.remedy);
    }
    // The library would ignore all text after a NUL.
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
        throw InputError(ErrorId::json_syntax, source, "valid JSON", "a NUL byte at " + place(text, nul),
                         limits.remedy);
    }
    const std::string changed = limits.python ? with_stand_ins(text) : std::string();
    if (!changed.empty()) {
        text = changed;
    }
    DocumentBuilder builder(text, source, limits, !changed.empty());
    json::sax_parse(text.begin(), text.end(), &builder);
    return builder.take();
}

nlohmann::json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
    return parse_json(read_file(path, limits.max_bytes), path, limits);
}

std::string describe(const nlohmann::json& value) {
    switch (value.type()) {
    case json::value_t::object:
        return value.empty() ? "an empty object" : "an object";
    case json::value_t::array:
        return value.empty() ? "an empty array" : "an array of " + std::to_string(value.size());
    case json::value_t::string:
        return '"' + printable(value.get_ref<const std::string&>()) + '"';
    case json::value_t::number_float:
        if (const double number = value.get<double>(); !std::isfinite(number)) {
            return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
        }
        return value.dump();
    default:
        return value.dump();
    }
}

JsonObject::JsonObject(const nlohmann::json& value, std::filesystem::path source, std::string name,
                       std::string remedy)
    : value_(&value), source_(std::move(source)), name_(std::move(name)), remedy_(std::move(remedy)) {
    if (!value.is_object()) {
        throw InputError(ErrorId::json_value, source_,
                         name_.empty() ? "a JSON object" : "an object for \"" + name_ + '"', describe(value),
                         remedy_);
    }
}

const nlohmann::json* JsonObject::find(std::string_view key) const {
    if (asked_ != nullptr) {
        asked_->emplace(key);
    }
    const auto position = value_->find(key);
    return position == value_->end() || position->is_null() ? nullptr : &*position;
}

std::vector<std::string> JsonObject::keys() const {
    std::vector<std::string> names;
    for (const auto& [key, ignored] : value_->items()) {
        names.push_back(key);
    }
    return names;
}

std::vector<std::string> JsonObject::never_asked() const {
    std::vector<std::string> names;
    for (const auto& [key, value] : value_->items()) {
        if (!value.is_null() && asked_ != nullptr && !asked_->contains(key)) {
            names.push_back(key);
        }
    }
    return names;
}

std::string JsonObject::name_of(std::string_view key) const {
    return name_.empty() ? std::string(key) : name_ + '.' + std::string(key);
}

void JsonObject::fail(std::string_view key, const std::string& expected, const std::string& remedy) const {
    const auto position = value_->find(key);
    const std::string found = position == value_->end() ? "no such key" : describe(*position);
    throw InputError(ErrorId::json_value, source_, expected + " for \"" + printable(name_of(key)) + '"',
                     found, remedy.empty() ? remedy_ : remedy);
}

template <class Value>
std::optional<Value> JsonObject::value_of(std::string_view key, bool (json::*has_type)() const noexcept,
                                          const char* expected) const {
    const json* found = find(key);
    if (found == nullptr) {
        return std::nullopt;
    }
    if (!(found->*has_type)()) {
        fail(key, expected);
    }
    return found->get<Value>();
}

template <class Value>
Value JsonObject::required(std::optional<Value> value, std::string_view key, const char* expected) const {
    if (!value) {
        fail(key, expected);
    }
    return *std::move(value);
}

std::optional<std::int64_t> JsonObject::integer(std::string_view key, std::int64_t min,
                                                std::int64_t max) const {
    const json* found = find(key);
    if (found == nullptr) {
        return std::nullopt;
    }
    const bool fits =
        found->is_number_integer() &&
        (!found->is_number_unsigned() || found->get<std::uint64_t>() <= static_cast<std::uint64_t>(no_limit));
    if (fits) {
        const auto value = found->get<std::int64_t>();
        if (value >= min && value <= max) {
            return value;
        }
    }
    std::string range;
    if (min != -no_limit && max != no_limit) {
        range = " from " + std::to_string(min) + " to " + std::to_string(max);
    } else if (min != -no_limit) {
        range = " of at least " + std::to_string(min);
    } else if (max != no_limit) {
        range = " of at most " + std::to_string(max);
    }
    fail(key, "a whole number" + range);
}

std::optional<double> JsonObject::number(std::string_view key) const {
    const auto value = value_of<double>(key, &json::is_number, "a number");
    if (value && !std::isfinite(*value)) {
        fail(key, "a number");
    }
    return value;
}

std::optional<bool> JsonObject::boolean(std::string_view key) const {
    return value_of<bool>(key, &json::is_boolean, "true or false");
}

std::optional<std::string> JsonObject::text(std::string_view key) const {
    return value_of<std::string>(key, &json::is_string, "a text");
}

std::optional<JsonObject> JsonObject::object(std::string_view key) const {
    const json* found = find(key);
    if (found == nullptr) {
        return std::nullopt;
    }
    return JsonObject(*found, source_, name_of(key), remedy_);
}

const nlohmann::json* JsonObject::array(std::string_view key) const {
    const json* found = find(key);
    if (found != nullptr && !found->is_array()) {
        fail(key, "an array");
    }
    return found;
}

std::int64_t JsonObject::required_integer(std::string_view key, std::int64_t min, std::int64_t max) const {
    return required(integer(key, min, max), key, "a whole number");
}

double JsonObject::required_number(std::string_view key) const {
    return required(number(key), key, "a number");
}

std::string JsonObject::required_text(std::string_view key) const {
    return required(text(key), key, "a text");
}

JsonObject JsonObject::required_object(std::string_view key) const {
    return required(object(key), key, "an object");
}

const nlohmann::json& JsonObject::required_array(std::string_view key) const {
    if (const json* found = array(key)) {
        return *found;
    }
    fail(key, "an array");
}

void JsonObject::allow_only(const std::vector<std::string_view>& known) const {
    for (const auto& [key, ignored] : value_->items()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) {
            continue;
        }
        throw InputError(ErrorId::json_key, source_,
                         name_.empty() ? "only known keys" : "only known keys in \"" + name_ + '"',
                         '"' + printable(key) + '"', "remove it or use one of: " + joined(known));
    }
}

} // namespace ponderscope
