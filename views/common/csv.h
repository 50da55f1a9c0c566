// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace ponderscope {

// CSV as RFC 4180 has it: full stops, the shortest digits that read back as the same number, nothing for NaN.
std::string csv_text(const std::string& text);
/// Bytes of a token: as they are when they are UTF-8, else made visible.
std::string csv_bytes(const std::string& bytes);
std::string csv_number(float value);
std::string csv_number(double value);
inline std::string csv_number(std::int64_t value) {
    return std::to_string(value);
}

} // namespace ponderscope
