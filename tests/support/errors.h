// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"

#include <string>

namespace ponderscope::testing {

/// The error that \p call throws, as "SENTENCE [ID]", such as "a.json: expected … [json.key]". Empty if \p
/// call succeeds. Exceptions of other kinds pass.
template <class Kind = InputError, class Call>
std::string error_of(Call&& call) {
    try {
        call();
    } catch (const Kind& error) {
        return std::string(error.what()) + " [" + name_of(error.id()) + "]";
    }
    return {};
}

/// The same without the sentence: "json.key".
template <class Kind = InputError, class Call>
std::string error_id(Call&& call) {
    try {
        call();
    } catch (const Kind& error) {
        return name_of(error.id());
    }
    return {};
}

} // namespace ponderscope::testing
