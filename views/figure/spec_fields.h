// SPDX-License-Identifier: GPL-3.0-or-later
// The table of a specification's keys, for reading, writing and editing.
#pragma once

#include "core/base/json.h"
#include "views/figure/spec.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope::figure {

/// A key of a specification that is one member of FigureSpec, with functions to read, edit and write it.
struct Field {
    enum Writes : unsigned {
        always = 0,
        changed = 1, ///< written only if it differs from its default
        read = 2,    ///< written only for kinds that read the key
        charts = 4   ///< written only for charts
    };
    FieldForm form;
    unsigned writes;
    std::function<void(const JsonObject&, FigureSpec&)> read_into;
    std::function<nlohmann::ordered_json(const FigureSpec&)> value;
    std::function<bool(const FigureSpec&)> is_changed;
    std::function<void(FigureSpec&)> reset;

    [[nodiscard]] bool applies(FigureKind kind) const {
        return ((writes & read) == 0 || reads(kind, form.key)) && ((writes & charts) == 0 || is_chart(kind));
    }
};

/// All fields, in the order in which a specification lists them.
const std::vector<Field>& fields();

/// Throws InputError: the value is invalid for the key.
[[noreturn]] void refuse_value(const JsonObject& json, std::string_view key, const std::string& value,
                               const std::vector<std::string_view>& known);

} // namespace ponderscope::figure
