// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ponderscope {

/// What products are computed in. tf32: weights and everything else in fp32, products on a GPU of factors
/// rounded to ten binary digits with sums in fp32 (TensorFloat-32); on a CPU the same as float32.
enum class Precision : std::uint8_t { float32, tf32, bfloat16, float16 };
std::string to_string(Precision precision);
std::optional<Precision> precision_from_string(const std::string& name);
/// "float32, tf32, bfloat16 or float16"
std::string precision_names();

} // namespace ponderscope
