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
    std::size_t max_depth = 64; ///< largest depth of nested arrays and objects
    /// Accept the JSON of Python's json module: NaN, Infinity and -Infinity are numbers, and the last of
    /// several equal keys wins. Use it for files that Hugging Face libraries and data sets write.
    bool python = false;
    const char* remedy = "correct the file or get it again"; ///< the advice in an error about invalid JSON
};

/// Parses untrusted JSON. Stricter than nlohmann's parser: limits size and depth, and refuses repeated keys,
/// invalid UTF-8 and bytes after the value. InputError names \p source, line and byte. Numbers too large for
/// 64 bits become doubles.
nlohmann::json parse_json(std::string_view text, const std::filesystem::path& source,
                          const JsonLimits& limits = {});

/// Reads and parses a file. Also throws the errors of read_file.
nlohmann::json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

/// A value for a message: `"silu"`, `-3`, `true`, `null`, `NaN`, `an object`, `an array of 3`. Long texts are
/// shortened.
std::string describe(const nlohmann::json& value);
/// The value as JSON: null for NaN and infinity, which JSON cannot express.
inline nlohmann::json number_or_null(double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

/// A JSON object with its file, so that every error names the file, the key and the value. The JSON document
/// must outlive this object. All getters treat a null value as an absent key, as Hugging Face configurations
/// do.
class JsonObject {
public:
    /// InputError if \p value is not an object. \p name: the object's path in the document, "" for the root.
    /// \p remedy: the advice at the end of an error message.
    JsonObject(const nlohmann::json& value, std::filesystem::path source, std::string name = {},
               std::string remedy = "correct the file");

    [[nodiscard]] const nlohmann::json* find(std::string_view key) const; ///< nullptr when absent or null
    [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
    [[nodiscard]] const nlohmann::json& value() const { return *value_; }
    [[nodiscard]] const std::filesystem::path& source() const { return source_; }
    [[nodiscard]] std::vector<std::string> keys() const; ///< sorted; includes keys with the value null

    static constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

    /// No value: the key is absent. InputError: the value has another type, or lies outside [min, max].
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t min = -no_limit,
                                                      std::int64_t max = no_limit) const;
    [[nodiscard]] std::optional<double> number(std::string_view key) const; ///< InputError: not finite
    [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
    [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
    [[nodiscard]] std::optional<JsonObject> object(std::string_view key) const;
    [[nodiscard]] const nlohmann::json* array(std::string_view key) const; ///< nullptr when absent or null

    /// Getters for required keys: InputError if the key is absent.
    [[nodiscard]] std::int64_t required_integer(std::string_view key, std::int64_t min = -no_limit,
                                                std::int64_t max = no_limit) const;
    [[nodiscard]] double required_number(std::string_view key) const;
    [[nodiscard]] std::string required_text(std::string_view key) const;
    [[nodiscard]] JsonObject required_object(std::string_view key) const;
    [[nodiscard]] const nlohmann::json& required_array(std::string_view key) const;

    /// From now on, this object and its copies record the keys that the getters read.
    void remember_asked() { asked_ = std::make_shared<std::set<std::string, std::less<>>>(); }
    /// The keys that no getter has read since remember_asked(), sorted. Leaves out keys with the value null.
    [[nodiscard]] std::vector<std::string> never_asked() const;

    /// InputError: a key is not in \p known. The message names this key and the known keys.
    void allow_only(const std::vector<std::string_view>& known) const;

    /// Throws "PATH: expected EXPECTED for "NAME.KEY", found VALUE; REMEDY." An empty \p remedy means the
    /// object's remedy.
    [[noreturn]] void fail(std::string_view key, const std::string& expected,
                           const std::string& remedy = {}) const;
    /// The name of the key in messages: "rope_scaling.factor".
    [[nodiscard]] std::string name_of(std::string_view key) const;

private:
    template <class Value>
    std::optional<Value> value_of(std::string_view key, bool (nlohmann::json::*has_type)() const noexcept,
                                  const char* expected) const;
    template <class Value>
    Value required(std::optional<Value> value, std::string_view key, const char* expected) const;

    const nlohmann::json* value_;
    std::filesystem::path source_;
    std::string name_, remedy_;
    std::shared_ptr<std::set<std::string, std::less<>>> asked_;
};

/// The value that \p known pairs with the text of \p key. If the key is absent, returns \p otherwise.
/// InputError: the text is not in \p known, or key and \p otherwise are absent.
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
