// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"

#include "core/base/utf8.h"

namespace ponderscope {
namespace {
constexpr std::size_t longest = 2000; ///< bytes of a part
}

InputError::InputError(const std::filesystem::path& path, const std::string& expected,
                       const std::string& found, const std::string& remedy)
    // What was found may be anything, of any length: a sentence stays one, on one line.
    : Error(visible(path.string()) + ": expected " + printable(expected, longest) + ", found " +
            printable(found, longest) + "; " + printable(remedy, longest) + ".") {}

} // namespace ponderscope
