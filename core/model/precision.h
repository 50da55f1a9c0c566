// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ponderscope {

/// What products are computed in.
enum class Precision : std::uint8_t { float32, bfloat16, float16 };
std::string to_string(Precision precision);
std::optional<Precision> precision_from_string(const std::string& name);

} // namespace ponderscope
