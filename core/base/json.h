// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ponderscope {

struct JsonLimits {
    std::uint64_t max_bytes = std::uint64_t{64} << 20;
    std::size_t max_depth = 64; ///< of nested arrays and objects
    /// Read what Python's json module writes and reads: NaN, Infinity and -Infinity are numbers, and of a
    /// repeated key the last value counts. For files that Hugging Face libraries and data sets write.
    bool python = false;
    const char* remedy = "correct the file or get it again"; ///< what to do about invalid JSON
};

/// The one parser for JSON from outside. Stricter than the library's parser: a limit on size and depth, no
/// key twice in an object, valid UTF-8, no bytes after the value. InputError names \p source, line and byte.
/// Numbers too large for 64 bits become doubles.
nlohmann::json parse_json(std::string_view text, const std::filesystem::path& source,
                          const JsonLimits& limits = {});

/// The same for a file. Errors of read_file too; an empty file is named as such.
nlohmann::json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

/// A value for a message: `"silu"`, `-3`, `true`, `null`, `NaN`, `an object`, `an array of 3`. Long texts are
/// cut.
std::string describe(const nlohmann::json& value);
/// JSON has no NaN and no infinity.
inline nlohmann::json number_or_null(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

/// A JSON object and its file, so that every error names the file, the key and the value. Refers to a
/// document that must outlive it. In all getters a key with the value null counts as absent, as it does in
/// Hugging Face configurations.
class JsonObject {
public:
    /// InputError when \p value is not an object. \p name: the object's place in the file, "" for the whole.
    /// \p remedy: what to do about a wrong value.
    JsonObject(const nlohmann::json& value, std::filesystem::path source, std::string name = {},
               std::string remedy = "correct the file");

    [[nodiscard]] const nlohmann::json* find(std::string_view key) const; ///< nullptr when absent or null
    [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
    [[nodiscard]] const nlohmann::json& value() const { return *value_; }
    [[nodiscard]] const std::filesystem::path& source() const { return source_; }
    [[nodiscard]] std::vector<std::string> keys() const; ///< sorted; null ones included

    static constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

    /// No value: the key is absent. InputError: another type, or out of [min, max].
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t min = -no_limit,
                                                      std::int64_t max = no_limit) const;
    [[nodiscard]] std::optional<double> number(std::string_view key) const; ///< finite
    [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
    [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
    [[nodiscard]] std::optional<JsonObject> object(std::string_view key) const;
    [[nodiscard]] const nlohmann::json* array(std::string_view key) const; ///< nullptr when absent or null

    /// The same for keys that must be there.
    [[nodiscard]] std::int64_t required_integer(std::string_view key, std::int64_t min = -no_limit,
                                                std::int64_t max = no_limit) const;
    [[nodiscard]] double required_number(std::string_view key) const;
    [[nodiscard]] std::string required_text(std::string_view key) const;
    [[nodiscard]] JsonObject required_object(std::string_view key) const;
    [[nodiscard]] const nlohmann::json& required_array(std::string_view key) const;

    /// From now on this object and its copies record which keys the getters read.
    void remember_asked() { asked_ = std::make_shared<std::set<std::string, std::less<>>>(); }
    /// Keys with a value that no getter read since then; sorted.
    [[nodiscard]] std::vector<std::string> never_asked() const;

    /// InputError: a key is not in \p known. The message names it and the known keys.
    void allow_only(const std::vector<std::string_view>& known) const;

    /// "PATH: expected EXPECTED for "NAME.KEY", found VALUE; REMEDY." Without \p remedy, the object's.
    [[noreturn]] void fail(std::string_view key, const std::string& expected,
                           const std::string& remedy = {}) const;
    /// How the key is called in messages: "rope_scaling.factor".
    [[nodiscard]] std::string name_of(std::string_view key) const;

private:
    const nlohmann::json* value_;
    std::filesystem::path source_;
    std::string name_, remedy_;
    std::shared_ptr<std::set<std::string, std::less<>>> asked_;
};

/// One of a fixed set of texts. If the key is absent: \p otherwise, or an InputError without it.
template <typename Value>
Value choice(const JsonObject& section, std::string_view key,
             std::initializer_list<std::pair<std::string_view, Value>> known,
             std::optional<Value> otherwise = std::nullopt, const std::string& remedy = {}) {
    const std::optional<std::string> text = section.text(key);
    if (!text && otherwise) {
        return *otherwise;
    }
    std::string list;
    for (const auto& [name, value] : known) {
        if (text == name) {
            return value;
        }
        list += (list.empty() ? "" : ", ") + std::string(name);
    }
    section.fail(key, "one of " + list, remedy);
}

} // namespace ponderscope
