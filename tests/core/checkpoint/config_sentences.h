// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace ponderscope {

// How the sentences about a config.json begin and end.

inline const std::string correct = "; correct the file.";

inline std::string expected(const std::string& rest) {
    return "config.json: expected " + rest;
}

} // namespace ponderscope
