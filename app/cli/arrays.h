// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/engine/engine.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ponderscope::cli {

/// Engine::inspect_batch for rows of any lengths: rows of one length run as a batch; shorter rows are padded
/// along the token axis with NaN (0 in integer arrays), and `lengths` [B] is added when the lengths differ.
ArrayMap compute_arrays(const Engine& engine, const std::vector<std::vector<std::int32_t>>& rows);

/// All arrays as one safetensors file (F32 and I64), written beside and renamed.
void write_arrays(const std::filesystem::path& path, const ArrayMap& arrays,
                  const std::map<std::string, std::string>& metadata);

} // namespace ponderscope::cli
