// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"

#include "core/base/utf8.h"

namespace ponderscope {
namespace {
constexpr std::size_t longest = 2000; ///< most bytes of one part
}

const char* name_of(ErrorId id) {
    static constexpr const char* names[] = {
#define PONDERSCOPE_ERROR(area, name, meaning) #area "." #name,
#include "core/base/error_ids.def"
#undef PONDERSCOPE_ERROR
    };
    return names[static_cast<std::size_t>(id)];
}

InputError::InputError(ErrorId id, const std::filesystem::path& path, const std::string& expected,
                       const std::string& found, const std::string& remedy)
    // The parts may come from untrusted files. Escape and shorten them, so that the message stays one line.
    : Error(id, visible(path.string()) + ": expected " + printable(expected, longest) + ", found " +
                    printable(found, longest) + "; " + printable(remedy, longest) + ".") {}

} // namespace ponderscope
