// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/base/utf8.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ponderscope {

/// A pattern from a tokenizer file: a plain string, or a regular expression. Oniguruma matches regular
/// expressions in Ruby's syntax, as the library `tokenizers` does, with limits on the cost of a match.
/// Immutable; threads may share a Pattern.
class Pattern {
public:
    static Pattern literal(std::string text);
    /// InputError names \p file and the reason if the expression does not compile.
    static Pattern regex(std::string_view expression, const std::filesystem::path& file);

    /// The "pattern" of \p object: {"String": …}, {"Regex": …} or a plain string. InputError.
    static Pattern parse(const JsonObject& object);

    /// Calls \p visit(begin, end) for all matches in order. Skips an empty match directly after the previous
    /// match. \p text must be valid UTF-8. InputError: a match exceeds the limits, or the text has 2 GiB or
    /// more.
    template <class Visit>
    void each_match(std::string_view text, const Visit& visit) const {
        std::size_t begin = 0, end = 0, last_end = std::string_view::npos;
        for (std::size_t from = 0; from <= text.size() && find(text, from, begin, end);) {
            if (begin == end && end == last_end) {
                from = end + (end < text.size() ? utf8_at(text, end).bytes : 1);
            } else {
                from = last_end = end;
                visit(begin, end);
            }
        }
    }

private:
    struct Code;
    Pattern() = default;
    bool find(std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end) const;

    std::string text_; ///< the literal, or the expression from the file
    std::shared_ptr<const Code> code_;
};

/// Calls \p add(object, type) for a component of a tokenizer.json, or for each part of a sequence, in order.
/// \p parts: the key of a sequence's parts. InputError.
template <class Add>
void each_component(const std::optional<JsonObject>& component, const std::string& parts, const Add& add) {
    if (!component) {
        return;
    }
    const std::string type = component->required_text("type");
    if (type != "Sequence") {
        return add(*component, type);
    }
    for (const nlohmann::json& part : component->required_array(parts)) {
        each_component(JsonObject(part, component->source(), component->name_of(parts)), parts, add);
    }
}

/// Returns \p text, the value of \p key. InputError: \p text is not one character.
std::string one_character(const JsonObject& object, std::string_view key, std::string text);

} // namespace ponderscope
