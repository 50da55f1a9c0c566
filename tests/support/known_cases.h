// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"

#include <filesystem>
#include <set>
#include <string>

namespace ponderscope::testing {

/// Whether a reference case is of a backbone that this build runs; references exist for others, too.
inline bool runs_here(const std::filesystem::path& folder) {
    static const std::set<std::string> architectures{
#define PONDERSCOPE_ARCHITECTURE(name) #name,
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE
    };
    return architectures.contains(read_json_file(folder / "case.json").at("backbone").get<std::string>());
}

} // namespace ponderscope::testing
