// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace ponderscope {

/// A function of a library of our own that a program opens only when it needs it, because what that library
/// is linked with is large or may not be there. By name: the program's run path says where. The library stays
/// loaded. Null: it could not be opened, and \p why says why. Threads: any.
void* function_of_plugin(const char* library, const char* function, std::string& why);

} // namespace ponderscope
