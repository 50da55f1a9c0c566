// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace ponderscope {

/// Loads a function from one of our libraries at run time. Programs use it for libraries whose dependencies
/// are large or may be missing. \p library is a file name on the program's run path. The library stays
/// loaded. Null: loading failed, and \p why has the reason. Threads: any.
void* function_of_plugin(const char* library, const char* function, std::string& why);

} // namespace ponderscope
