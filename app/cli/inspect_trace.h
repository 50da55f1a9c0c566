// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>

namespace ponderscope::cli {

/// Whether `inspect` treats the path as a trace (a file or shards). Other paths are checkpoints.
bool is_trace(const std::filesystem::path& path);

/// Prints a description of a trace, as text or JSON.
void inspect_trace(const std::filesystem::path& path, bool json);

/// `inspect` for traces only, which needs no LibTorch.
void add_inspect_trace(CLI::App& program);

} // namespace ponderscope::cli
