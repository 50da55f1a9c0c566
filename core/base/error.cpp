// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"

namespace ponderscope {

InputError::InputError(const std::filesystem::path& path, const std::string& expected,
                       const std::string& found, const std::string& remedy)
    : Error(path.string() + ": expected " + expected + ", found " + found + "; " + remedy + ".") {}

} // namespace ponderscope
