// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"

#include <functional>
#include <string>

namespace ponderscope::figure {

/// What was said of something wrong.
inline std::string thrown(const std::function<void()>& what) {
    try {
        what();
    } catch (const Error& error) {
        return error.what();
    }
    return "(nothing was thrown)";
}

} // namespace ponderscope::figure
