// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace ponderscope::cli {

/// Replaces this process by ponderscope-desktop with these arguments: the program beside this one, or the one
/// on PATH. InputError: not found.
[[noreturn]] void become_desktop(std::vector<std::string> arguments);

/// Replaces this process by ponderscope-engine with this program's arguments: the program beside this one or
/// in ../lib/ponderscope. Uses the LibTorch with which the engine was built. If that is missing, searches for
/// the same version in Torch_DIR, LIBTORCH and the folder of ./run. InputError: the engine or LibTorch is
/// missing.
[[noreturn]] void become_engine(char** argv);

} // namespace ponderscope::cli
