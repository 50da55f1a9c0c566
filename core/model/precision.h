// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ponderscope {

/// The precision of products. tf32: weights and other operations in fp32; products on a GPU round their
/// factors to ten binary digits and sum in fp32 (TensorFloat-32). On a CPU tf32 equals float32.
enum class Precision : std::uint8_t { float32, tf32, bfloat16, float16 };
std::string to_string(Precision precision);
std::optional<Precision> precision_from_string(const std::string& name);
/// "float32, tf32, bfloat16 or float16"
std::string precision_names();

} // namespace ponderscope
