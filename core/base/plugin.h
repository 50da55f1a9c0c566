// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace ponderscope {

/// A function of one of our libraries that a program opens only when needed, because the dependencies of the
/// library are large or may be missing. By name: on the program's run path. The library stays loaded. Null:
/// it could not be opened; \p why has the reason. Threads: any.
void* function_of_plugin(const char* library, const char* function, std::string& why);

} // namespace ponderscope
