// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace ponderscope::cli {

/// Becomes ponderscope-desktop with these arguments: the one beside this program, or that on PATH.
/// InputError: there is none.
[[noreturn]] void become_desktop(std::vector<std::string> arguments);

/// Becomes ponderscope-engine with this program's own arguments: the one beside it or in ../lib/ponderscope.
/// LibTorch is looked for where the build looks for it (resources/build/Torch.cmake): Torch_DIR, LIBTORCH,
/// the folder of ./run; without one there, the engine knows where it was built with. InputError: no engine,
/// or none of these.
[[noreturn]] void become_engine(char** argv);

} // namespace ponderscope::cli
