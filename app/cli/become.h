// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace ponderscope::cli {

/// Becomes ponderscope-desktop with these arguments: the one beside this program, or that on PATH.
/// InputError: there is none.
[[noreturn]] void become_desktop(std::vector<std::string> arguments);

/// Becomes ponderscope-engine with this program's own arguments: the one beside it or in ../lib/ponderscope.
/// LibTorch is the one that the engine was built with; if it is gone, the same version is searched in
/// Torch_DIR, LIBTORCH and the folder of ./run. InputError: no engine, or none of these.
[[noreturn]] void become_engine(char** argv);

} // namespace ponderscope::cli
