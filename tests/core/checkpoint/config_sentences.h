// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace ponderscope {

// How the sentences about a config.json begin and end.

inline const std::string correct = "; correct the file.";

/// "gpt2, gpt_neox, ...", as messages list them.
inline std::string every_architecture() {
    std::string list;
#define PONDERSCOPE_ARCHITECTURE(name) list += (list.empty() ? "" : ", ") + std::string(#name);
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE
    return list;
}

inline std::string expected(const std::string& rest) {
    return "config.json: expected " + rest;
}

} // namespace ponderscope
