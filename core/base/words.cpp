// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/words.h"


namespace ponderscope {

std::string rounded(double value, int digits) {
    std::array<char, 64> text{};
    return {
        text.data(),
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, digits).ptr};
}

} // namespace ponderscope
